"""The store: RocketMQ's metrics of it, and ours for flush, puts and files."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

from pyritemq.server.broker.state.stats import PUT_TIME_BOUNDS_MS
from pyritemq.server.broker.timers.service import TimerService
from pyritemq.server.histogram import Histogram
from pyritemq.server.metrics.text import COUNTER, GAUGE, HISTOGRAM, Family

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyritemq.server.broker.broker import Broker

    Labels = dict[str, str]

TIMER_BOUNDS_S = (5, 60, 300, 900, 3600, 14400, 28800, 86400)
"""TimerMetrics.timerDist."""

NANOSECONDS = 1_000_000_000


def store_families(broker: Broker, labels: Labels) -> Iterator[Family]:
    """RocketMQ's."""
    store = broker.store
    log = store.commit_log
    yield _gauge("rocketmq_storage_size_bytes", "Used space of the disk", _used(broker), labels)
    behind = max(0, log.max_offset - log.flushed_where)
    yield _gauge("rocketmq_storage_flush_behind_bytes", "Bytes not synced yet", behind, labels)
    # Queues are written with their messages: they are never behind.
    yield _gauge("rocketmq_storage_dispatch_behind_bytes", "Bytes not in a queue yet", 0, labels)
    earliest_ms = store.earliest_time()
    if earliest_ms > 0:
        name = "rocketmq_storage_message_reserve_time_milliseconds"
        age_ms = max(0, broker.clock.now_ms() - earliest_ms)
        yield _gauge(name, "Age of the oldest message", age_ms, labels)
    if isinstance(broker.timers, TimerService):
        yield from _timers(broker.timers, labels)


def _timers(timers: TimerService, labels: Labels) -> Iterator[Family]:
    behind = timers.behind()
    gauges = {
        "rocketmq_timer_enqueue_lag": ("Timers not taken in yet", behind.in_messages),
        "rocketmq_timer_enqueue_latency_milliseconds": ("Age of the oldest of them", behind.in_ms),
        "rocketmq_timer_dequeue_lag": ("Timers that are due", behind.out_messages),
        "rocketmq_timer_dequeue_latency_milliseconds": ("How late they are", behind.out_ms),
    }
    for name, (text, value) in gauges.items():
        yield _gauge(name, text, value, labels)
    timing = Family("rocketmq_timing_messages", GAUGE, "Timers that wait, by topic")
    for topic, count in timers.metrics.counts().items():
        timing.add(count, labels | {"topic": topic})
    yield timing
    ahead = Family("rocketmq_timer_message_snapshot", GAUGE, "Timers by when they are due")
    for bound, count in zip(TIMER_BOUNDS_S, timers.ahead(TIMER_BOUNDS_S), strict=True):
        ahead.add(count, labels | {"timer_bound_s": str(bound)})
    yield ahead


def own_families(broker: Broker) -> Iterator[Family]:
    """Ours; they have the broker's name for a label."""
    labels = {"node_id": broker.config.broker_name}
    store, stats = broker.store, broker.stats
    log = store.commit_log
    yield _counter("pyritemq_store_syncs_total", "Syncs of the CommitLog", log.syncs.times, labels)
    seconds = log.syncs.elapsed_ns / NANOSECONDS
    yield _counter("pyritemq_store_sync_seconds_total", "Time they took", seconds, labels)
    held = log.max_offset - log.min_offset
    yield _gauge("pyritemq_store_commitlog_bytes", "Bytes in the CommitLog", held, labels)
    files = len(log.files.files)
    yield _gauge("pyritemq_store_commitlog_files", "Files of the CommitLog", files, labels)
    queues = len(store.queues.all_keys())
    yield _gauge("pyritemq_store_queues", "ConsumeQueues on disk", queues, labels)
    open_files = len(store.queues.files)
    yield _gauge("pyritemq_store_queue_files_open", "Their open files", open_files, labels)
    writable = int(store.is_writable)
    yield _gauge("pyritemq_store_writable", "1 while messages are taken", writable, labels)
    puts = Family("pyritemq_store_put_seconds", HISTOGRAM, "Time to store a batch, by message")
    puts.add_histogram(_put_times(broker), labels)
    yield puts
    failed = stats.put_failed_times
    yield _counter("pyritemq_store_put_failed_total", "Messages not stored", failed, labels)
    pulls = broker.long_polling.held_count
    yield _gauge("pyritemq_pulls_held", "Pulls that wait for messages", pulls, labels)


def _put_times(broker: Broker) -> Histogram:
    """The slots of Java's putMessageDistributeTime; each message waits for its whole batch."""
    histogram = Histogram([bound / 1000 for bound in PUT_TIME_BOUNDS_MS])
    histogram.slots = list(broker.stats.put_times)
    histogram.sum = broker.stats.put_time_total_ns / NANOSECONDS
    return histogram


def _used(broker: Broker) -> int:
    return shutil.disk_usage(broker.config.store_path_root_dir).used


def _gauge(name: str, text: str, value: float, labels: Labels) -> Family:
    return _with_one(Family(name, GAUGE, text), value, labels)


def _counter(name: str, text: str, value: float, labels: Labels) -> Family:
    return _with_one(Family(name, COUNTER, text), value, labels)


def _with_one(family: Family, value: float, labels: Labels) -> Family:
    family.add(value, labels)
    return family
