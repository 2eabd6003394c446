"""The Java clients that drive a server: the official benchmark classes, and one for percentiles.

Clients get a full-grown JVM (no shortcuts for start-up), the same for every server.
"""

from __future__ import annotations

import itertools
import json
import re
from pathlib import Path
from typing import Any

from pyritemq.conformance.clients import EXAMPLES
from pyritemq.conformance.jars import class_path
from pyritemq.conformance.processes import Child, ChildError

CLIENT_FLAGS = ("-Xms512m", "-Xmx1g", "-XX:+UseG1GC")
BINARY_HEADERS = "-Drocketmq.serialize.type=ROCKETMQ"
"""What the official benchmark classes set for themselves."""

SECONDS_MAX = 600.0
"""No phase takes longer; one that does is broken, and the run ends with its log."""

_COMPLETE = re.compile(
    r"\[Complete\] Send Total: (?P<total>\d+) "
    r"(?:\| Send TPS: (?P<tps>\d+) \| "
    r"Max RT\(ms\): (?P<max>\d+) \| Average RT\(ms\):\s+(?P<average>[\d.]+|NaN) \| )?"
    r"Send Failed: (?P<failed>\d+) (?:\| )?Response Failed: (?P<refused>\d+)"
)
"""The Producer leaves rate and times out when it ran for less than two seconds."""
_CONSUMED = re.compile(r"Consume TPS: (\d+) \| AVG\(B2C\) RT\(ms\):\s+([\d.]+)")


class Drivers:
    """Starts clients against one name server; logs go under folder."""

    def __init__(self, folder: Path, namesrv: str) -> None:
        self._folder, self._namesrv = folder, namesrv
        self._numbers = itertools.count()

    def produce(self, topic: str, *, messages: int, threads: int, size: int) -> dict[str, float]:
        """Send with the official Producer, to its end; its own report."""
        with self.start_producer(topic, messages=messages, threads=threads, size=size) as run:
            match = run.wait_for_line(_COMPLETE.pattern, timeout=SECONDS_MAX)
        failed = int(match["failed"]) + int(match["refused"])
        return {
            "messages": int(match["total"]) - int(match["failed"]),
            "failed": failed,
            "messages_per_second": float(match["tps"] or "nan"),
            "average_ms": float(match["average"] or "nan"),
            "max_ms": float(match["max"] or "nan"),
        }

    def start_producer(self, topic: str, *, messages: int, threads: int, size: int) -> Child:
        """Start the official Producer; it ends by itself."""
        arguments = ["-t", topic, "-q", str(messages), "-w", str(threads), "-s", str(size)]
        return self._start(f"{EXAMPLES}.benchmark.Producer", [*arguments, "-n", self._namesrv])

    def consumer(self, topic: str, group: str) -> Child:
        """Start the official Consumer; it runs until it is stopped."""
        arguments = ["-t", topic, "-g", group, "-n", self._namesrv, "-ri", "1000"]
        return self._start(f"{EXAMPLES}.benchmark.Consumer", arguments)

    def latency(self, topic: str, *, threads: int, size: int, messages: int) -> dict[str, Any]:
        """Send with LatencyProducer, a third of the messages first to warm it up."""
        source = Path(__file__).parent / "java" / "LatencyProducer.java"
        numbers = [str(n) for n in (threads, size, messages, messages // 3)]
        with self._start(str(source), [self._namesrv, topic, *numbers]) as run:
            if run.wait(timeout=SECONDS_MAX):
                raise ChildError(f"LatencyProducer failed; see {run.log_path}")
            found: dict[str, Any] = json.loads(run.wait_for_line(r'\{"messages.*\}', timeout=1)[0])
            return found

    def _start(self, main: str, arguments: list[str]) -> Child:
        folder = self._folder / f"client-{next(self._numbers)}"
        logs = [f"-Drocketmq.log.root={folder}", f"-Duser.home={folder}", BINARY_HEADERS]
        command = ["java", *CLIENT_FLAGS, *logs, "-cp", class_path(), main, *arguments]
        return Child(Path(main).stem.rpartition(".")[2], command, folder=folder)


def born_to_consumed_ms(output: str) -> float:
    """The Consumer's average time from a message's birth to its consumption, over its reports."""
    reports = [(int(tps), float(ms)) for tps, ms in _CONSUMED.findall(output) if int(tps)]
    total = sum(tps for tps, _ in reports)
    return sum(tps * ms for tps, ms in reports) / total if total else float("nan")
