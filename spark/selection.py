"""Which queues a query reads and where each starts and ends: options applied to what is there.

Shared by files and live brokers, by batch and streaming; runs on the driver only.
"""

import re
from collections.abc import Iterable
from typing import Final, Protocol

from pyritemq.spark.errors import DataLossError, OptionError
from pyritemq.spark.options import EARLIEST, Boundary, ByQueue, SourceOptions
from pyritemq.spark.queues import Offsets, QueueKey, QueueRange

# Java: TopicValidator
_SYSTEM_TOPICS: Final = frozenset(
    {
        "TBW102",
        "SCHEDULE_TOPIC_XXXX",
        "BenchmarkTest",
        "OFFSET_MOVED_EVENT",
        "SELF_TEST_TOPIC",
    }
)
_SYSTEM_PREFIX: Final = "rmq_sys_"
_BROKER_PREFIXES: Final = ("RMQ_SYS_", "CID_RMQ_SYS_")


def is_system_topic(topic: str) -> bool:
    return topic in _SYSTEM_TOPICS or topic.startswith((_SYSTEM_PREFIX, *_BROKER_PREFIXES))


class Catalogue(Protocol):
    """What the driver can ask a store or a cluster."""

    def queues(self, topics: Iterable[str] | None) -> list[QueueKey]:
        """The queues of these topics, or of all; a topic that does not exist has none."""

    def bounds(self, keys: Iterable[QueueKey]) -> dict[QueueKey, tuple[int, int]]:
        """First offset and the one behind the last, of each queue."""

    def offset_by_time(self, key: QueueKey, timestamp: int) -> int:
        """The first message stored at or after the time; the queue's end if there is none."""


def select_queues(options: SourceOptions, catalogue: Catalogue) -> list[QueueKey]:
    """Raises OptionError for a topic or queue that does not exist."""
    if options.assign is not None:
        return _assigned(options.assign, catalogue.queues(options.assign))
    if options.topics is not None:
        found = catalogue.queues(options.topics)
        _refuse_missing(options.topics, found)
        return found
    pattern = re.compile(options.pattern or "")
    return [
        key
        for key in catalogue.queues(None)
        if pattern.fullmatch(key.topic)
        and (options.include_system_topics or not is_system_topic(key.topic))
    ]


def _refuse_missing(topics: Iterable[str], found: list[QueueKey]) -> None:
    there = {key.topic for key in found}
    for topic in topics:
        if topic not in there:
            raise OptionError(f"topic '{topic}' does not exist, or has no queue yet")


def _assigned(
    assign: dict[str, list[tuple[str | None, int]]], found: list[QueueKey]
) -> list[QueueKey]:
    _refuse_missing(assign, found)
    chosen: list[QueueKey] = []
    for topic, names in assign.items():
        for name in names:
            keys = [key for key in found if key.topic == topic and _matches(key, name)]
            if not keys:
                raise OptionError(f"option 'assign': topic '{topic}' has no queue {_show(name)}")
            chosen += keys
    return sorted(set(chosen))


def _matches(key: QueueKey, name: tuple[str | None, int]) -> bool:
    return key.queue_id == name[1] and name[0] in (None, key.broker)


def _show(name: tuple[str | None, int]) -> str:
    return f"{name[0]}:{name[1]}" if name[0] else str(name[1])


def resolve(
    boundary: Boundary, keys: list[QueueKey], catalogue: Catalogue, *, option: str
) -> Offsets:
    """One offset for each queue; those given by number are not yet held against the bounds."""
    bounds = catalogue.bounds(keys)
    if boundary.everywhere is not None:
        side = 0 if boundary.everywhere == EARLIEST else 1
        return {key: bounds[key][side] for key in keys}
    if boundary.timestamp is not None:
        return {key: catalogue.offset_by_time(key, boundary.timestamp) for key in keys}
    if boundary.timestamp_by_queue is not None:
        times = _spread(boundary.timestamp_by_queue, keys, f"{option}OffsetsByTimestamp")
        return {key: catalogue.offset_by_time(key, time) for key, time in times.items()}
    numbers = _spread(boundary.by_queue or {}, keys, f"{option}Offsets")
    return {
        key: number if number >= 0 else bounds[key][0 if number == EARLIEST else 1]
        for key, number in numbers.items()
    }


def _spread(by_queue: ByQueue, keys: list[QueueKey], option: str) -> Offsets:
    """Numbers given by topic and queue, for each queue; all must be covered, as in Kafka's."""
    result: Offsets = {}
    for topic, queues in by_queue.items():
        for name, number in queues.items():
            matching = [key for key in keys if key.topic == topic and _matches(key, name)]
            if not matching:
                raise OptionError(
                    f"option '{option}' names {topic}/{_show(name)}, which is not among the "
                    "queues that are read"
                )
            if len(matching) > 1:
                brokers = ", ".join(key.broker for key in matching)
                raise OptionError(
                    f"option '{option}': queue {name[1]} of '{topic}' is on several brokers "
                    f"({brokers}); write broker:{name[1]}"
                )
            result[matching[0]] = number
    for key in keys:
        if key not in result:
            raise OptionError(f"option '{option}' lacks queue {key}; every queue must be given")
    return result


def make_ranges(
    starts: Offsets,
    ends: Offsets,
    bounds: dict[QueueKey, tuple[int, int]],
    *,
    fail_on_data_loss: bool,
) -> list[QueueRange]:
    """What to read of each queue. What is not there raises DataLossError, or is left out."""
    ranges: list[QueueRange] = []
    for key, end in ends.items():
        start = starts[key]
        low, high = bounds.get(key, (0, 0))
        problem = _problem(key, start, end, low, high)
        if problem and fail_on_data_loss:
            raise DataLossError(
                f"{problem}; they may have expired, or the topic was made anew "
                "(failOnDataLoss=false reads what is there)"
            )
        # a topic made anew has offsets below the old ones: all of it is unread
        first = low if start > high else min(max(start, low), high)
        last = high if start > high else min(max(end, first), high)
        ranges.append(QueueRange(key, first, last))
    return [each for each in ranges if each.size > 0]


def _problem(key: QueueKey, start: int, end: int, low: int, high: int) -> str:
    if start < low and end > start:
        return f"messages {start} to {min(low, end) - 1} of {key} are gone: it begins at {low}"
    if max(start, end) > high:
        return f"messages up to {max(start, end) - 1} of {key} are asked for, but it ends at {high}"
    return ""
