"""GET_BROKER_RUNTIME_INFO: the broker in some fifty lines, under Java's names.  Lane ADMIN.

Dashboards and the exporter read the keys by name, so all of Java's are there; what has no meaning
here (transient buffers, a dispatch that lags behind) has the value of a Java broker at rest.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from pyritemq.compat import fastjson
from pyritemq.compat.versions import CURRENT_VERSION, version_name
from pyritemq.protocol.codes import RequestCode
from pyritemq.server.broker.state import names
from pyritemq.server.broker.state.stats import PUT_TIME_BOUNDS_MS
from pyritemq.server.lanes import Lane
from pyritemq.server.registry import Request, broker_handlers

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyritemq.protocol.command import Command
    from pyritemq.server.broker.broker import Broker
    from pyritemq.server.broker.state.stats import BrokerStats, Totals

PUT_TIME_NAMES = (
    "[<=0ms]",
    "[0~10ms]",
    "[10~50ms]",
    "[50~100ms]",
    "[100~200ms]",
    "[200~500ms]",
    "[500ms~1s]",
    "[1~2s]",
    "[2~3s]",
    "[3~4s]",
    "[4~5s]",
    "[5~10s]",
    "[10s~]",
)
assert len(PUT_TIME_NAMES) == len(PUT_TIME_BOUNDS_MS) + 1

RATE_SECONDS = (10, 60, 600)
JAVA_INT_MAX = 0x7FFFFFFF
_UNITS = "KMGTPE"


@broker_handlers.handles(RequestCode.GET_BROKER_RUNTIME_INFO, None, lane=Lane.ADMIN)
def get_broker_runtime_info(broker: Broker, request: Request[None]) -> Command:
    return request.reply(body=fastjson.dumps({"table": runtime_info(broker)}))


def runtime_info(broker: Broker) -> dict[str, str]:
    """Java's HashMap of texts."""
    return {
        **_store_rates(broker.stats, broker.clock.now_ms()),
        **_disk(broker),
        **_delay_offsets(broker),
        **_message_totals(broker.stats),
        **_lanes(broker),
        **_at_rest(),
        **broker.timers.runtime(),
        "brokerActive": "true",
        "brokerVersionDesc": version_name(CURRENT_VERSION),
        "earliestMessageTimeStamp": str(broker.store.earliest_time()),
        "remainHowManyDataToFlush": human_bytes(_unflushed_bytes(broker)),
        "startAcceptSendRequestTimeStamp": str(broker.config.start_accept_send_request_time_stamp),
    }


def _store_rates(stats: BrokerStats, now_ms: int) -> dict[str, str]:
    totals = stats.totals()
    times_total = max(totals.puts, 1)
    return {
        "bootTimestamp": str(stats.boot_timestamp),
        "runtime": format_runtime(now_ms - stats.boot_timestamp),
        "putMessageEntireTimeMax": str(stats.put_time_max_ms),
        "putMessageTimesTotal": str(times_total),
        "putMessageFailedTimes": str(stats.put_failed_times),
        "putMessageSizeTotal": str(stats.put_size_total),
        "putMessageAverageSize": str(stats.put_size_total / times_total),
        "putMessageDistributeTime": "".join(
            f"{name}:{count} " for name, count in zip(PUT_TIME_NAMES, stats.put_times, strict=True)
        ),
        "putTps": _rates(stats, lambda sample: sample.puts),
        "getFoundTps": _rates(stats, lambda sample: sample.found_times),
        "getMissTps": _rates(stats, lambda sample: sample.miss_times),
        "getTotalTps": _rates(
            stats, lambda sample: sample.found_times + sample.miss_times, unknown="0.0"
        ),
        "getTransferredTps": _rates(stats, lambda sample: sample.transferred),
        "putLatency99": f"{stats.put_time_percentile(0.99):.2f}",
        "putLatency999": f"{stats.put_time_percentile(0.999):.2f}",
    }


def _rates(stats: BrokerStats, value: Callable[[Totals], int], *, unknown: str = "") -> str:
    """Messages or pulls a second over 10, 60 and 600 seconds, as far as they are known yet."""
    texts = []
    for seconds in RATE_SECONDS:
        samples = stats.before(seconds)
        if samples is None:
            texts.append(unknown)
            continue
        first, last = samples
        elapsed_ms = max(last.timestamp - first.timestamp, 1)
        texts.append(str((value(last) - value(first)) * 1000 / elapsed_ms))
    return " ".join(texts)


def _disk(broker: Broker) -> dict[str, str]:
    queues = Path(broker.config.store_path_root_dir) / "consumequeue"
    ratios = {folder: disk_ratio(Path(folder)) for folder in broker.config.commit_log_dirs}
    whole = os.statvfs(broker.config.store_path_root_dir)
    return {
        "commitLogDiskRatio": str(min(ratios.values())),
        **{f"commitLogDiskRatio_{folder}": str(ratio) for folder, ratio in ratios.items()},
        "consumeQueueDiskRatio": str(disk_ratio(queues)),
        "commitLogMinOffset": str(broker.store.min_phy_offset),
        "commitLogMaxOffset": str(broker.store.max_phy_offset),
        "commitLogDirCapacity": (
            f"Total : {human_bytes(whole.f_blocks * whole.f_frsize)}, "
            f"Free : {human_bytes(whole.f_bfree * whole.f_frsize)}."
        ),
    }


def disk_ratio(path: Path) -> float:
    """The used part of a path's disk, rounded up to whole percents as Java does; -1 if unknown."""
    try:
        usage = shutil.disk_usage(path)
    except OSError:
        return -1.0
    entire = usage.used + usage.free
    return -(-usage.used * 100 // entire) / 100 if entire else -1.0


def _delay_offsets(broker: Broker) -> dict[str, str]:
    """How far each delay level has come, of how much."""
    store = broker.store
    return {
        f"scheduleMessageOffset_{level}": (
            f"{offset},{store.max_offset(names.SCHEDULE_TOPIC, level - 1)}"
        )
        for level, offset in broker.delays.offsets.snapshot().offsets.items()
    }


def _message_totals(stats: BrokerStats) -> dict[str, str]:
    now = stats.now()
    return {
        "msgPutTotalYesterdayMorning": str(stats.yesterday_morning.puts),
        "msgPutTotalTodayMorning": str(stats.this_morning.puts),
        "msgPutTotalTodayNow": str(now.puts),
        "msgGetTotalYesterdayMorning": str(stats.yesterday_morning.gets),
        "msgGetTotalTodayMorning": str(stats.this_morning.gets),
        "msgGetTotalTodayNow": str(now.gets),
    }


def _lanes(broker: Broker) -> dict[str, str]:
    """Java's thread pools by the names that it shows; lite pulls share the pull lane here."""
    config = broker.config
    pools = {
        "send": (Lane.SEND, config.send_thread_pool_queue_capacity),
        "pull": (Lane.PULL, config.pull_thread_pool_queue_capacity),
        "litePull": (Lane.PULL, config.lite_pull_thread_pool_queue_capacity),
        "query": (Lane.QUERY, config.query_thread_pool_queue_capacity),
        "ack": (Lane.ACK, config.ack_thread_pool_queue_capacity),
    }
    table = {
        "EndTransactionQueueSize": str(_queued(broker, Lane.TRANSACTION)),
        "EndTransactionThreadPoolQueueCapacity": str(config.end_transaction_pool_queue_capacity),
    }
    for name, (lane, capacity) in pools.items():
        table[f"{name}ThreadPoolQueueSize"] = str(_queued(broker, lane))
        table[f"{name}ThreadPoolQueueCapacity"] = str(capacity)
        table[f"{name}ThreadPoolQueueHeadWaitTimeMills"] = "0"
    return table


def _queued(broker: Broker, lane: Lane) -> int:
    """Requests that wait; a lane that no handler belongs to does not exist."""
    pool = broker.lanes.get(lane)
    return 0 if pool is None else pool.statistics().queued


def _at_rest() -> dict[str, str]:
    return {
        "dispatchBehindBytes": "0",
        "dispatchMaxBuffer": "0",
        "getMessageEntireTimeMax": "0",
        "pageCacheLockTimeMills": "0",
        "remainTransientStoreBufferNumbs": str(JAVA_INT_MAX),
        "timerReadBehind": "0",
        "timerOffsetBehind": "0",
        "timerCongestNum": "0",
        "timerEnqueueTps": "0.0",
        "timerDequeueTps": "0.0",
    }


def _unflushed_bytes(broker: Broker) -> int:
    log = broker.store.commit_log
    return max(0, log.max_offset - log.flushed_where)


def format_runtime(elapsed_ms: int) -> str:
    """Java's MessageFormat of days, hours, minutes and seconds."""
    minutes, seconds = divmod(max(elapsed_ms, 0) // 1000, 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    return f"[ {days:,} days, {hours} hours, {minutes} minutes, {seconds} seconds ]"


def human_bytes(count: int) -> str:
    """Java's MixAll.humanReadableByteCount, in powers of 1024."""
    if count < 1024:
        return f"{count} B"
    value, power = float(count), 0
    while value >= 1024 and power < len(_UNITS):
        value /= 1024
        power += 1
    return f"{value:.1f} {_UNITS[power - 1]}iB"
