"""The one command: python -m bench. Runs the rounds, prints the table, saves JSON and SVG."""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import re
import shlex
import signal
import subprocess
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import Any

from bench.chart import draw
from bench.drivers import CLIENT_FLAGS
from bench.measure import PHASES, Plan, run_server
from bench.summary import OURS, THEIRS, summarise, table
from pyritemq.conformance.jars import JarsMissingError
from pyritemq.conformance.processes import ChildError

RESULTS = Path(__file__).parent / "results"
DOCS = Path(__file__).parent.parent / "docs" / "performance.md"
BEGIN, END = "<!-- figures: written by python -m bench --docs -->", "<!-- end of figures -->"
QUICK = Plan(
    warm_up_messages=60_000,
    messages=100_000,
    live_messages=60_000,
    latency_messages=20_000,
    single_thread_messages=2_000,
)


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m bench",
        description="Compare PyriteMQ with the real RocketMQ 5.5.0 on this machine, in one run.",
    )
    parser.add_argument("--rounds", type=int, default=3, help="how often each server runs [3]")
    parser.add_argument(
        "--servers", default=f"{THEIRS},{OURS}", help="comma-separated [rocketmq,pyritemq]"
    )
    parser.add_argument("--messages", type=int, help="messages of the measured send phase [400000]")
    parser.add_argument("--threads", type=int, help="sending threads [64]")
    parser.add_argument("--size", type=int, help="bytes of a message body [128]")
    parser.add_argument("--phases", help=f"comma-separated, some of [{','.join(PHASES)}]")
    parser.add_argument("--quick", action="store_true", help="fewer messages: a look, not a result")
    parser.add_argument(
        "--out", type=Path, default=RESULTS, help="folder of results [bench/results]"
    )
    parser.add_argument("--docs", action="store_true", help="put the table in docs/performance.md")
    parser.add_argument("--work", type=Path, help="folder for stores and logs [a temporary one]")
    return parser.parse_args(arguments)


def plan_of(options: argparse.Namespace) -> Plan:
    chosen = asdict(QUICK if options.quick else Plan())
    for name in ("messages", "threads", "size"):
        if getattr(options, name) is not None:
            chosen[name] = getattr(options, name)
    if options.phases:
        chosen["phases"] = tuple(options.phases.split(","))
    return Plan(**chosen)


def environment() -> dict[str, Any]:
    cpu = re.search(r"model name\s*:\s*(.+)", Path("/proc/cpuinfo").read_text(encoding="utf-8"))
    memory = re.search(r"MemTotal:\s*(\d+)", Path("/proc/meminfo").read_text(encoding="utf-8"))
    java = subprocess.run(["java", "-version"], capture_output=True, text=True, check=True)
    return {
        "date": datetime.datetime.now(tz=datetime.UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "cpu": cpu[1] if cpu else platform.machine(),
        "cores": len(os.sched_getaffinity(0)),
        "memory_gib": round(int(memory[1]) / 2**20, 1) if memory else None,
        "kernel": platform.release(),
        "python": platform.python_version(),
        "java": java.stderr.splitlines()[0],
        "clients": "official client 5.5.0, JVM " + " ".join(CLIENT_FLAGS),
    }


def run_rounds(servers: list[str], rounds: int, plan: Plan, work: Path) -> list[dict[str, Any]]:
    """Each round runs every server once; the order turns round, so that neither is always first."""
    results: list[dict[str, Any]] = []
    for number in range(rounds):
        print(f"round {number + 1} of {rounds}", flush=True)
        order = servers if number % 2 == 0 else servers[::-1]
        results.append(
            {name: run_server(name, work / f"{number}-{name}", plan, say=_say) for name in order}
        )
    return results


def save(result: dict[str, Any], folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    where, plan = result["environment"], result["plan"]
    about = (
        f"{where['cpu']}, {where['cores']} cores; {plan['threads']} threads, {plan['size']} B, "
        f"synchronous send, asynchronous flush; median of {len(result['rounds'])} rounds; "
        f"{where['date']}"
    )
    (folder / "latest.json").write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    chart = draw(result["summary"], "PyriteMQ and RocketMQ, side by side", about)
    (folder / "latest.svg").write_text(chart, encoding="utf-8")
    print(f"\nsaved {folder / 'latest.json'} and {folder / 'latest.svg'}")


def write_docs(result: dict[str, Any]) -> None:
    """Put table and circumstances between the markers of docs/performance.md."""
    where, plan = result["environment"], result["plan"]
    settings = "; ".join(f"{name}: {words}" for name, words in result["servers"].items())
    text = (
        f"`{result['command']}`, {where['date']}: {where['cpu']}, {where['cores']} cores, "
        f"{where['memory_gib']} GiB; Linux {where['kernel']}, Python {where['python']}, "
        f"{where['java']}. {plan['threads']} threads, {plan['size']}-byte messages, medians of "
        f"{len(result['rounds'])} rounds. Settings: {settings}.\n\n{table(result['summary'])}\n\n"
        "![The same as bars](../bench/results/latest.svg)\n"
    )
    page = DOCS.read_text(encoding="utf-8")
    begin, _, rest = page.partition(BEGIN)
    _, _, end = rest.partition(END)
    DOCS.write_text(f"{begin}{BEGIN}\n{text}{END}{end}", encoding="utf-8")


def _say(line: str) -> None:
    print(line, flush=True)


def main() -> int:
    options = parse(sys.argv[1:])
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that the children are stopped too
    servers = options.servers.split(",")
    plan = plan_of(options)
    unknown = {*servers} - {OURS, THEIRS} | {*plan.phases} - {*PHASES}
    if unknown:
        print(f"bench: no such server or phase: {', '.join(sorted(unknown))}", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory(prefix="pyritemq-bench-", dir=options.work) as work:
        try:
            rounds = run_rounds(servers, options.rounds, plan, Path(work))
        except (ChildError, JarsMissingError, TimeoutError) as error:
            print(f"bench: {error}", file=sys.stderr)
            return 1
    rows = summarise(rounds)
    result = {
        "command": shlex.join(["python", "-m", "bench", *sys.argv[1:]]),
        "environment": environment(),
        "plan": asdict(plan),
        "servers": {name: rounds[0][name]["settings"] for name in servers},
        "summary": rows,
        "rounds": rounds,
    }
    print("\n" + table(rows))
    save(result, options.out)
    if options.docs:
        write_docs(result)
    return 0


if __name__ == "__main__":
    sys.exit(main())
