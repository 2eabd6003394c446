"""The store's figures, ours and RocketMQ's side by side: python -m bench.store PHASE...

    sync      send with SYNC_FLUSH, 64 threads
    queues    send over 50,000 queues beside send over 8, and the memory of 50,000 queues with data
    restart   ready on 10 million messages, after a clean stop and after kill -9 under load
    scan      recovery of 1 GiB of CommitLog with queues, index and checkpoint gone

Each prints its figures; --out adds them to a file, --docs puts that file's table on the page.
Method and results: docs/performance.md.
"""

from __future__ import annotations

import argparse
import os
import shlex
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.__main__ import RESULTS, environment
from bench.drivers import Drivers
from bench.store_fill import TOPIC
from bench.store_report import save, table, write_docs
from bench.store_servers import StoreServer
from bench.summary import OURS, THEIRS
from pyritemq.conformance.jars import JarsMissingError
from pyritemq.conformance.processes import ChildError

if TYPE_CHECKING:
    from collections.abc import Callable

SIZE = 128
MANY_QUEUES, FEW_QUEUES = 50_000, 8
SETTLE_SECONDS = 3.0
SCAN_MESSAGES = 1_250_000  # bodies of 128 to 1,024 bytes: 0.9 GB, so that one file holds them


@dataclass
class Bench:
    """What the options say, and the figures so far: phase, server, figure."""

    work: Path
    servers: list[str]
    rounds: int
    messages: int
    threads: int
    backlog: int
    figures: dict[str, dict[str, dict[str, list[float]]]] = field(default_factory=dict)

    def note(self, phase: str, server: str, figure: str, value: float) -> None:
        print(f"  {phase:8} {server:9} {figure:34} {value:14,.2f}", flush=True)
        runs = self.figures.setdefault(phase, {}).setdefault(server, {})
        runs.setdefault(figure, []).append(round(value, 3))

    def send(self, server: StoreServer, topic: str, messages: int) -> dict[str, float]:
        """Send with the official Producer; its report, and the broker's CPU per message."""
        drivers = Drivers(self.work / f"clients-{time.time_ns()}", server.namesrv)
        before = server.broker.cpu_seconds()
        report = drivers.produce(topic, messages=messages, threads=self.threads, size=SIZE)
        cpu = server.broker.cpu_seconds() - before
        return {**report, "cpu_us": cpu / max(report["messages"], 1) * 1e6}

    def fill(self, store: Path, *arguments: object) -> None:
        command = [sys.executable, "-m", "bench.store_fill", str(store), *map(str, arguments)]
        subprocess.run(command, check=True)

    def order(self, number: int) -> list[str]:
        return self.servers if number % 2 == 0 else self.servers[::-1]


def sync(bench: Bench) -> None:
    """Both with SYNC_FLUSH; the order turns round from one round to the next."""
    for number in range(bench.rounds):
        for name in bench.order(number):
            folder = bench.work / f"sync-{number}-{name}"
            with StoreServer(name, folder, folder / "store") as server:
                server.start({"flushDiskType": "SYNC_FLUSH"})
                bench.send(server, TOPIC, bench.messages // 2)
                report = bench.send(server, TOPIC, bench.messages)
                bench.note("sync", name, "messages_per_second", report["messages_per_second"])
                bench.note("sync", name, "average_ms", report["average_ms"])
                bench.note("sync", name, "cpu_us_per_message", report["cpu_us"])
                bench.note("sync", name, "failed", report["failed"])
            shutil.rmtree(folder, ignore_errors=True)


def queues(bench: Bench) -> None:
    """One topic of 8 queues and one of 50,000, by turns; all queues hold data before the first."""
    for name in bench.servers:
        folder = bench.work / f"queues-{name}"
        with StoreServer(name, folder, folder / "store") as server:
            server.start()
            server.create_topic("Few", FEW_QUEUES)
            server.create_topic("Many", MANY_QUEUES)
            bench.send(server, "Few", bench.messages // 2)
            bench.send(server, "Many", MANY_QUEUES * 2)
            for number in range(bench.rounds):
                for topic in ("Few", "Many") if number % 2 == 0 else ("Many", "Few"):
                    report = bench.send(server, topic, bench.messages)
                    rate = report["messages_per_second"]
                    bench.note("queues", name, f"{topic}_messages_per_second", rate)
                    bench.note("queues", name, f"{topic}_cpu_us_per_message", report["cpu_us"])
                    bench.note("queues", name, f"{topic}_failed", report["failed"])
            time.sleep(SETTLE_SECONDS)
            for kind in ("RssAnon", "VmRSS"):
                bench.note("queues", name, f"{kind}_mb", server.broker.memory_kib(kind) / 1e3)
            bench.note("queues", name, "stop_seconds", server.stop())
            bench.note("queues", name, "ready_seconds_after_clean_stop", server.start())
        shutil.rmtree(folder, ignore_errors=True)
        few, many = (_median(bench, name, f"{t}_messages_per_second") for t in ("Few", "Many"))
        bench.note("queues", name, "many_by_few", many / few)


def _median(bench: Bench, name: str, figure: str) -> float:
    return statistics.median(bench.figures["queues"][name][figure])


def restart(bench: Bench) -> None:
    """The servers take turns on one store; each is killed while the Producer sends to it."""
    store = bench.work / "restart" / "store"
    bench.fill(store, "--messages", bench.backlog)
    for name in bench.servers:
        with StoreServer(name, bench.work / f"restart-{name}", store) as server:
            for _ in range(bench.rounds):
                bench.note("restart", name, "ready_seconds_after_clean_stop", server.start())
                _expect(server, bench.backlog)
                bench.note("restart", name, "stop_seconds", server.stop())
            server.start()
            for _ in range(bench.rounds):
                _kill_under_load(bench, server)
                bench.note("restart", name, "ready_seconds_after_kill", server.start())
                _expect(server, bench.backlog)
            server.stop()
    shutil.rmtree(store, ignore_errors=True)


def _kill_under_load(bench: Bench, server: StoreServer) -> None:
    """Kill the broker when it has taken so many messages more; the Producer's failures follow."""
    wanted = server.stored() + bench.messages
    with Drivers(bench.work / f"clients-{time.time_ns()}", server.namesrv).start_producer(
        TOPIC, messages=bench.messages * 4, threads=bench.threads, size=SIZE
    ) as producer:
        while server.stored() < wanted:
            time.sleep(0.05)
        server.kill()
        producer.kill()


def _expect(server: StoreServer, messages: int) -> None:
    if (found := server.stored()) < messages:
        raise ChildError(f"{server.name} serves {found} of {messages} messages")


def scan(bench: Bench) -> None:
    """What a start takes longer on 0.9 GB that it must read whole than on an empty store."""
    base = bench.work / "scan" / "store"
    bench.fill(base, "--messages", SCAN_MESSAGES, "--smallest", 128, "--largest", 1024)
    size = sum(_data_size(file) for file in (base / "commitlog").iterdir())
    for number in range(bench.rounds):
        for name in bench.order(number):
            folder = bench.work / f"scan-{name}"
            with StoreServer(name, folder / "empty", folder / "empty" / "store") as server:
                empty = server.start()
            with StoreServer(name, folder / "full", base) as server:
                for part in ("consumequeue", "index"):
                    shutil.rmtree(base / part, ignore_errors=True)
                for part in ("checkpoint", "queueends"):
                    (base / part).unlink(missing_ok=True)
                (base / "abort").touch()
                full = server.start()
                _expect(server, SCAN_MESSAGES)
            bench.note("scan", name, "ready_seconds_empty", empty)
            bench.note("scan", name, "ready_seconds", full)
            bench.note("scan", name, "mb_per_second", size / 1e6 / max(full - empty, 0.001))
            shutil.rmtree(folder, ignore_errors=True)
    shutil.rmtree(base, ignore_errors=True)


def _data_size(file: Path) -> int:
    return file.stat().st_blocks * 512


PHASES: dict[str, Callable[[Bench], None]] = {
    "sync": sync,
    "queues": queues,
    "restart": restart,
    "scan": scan,
}


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m bench.store",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("phases", nargs="+", choices=[*PHASES])
    parser.add_argument("--servers", default=f"{THEIRS},{OURS}", help="[rocketmq,pyritemq]")
    parser.add_argument("--rounds", type=int, default=3, help="how often each is measured [3]")
    parser.add_argument("--messages", type=int, default=200_000, help="of one load [200000]")
    parser.add_argument("--threads", type=int, default=64, help="sending threads [64]")
    parser.add_argument("--backlog", type=int, default=10_000_000, help="of restart [10000000]")
    parser.add_argument("--work", type=Path, help="folder for stores and logs [a temporary one]")
    parser.add_argument(
        "--out",
        type=Path,
        default=RESULTS / "store.json",
        help="a file to add the figures to [bench/results/store.json]",
    )
    parser.add_argument("--docs", action="store_true", help="put the table in docs/performance.md")
    return parser.parse_args(arguments)


def about_this_run() -> dict[str, Any]:
    """What goes with the figures of each phase."""
    command = shlex.join(["python", "-m", "bench.store", *sys.argv[1:]])
    load = {"load": round(os.getloadavg()[0], 1)}
    return {"command": command, "environment": environment() | load}


def main() -> int:
    options = parse(sys.argv[1:])
    about = about_this_run()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that the children are stopped too
    with tempfile.TemporaryDirectory(prefix="pyritemq-bench-", dir=options.work) as work:
        bench = Bench(
            Path(work),
            options.servers.split(","),
            options.rounds,
            options.messages,
            options.threads,
            options.backlog,
        )
        try:
            for phase in options.phases:
                PHASES[phase](bench)
                known = save({phase: about | {"figures": bench.figures[phase]}}, options.out)
                print("\n" + table(known))
        except (ChildError, JarsMissingError, TimeoutError) as error:
            print(f"bench: {error}", file=sys.stderr)
            return 1
    if options.docs:
        write_docs(known)
    return 0


if __name__ == "__main__":
    sys.exit(main())
