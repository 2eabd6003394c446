"""Does a large backlog slow sends? One command: python -m bench.backlog.

Two servers take turns: one whose store is empty, and one whose topic holds ten million messages
that nobody has consumed. Each gets the same sends to that topic; what counts is the server's CPU
for each. Then the second one gets them once more while a new group reads the backlog from its
beginning.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from bench.drivers import Drivers
from bench.store_fill import TOPIC
from pyritemq.conformance.servers.cluster import pyrite_cluster

if TYPE_CHECKING:
    from pyritemq.conformance.servers.cluster import Cluster

THREADS = 64
SIZE = 128
GROUP = "bench_reader"
SETTINGS = {"messageIndexEnable": "false", "waitTimeMillsInSendQueue": "5000"}
"""The index is built when a load is over, and would be counted with the next one; and no send is
refused because the machine was busy with the others."""


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.backlog", description=__doc__)
    parser.add_argument("--messages", type=int, default=10_000_000, help="backlog [10000000]")
    parser.add_argument("--sends", type=int, default=200_000, help="sends of one figure [200000]")
    parser.add_argument("--rounds", type=int, default=2, help="how often each server runs [2]")
    parser.add_argument("--work", type=Path, help="folder for stores and logs [a temporary one]")
    return parser.parse_args()


def fill(folder: Path, messages: int) -> None:
    """A store with the topic; in a process of its own, so that nothing of it is measured."""
    numbers = {"--messages": messages, "--smallest": SIZE, "--largest": SIZE}
    words = [word for name, number in numbers.items() for word in (name, str(number))]
    command = [sys.executable, "-m", "bench.store_fill", str(folder / "store"), "--no-index"]
    subprocess.run([*command, *words], check=True)


def send(cluster: Cluster, drivers: Drivers, sends: int) -> tuple[float, float]:
    """CPU in µs for each send, and sends a second by the Producer's own report."""
    before = cluster.cpu_seconds()
    report = drivers.produce(TOPIC, messages=sends, threads=THREADS, size=SIZE)
    cpu = cluster.cpu_seconds() - before
    if report["failed"]:  # the first ones, on a loaded machine
        print(f"{report['failed']:.0f} sends failed")
    return cpu / report["messages"] * 1e6, report["messages_per_second"]


def run(folder: Path, backlog: int, sends: int) -> dict[str, tuple[float, float]]:
    """One server: a warm-up, the measured sends, and, where there is a backlog, a reader."""
    fill(folder, backlog)
    found = {}
    with pyrite_cluster(folder, properties=SETTINGS) as cluster:
        drivers = Drivers(folder / "clients", cluster.namesrv)
        send(cluster, drivers, sends // 2)
        found["backlog" if backlog else "empty"] = send(cluster, drivers, sends)
        if backlog:
            with drivers.consumer(TOPIC, GROUP) as reader:
                reader.wait_for_line(r"Consume TPS: [1-9]", timeout=60)
                found["read meanwhile"] = send(cluster, drivers, sends)
    shutil.rmtree(folder)
    return found


def main() -> None:
    options = parse()
    figures: dict[str, list[tuple[float, float]]] = {}
    with tempfile.TemporaryDirectory(dir=options.work) as work:
        for number in range(options.rounds):
            for backlog in (0, options.messages):
                found = run(Path(work) / f"{number}-{backlog}", backlog, options.sends)
                for name, figure in found.items():
                    figures.setdefault(name, []).append(figure)
                    print(f"{name:16} {figure[0]:7.1f} µs CPU a send {figure[1]:9.0f} sends/s")
    for name, rounds in figures.items():
        cpu = statistics.median(figure[0] for figure in rounds)
        rate = statistics.median(figure[1] for figure in rounds)
        print(f"median {name:16} {cpu:7.1f} µs CPU a send {rate:9.0f} sends/s")


if __name__ == "__main__":
    main()
