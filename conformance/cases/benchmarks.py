"""The official benchmark as it is, for a short run."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pyritemq.conformance import steps
from pyritemq.conformance.catalogue import TOOLS, case, family
from pyritemq.conformance.clients import wait_until

if TYPE_CHECKING:
    from pyritemq.conformance.trial import Trial

family("BENCH", "Official benchmark")
SECONDS = 120.0
TPS = re.compile(r"Send TPS: *(\d+)|SendTPS: *(\d+)|Send TPS:(\d+)|Consume TPS: *(\d+)|TPS: *(\d+)")


def _benchmark(t: Trial, name: str, *arguments: str) -> None:
    """Start a benchmark class, wait for a line with figures above zero, and stop it."""
    program = t.program(f"benchmark.{name}", "-n", t.namesrv, *arguments)
    output = wait_until(program, lambda text: any(_figures(text)), timeout=SECONDS)
    figures = _figures(output)
    t.true("figures", any(figures), output[-500:])


def _figures(text: str) -> list[int]:
    return [int(next(filter(None, found))) for found in TPS.findall(text)]


def _stored(t: Trial, topic: str) -> bool:
    return steps.stored(t, topic) > 0


@case("BENCH-001", "Producer", source="benchmark: Producer", run_with=TOOLS)
def bench_producer(t: Trial) -> None:
    """benchmark.Producer prints a rate above zero, and its topic has messages."""
    topic = t.topic()
    _benchmark(t, "Producer", "-t", topic, "-w", "4", "-s", "128")
    t.eventually("stored", lambda: _stored(t, topic), True)


@case("BENCH-002", "Consumer", source="benchmark: Consumer", run_with=TOOLS)
def bench_consumer(t: Trial) -> None:
    """benchmark.Consumer prints a rate above zero while benchmark.Producer sends."""
    topic, group = t.topic(), t.group()
    t.program("benchmark.Producer", "-n", t.namesrv, "-t", topic, "-w", "1", "-s", "128")
    _benchmark(t, "Consumer", "-t", topic, "-g", group, "-p", "false")


@case("BENCH-003", "BatchProducer", source="benchmark: BatchProducer", run_with=TOOLS)
def bench_batch(t: Trial) -> None:
    """benchmark.BatchProducer prints a rate above zero, and its topic has messages."""
    topic = t.topic()
    _benchmark(t, "BatchProducer", "-t", topic, "-w", "2", "-s", "128", "-b", "16")
    t.eventually("stored", lambda: _stored(t, topic), True)


@case("BENCH-004", "TransactionProducer", source="benchmark: TransactionProducer", run_with=TOOLS)
def bench_transactions(t: Trial) -> None:
    """benchmark.TransactionProducer prints a rate above zero, and its topic has messages."""
    topic = t.topic()
    _benchmark(t, "TransactionProducer", "-t", topic, "-w", "2", "-s", "128")
    t.eventually("stored", lambda: _stored(t, topic), True)
