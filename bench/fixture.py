"""How long a test waits for its server: a fixture cycle, and a start, beside the real broker's.

    python -m bench.fixture [--cycles 100] [--starts 5] [--docs]

A cycle is what each test pays: a topic is made and ten messages are sent (not counted), then the
server is reset, until the next test may begin. A start is from nothing to a server that answers.
With --docs the table is put in docs/testing-your-code.md.
"""

from __future__ import annotations

import argparse
import datetime
import os
import platform
import statistics
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from pyritemq.conformance.servers.cluster import java_cluster
from pyritemq.protocol.codes import RequestCode
from pyritemq.server.testing.calls import call
from pyritemq.testing import RocketMQ, rocketmq_server

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from contextlib import AbstractContextManager

DOCS = Path(__file__).parent.parent / "docs" / "testing-your-code.md"
BEGIN = "<!-- cycles: written by python -m bench.fixture --docs -->"
END = "<!-- end of cycles -->"

MESSAGES = 10
SEND = {
    "producerGroup": "bench",
    "topic": "Bench",
    "defaultTopic": "TBW102",
    "defaultTopicQueueNums": 4,
    "queueId": 0,
    "sysFlag": 0,
    "bornTimestamp": 1,
    "flag": 0,
    "properties": "",
}


def use(server: RocketMQ) -> None:
    server.create_topic("Bench")
    for _ in range(MESSAGES):
        call(server.broker, RequestCode.SEND_MESSAGE, SEND, b"x" * 100)


def cycle_times(server: RocketMQ, cycles: int) -> list[float]:
    found = []
    for _ in range(cycles):
        use(server)
        begin = time.perf_counter()
        server.reset()
        found.append(time.perf_counter() - begin)
    return found


def start_times(make: Callable[[], AbstractContextManager[object]], starts: int) -> list[float]:
    found = []
    for _ in range(starts):
        begin = time.perf_counter()
        with make():
            found.append(time.perf_counter() - begin)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cycles", type=int, default=100)
    parser.add_argument("--starts", type=int, default=5)
    parser.add_argument("--docs", action="store_true", help="put the table in the docs")
    options = parser.parse_args()
    rows: dict[str, list[float]] = {}
    with rocketmq_server("thread") as server:
        rows["cycle: reset, server in a thread"] = cycle_times(server, options.cycles)
    with rocketmq_server("process") as server:
        rows["cycle: reset, server as a process"] = cycle_times(server, options.cycles)
    rows["start: server in a thread"] = start_times(rocketmq_server, options.starts)
    rows["start: server as a process"] = start_times(
        lambda: rocketmq_server("process"), options.starts
    )
    with tempfile.TemporaryDirectory(prefix="pyritemq-bench-") as folder:
        numbers = iter(range(options.starts))
        rows["start: RocketMQ 5.5.0, name server and broker"] = start_times(
            lambda: java_cluster(Path(folder) / str(next(numbers))), options.starts
        )
    text = table(rows)
    print(text)
    if options.docs:
        page = DOCS.read_text(encoding="utf-8")
        head, _, rest = page.partition(BEGIN)
        DOCS.write_text(f"{head}{BEGIN}\n{text}\n{END}{rest.partition(END)[2]}", encoding="utf-8")


def table(rows: Mapping[str, Sequence[float]]) -> str:
    """Medians and worst cases, with where and when they were found."""
    where = f"{datetime.date.today()}, {os.cpu_count()} cores, Python {platform.python_version()}."
    lines = [where, "", "| what | median | slowest | runs |", "|---|---|---|---|"]
    for name, seconds in rows.items():
        median, worst = statistics.median(seconds) * 1000, max(seconds) * 1000
        lines.append(f"| {name} | {median:,.0f} ms | {worst:,.0f} ms | {len(seconds)} |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
