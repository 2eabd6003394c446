"""One server, once: start, memory, warm-up, send, latency, consume a backlog, live traffic, stop.

Everything that is measured of the server is read from /proc for its own processes: one for
PyriteMQ, name server and broker for RocketMQ. CPU per message is all CPU time of those processes
during a phase, divided by the messages of that phase.
"""

from __future__ import annotations

import math
import shutil
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bench.drivers import Drivers, born_to_consumed_ms
from bench.progress import BrokerProbe, steady_rate, watch_consumption
from pyritemq.conformance.servers.cluster import CLUSTERS, Cluster

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

TOPIC = "BenchBacklog"
LIVE_TOPIC = "BenchLive"
"""Not the Producer's default, BenchmarkTest, which a Java broker makes with 1024 queues at start:
these are made by their first message, with 4 queues, as an application's topics are."""
PHASES = ("send", "latency", "consume", "live")
SETTLE_SECONDS = 2.0
"""Between ready and the first look at memory, and after each load: late threads come to rest."""

REST_CPU_SHARE = 0.1
"""Of one core: a server that uses less than this for SETTLE_SECONDS is at rest; idle JVMs do."""
REST_SECONDS_MAX = 60.0


@dataclass(frozen=True)
class Plan:
    """How much of everything; the same for every server."""

    threads: int = 64
    size: int = 128
    warm_up_messages: int = 200_000
    messages: int = 400_000
    live_messages: int = 200_000
    latency_messages: int = 60_000
    single_thread_messages: int = 6_000
    phases: tuple[str, ...] = PHASES


class Run:
    """The phases of one server in one round; figures gather in .figures."""

    def __init__(
        self, cluster: Cluster, folder: Path, plan: Plan, say: Callable[[str], None]
    ) -> None:
        self._cluster, self._plan, self._say = cluster, plan, say
        self._drivers = Drivers(folder / "clients", cluster.namesrv)
        self.figures: dict[str, Any] = {"ready_seconds": round(cluster.ready_seconds, 3)}
        self.curves: dict[str, Any] = {}

    def all_phases(self) -> None:
        time.sleep(SETTLE_SECONDS)
        self._memory("fresh")
        self._warm_up()
        phases = {
            "send": self._send,
            "latency": self._latency,
            "consume": self._consume_backlog,
            "live": self._live,
        }
        for name in self._plan.phases:
            phases[name]()

    def _memory(self, when: str) -> None:
        for field, name in (("VmRSS", "rss"), ("RssAnon", "rss_anon")):
            self.figures[f"{name}_{when}_mib"] = round(self._cluster.memory_kib(field) / 1024, 1)

    def _note(self, name: str, value: float, unit: str = "") -> None:
        if math.isnan(value):  # too short a phase to tell: no figure is better than a wrong one
            return
        self.figures[name] = round(value, 3)
        self._say(f"    {name:32} {value:12,.2f} {unit}")

    def _warm_up(self) -> None:
        """Both servers get it; the JVM's compilers need it."""
        self._produce(TOPIC, self._plan.warm_up_messages)
        with self._drivers.consumer(TOPIC, "bench_warm_up"), self._probe() as probe:
            watch_consumption(probe, TOPIC, "bench_warm_up", probe.stored(TOPIC))

    def _produce(self, topic: str, messages: int) -> dict[str, float]:
        plan = self._plan
        return self._drivers.produce(topic, messages=messages, threads=plan.threads, size=plan.size)

    def _rest(self) -> float:
        """Wait until the server has nothing left to do; the CPU seconds it has used by then.

        What a send leaves for later (PyriteMQ's index) is neither lost nor put on another phase.
        """
        used = self._cluster.cpu_seconds()
        for _ in range(int(REST_SECONDS_MAX / SETTLE_SECONDS)):
            time.sleep(SETTLE_SECONDS)
            before, used = used, self._cluster.cpu_seconds()
            if used - before < REST_CPU_SHARE * SETTLE_SECONDS:
                break
        return used

    def _send(self) -> None:
        before = self._rest()
        report = self._produce(TOPIC, self._plan.messages)
        cpu = self._cluster.cpu_seconds() - before
        self._note("send_failed", report["failed"])
        self._note("send_per_second", report["messages_per_second"])
        self._note("send_cpu_us", cpu / report["messages"] * 1e6, "µs a message")
        self._note("send_average_ms", report["average_ms"], "ms")
        time.sleep(SETTLE_SECONDS)
        self._memory("after_send")
        late = self._rest() - before
        self._note("send_whole_cpu_us", late / report["messages"] * 1e6, "µs a message")

    def _latency(self) -> None:
        plan = self._plan
        for threads, messages in (
            (plan.threads, plan.latency_messages),
            (1, plan.single_thread_messages),
        ):
            found = self._drivers.latency(TOPIC, threads=threads, size=plan.size, messages=messages)
            for share in ("p50", "p99"):
                self._note(f"send_{share}_us_{threads}_threads", found[f"{share}_us"], "µs")

    def _consume_backlog(self) -> None:
        group = "bench_backlog"
        with self._probe() as probe:
            total = probe.stored(TOPIC)
            before = self._rest()
            with self._drivers.consumer(TOPIC, group):
                curve = watch_consumption(probe, TOPIC, group, total)
                cpu = self._cluster.cpu_seconds() - before
        self.curves["backlog"] = curve
        self.figures["backlog_messages"] = total
        self._note("consume_per_second", steady_rate(curve, total))
        self._note("consume_cpu_us", cpu / total * 1e6, "µs a message")
        self._memory("after_consume")

    def _live(self) -> None:
        """Producer and consumer at once; the topic exists before, so nobody waits for a route."""
        group, plan = "bench_live", self._plan
        self._produce(LIVE_TOPIC, plan.threads)
        with self._probe() as probe, self._drivers.consumer(LIVE_TOPIC, group) as consumer:
            # Not what was sent: on a loaded machine a first send may fail.
            watch_consumption(probe, LIVE_TOPIC, group, probe.stored(LIVE_TOPIC))
            before = self._cluster.cpu_seconds()
            report = self._produce(LIVE_TOPIC, plan.live_messages)
            watch_consumption(probe, LIVE_TOPIC, group, probe.stored(LIVE_TOPIC))
            cpu = self._cluster.cpu_seconds() - before
            self._note("live_per_second", report["messages_per_second"])
            self._note("live_cpu_us", cpu / plan.live_messages * 1e6, "µs a message")
            self._note("live_born_to_consumed_ms", born_to_consumed_ms(consumer.output()), "ms")

    def _probe(self) -> BrokerProbe:
        return BrokerProbe(self._cluster.broker)


def run_server(name: str, folder: Path, plan: Plan, say: Callable[[str], None]) -> dict[str, Any]:
    """Start one server on a fresh store, put it through all phases, stop it, remove the store."""
    folder.mkdir(parents=True)
    with CLUSTERS[name](folder) as cluster:
        say(f"  {name}: ready in {cluster.ready_seconds:.2f} s")
        run = Run(cluster, folder, plan, say)
        run.all_phases()
    shutil.rmtree(folder, ignore_errors=True)
    return {"figures": run.figures, "curves": run.curves, "settings": cluster.settings}
