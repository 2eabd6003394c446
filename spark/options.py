"""The options of the source, read and checked on the driver before any job runs.

Names and meanings are those of Spark's Kafka source where there is a counterpart. Whatever is
mistyped, missing or contradictory raises OptionError with one sentence.
"""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, Final

from pyritemq.spark.columns import ALL_COLUMNS, parse_columns
from pyritemq.spark.errors import OptionError

READ_OPTIONS: Final = (
    "path",
    "namesrv",
    "brokerName",
    "subscribe",
    "subscribePattern",
    "assign",
    "startingOffsets",
    "endingOffsets",
    "startingTimestamp",
    "endingTimestamp",
    "startingOffsetsByTimestamp",
    "endingOffsetsByTimestamp",
    "minPartitions",
    "maxRecordsPerPartition",
    "maxPartitionBytes",
    "failOnDataLoss",
    "includeSystemTopics",
    "columns",
    "inflate",
    "maxOffsetsPerTrigger",
    "minOffsetsPerTrigger",
    "maxBytesPerTrigger",
    "groupId",
    "timeoutMs",
)
STREAM_ONLY: Final = (
    "maxOffsetsPerTrigger",
    "minOffsetsPerTrigger",
    "maxBytesPerTrigger",
    "groupId",
)
BATCH_ONLY: Final = ("endingOffsets", "endingTimestamp", "endingOffsetsByTimestamp")

EARLIEST: Final = -2
LATEST: Final = -1
PARTITION_BYTES: Final = 128 << 20  # as spark.sql.files.maxPartitionBytes
TIMEOUT_MS: Final = 10_000

QueueName = tuple[str | None, int]  # broker, where it is named, and queue id
ByQueue = dict[str, dict[QueueName, int]]  # by topic


@dataclass(frozen=True, slots=True, kw_only=True)
class Boundary:
    """Where reading starts or ends: one word for all queues, offsets by queue, or times."""

    everywhere: int | None = None  # EARLIEST or LATEST
    by_queue: ByQueue | None = None  # offsets, EARLIEST and LATEST among them
    timestamp: int | None = None  # milliseconds, all queues
    timestamp_by_queue: ByQueue | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceOptions:
    """What the user asked for."""

    path: str | None
    namesrv: str | None
    broker_name: str | None
    topics: tuple[str, ...] | None
    pattern: str | None
    assign: dict[str, list[QueueName]] | None
    starting: Boundary
    ending: Boundary
    min_partitions: int
    max_records_per_partition: int | None
    max_partition_bytes: int
    fail_on_data_loss: bool
    include_system_topics: bool
    columns: tuple[str, ...]
    inflate: bool
    max_offsets_per_trigger: int | None
    min_offsets_per_trigger: int | None
    max_bytes_per_trigger: int | None
    group_id: str | None
    timeout_ms: int


class GivenOptions:
    """Options by lower-case name, as Spark hands them over, with readers for each kind."""

    def __init__(self, given: Mapping[str, str], known: tuple[str, ...]) -> None:
        self._given = {name.lower(): str(value) for name, value in given.items()}
        by_lower = {name.lower(): name for name in known}
        for name in self._given:
            if name not in by_lower:
                close = get_close_matches(name, by_lower, n=1)
                hint = f"; did you mean '{by_lower[close[0]]}'?" if close else ""
                raise OptionError(f"option '{name}' is unknown{hint}")

    def has(self, name: str) -> bool:
        return name.lower() in self._given

    def text(self, name: str) -> str | None:
        value = self._given.get(name.lower())
        if value is not None and not value.strip():
            raise OptionError(f"option '{name}' is empty")
        return None if value is None else value.strip()

    def number(self, name: str, *, at_least: int = 1) -> int | None:
        value = self.text(name)
        if value is None:
            return None
        try:
            number = int(value)
        except ValueError:
            raise OptionError(f"option '{name}' must be a whole number, not '{value}'") from None
        if number < at_least:
            raise OptionError(f"option '{name}' must be at least {at_least}, not {number}")
        return number

    def flag(self, name: str, *, default: bool) -> bool:
        value = self.text(name)
        if value is None:
            return default
        if value.lower() not in ("true", "false"):
            raise OptionError(f"option '{name}' must be true or false, not '{value}'")
        return value.lower() == "true"

    def addresses(self, name: str) -> str | None:
        """`host:port`, several separated by semicolons."""
        text = self.text(name)
        for address in (text or "").split(";") if text else ():
            host, _, port = address.strip().rpartition(":")
            if not host or not port.isdecimal() or not 0 < int(port) < 65536:
                raise OptionError(f"option '{name}' must be host:port;host:port…, not '{text}'")
        return text

    def one_of(self, *names: str) -> str | None:
        """Which of these is given; at most one may be."""
        given = [name for name in names if self.has(name)]
        if len(given) > 1:
            raise OptionError(f"options '{given[0]}' and '{given[1]}' exclude each other")
        return given[0] if given else None


def parse_source_options(given: Mapping[str, str], *, streaming: bool | None) -> SourceOptions:
    """Raises OptionError. Streaming is None where Spark has not yet said which it is."""
    options = GivenOptions(given, READ_OPTIONS)
    _check_mode(options, streaming=streaming)
    if options.one_of("path", "namesrv") is None:
        raise OptionError("one of the options 'path' (a store folder) and 'namesrv' must be given")
    if options.one_of("subscribe", "subscribePattern", "assign") is None:
        raise OptionError(
            "one of the options 'subscribe', 'subscribePattern' and 'assign' must be given; "
            "subscribePattern='.*' reads every topic"
        )
    columns = options.text("columns")
    lowest, highest = (
        options.number("minOffsetsPerTrigger"),
        options.number("maxOffsetsPerTrigger"),
    )
    if lowest is not None and highest is not None and lowest > highest:
        raise OptionError("option 'minOffsetsPerTrigger' is larger than 'maxOffsetsPerTrigger'")
    return SourceOptions(
        path=options.text("path"),
        namesrv=options.addresses("namesrv"),
        broker_name=options.text("brokerName"),
        topics=_topics(options.text("subscribe")),
        pattern=_pattern(options.text("subscribePattern")),
        assign=_assign(options.text("assign")),
        starting=_boundary(options, "starting", LATEST if streaming else EARLIEST, streaming),
        ending=_boundary(options, "ending", LATEST, streaming),
        min_partitions=options.number("minPartitions") or 1,
        max_records_per_partition=options.number("maxRecordsPerPartition"),
        max_partition_bytes=options.number("maxPartitionBytes") or PARTITION_BYTES,
        fail_on_data_loss=options.flag("failOnDataLoss", default=True),
        include_system_topics=options.flag("includeSystemTopics", default=False),
        columns=ALL_COLUMNS if columns is None else parse_columns(columns),
        inflate=options.flag("inflate", default=True),
        max_offsets_per_trigger=highest,
        min_offsets_per_trigger=lowest,
        max_bytes_per_trigger=options.number("maxBytesPerTrigger"),
        group_id=options.text("groupId"),
        timeout_ms=options.number("timeoutMs") or TIMEOUT_MS,
    )


def _check_mode(options: GivenOptions, *, streaming: bool | None) -> None:
    wrong, where = (BATCH_ONLY, "batch") if streaming else (STREAM_ONLY, "streaming")
    for name in wrong:
        if streaming is not None and options.has(name):
            raise OptionError(f"option '{name}' is for {where} queries only")
    if options.has("namesrv") and options.has("brokerName"):
        raise OptionError("option 'brokerName' names a store folder's broker; brokers tell theirs")
    if options.has("path") and options.has("groupId"):
        raise OptionError("option 'groupId' commits offsets to brokers: it needs 'namesrv'")


def _topics(text: str | None) -> tuple[str, ...] | None:
    if text is None:
        return None
    topics = tuple(part.strip() for part in text.split(","))
    if not all(topics):
        raise OptionError(f"option 'subscribe' has an empty topic name: '{text}'")
    return tuple(dict.fromkeys(topics))


def _pattern(text: str | None) -> str | None:
    try:
        re.compile(text or "")
    except re.error as error:
        raise OptionError(f"option 'subscribePattern' is no regular expression: {error}") from None
    return text


def _json(name: str, text: str) -> dict[str, Any]:
    try:
        tree = json.loads(text)
    except ValueError as error:
        raise OptionError(f"option '{name}' is no JSON: {error}") from None
    if not isinstance(tree, dict):
        raise OptionError(f"option '{name}' must look like {{\"topic\": …}}")
    return tree


def _queue_name(name: str, text: object) -> QueueName:
    """`3`, or `broker-a:3` where several brokers have the topic."""
    broker, _, queue_id = str(text).rpartition(":")
    if isinstance(text, bool) or not queue_id.isdecimal():
        raise OptionError(f"option '{name}' must name queues as 3 or broker:3, not {text!r}")
    return broker or None, int(queue_id)


def _assign(text: str | None) -> dict[str, list[QueueName]] | None:
    if text is None:
        return None
    tree = _json("assign", text)
    for topic, queues in tree.items():
        if not isinstance(queues, list) or not queues:
            raise OptionError(f"option 'assign' must list queue ids of '{topic}', as [0, 1]")
    return {
        topic: [_queue_name("assign", queue) for queue in queues] for topic, queues in tree.items()
    }


def _by_queue(name: str, text: str, check: Callable[[int], bool], what: str) -> ByQueue:
    result: ByQueue = {}
    for topic, queues in _json(name, text).items():
        if not isinstance(queues, dict):
            raise OptionError(f"option '{name}' must give '{topic}' an object of queues")
        result[topic] = {}
        for queue, number in queues.items():
            if not isinstance(number, int) or isinstance(number, bool) or not check(number):
                raise OptionError(f"option '{name}': {topic}/{queue} must be {what}, not {number}")
            result[topic][_queue_name(name, queue)] = number
    return result


def _boundary(options: GivenOptions, side: str, default: int, streaming: bool | None) -> Boundary:
    """Offsets, one time, or times by queue; `side` is starting or ending."""
    given = options.one_of(f"{side}Offsets", f"{side}Timestamp", f"{side}OffsetsByTimestamp")
    if given is None:
        return Boundary(everywhere=default)
    if given == f"{side}Timestamp":
        return Boundary(timestamp=options.number(given, at_least=0))
    text = options.text(given) or ""
    if given == f"{side}OffsetsByTimestamp":
        times = _by_queue(given, text, lambda number: number >= 0, "a time in milliseconds")
        return Boundary(timestamp_by_queue=times)
    return _offsets(given, text, side, streaming)


def _offsets(name: str, text: str, side: str, streaming: bool | None) -> Boundary:
    word = text.lower()
    if word in ("earliest", "latest"):
        wrong = "latest" if side == "starting" else "earliest"
        if word == wrong and streaming is False:
            raise OptionError(f"option '{name}' cannot be {word} in a batch query: nothing is left")
        return Boundary(everywhere=EARLIEST if word == "earliest" else LATEST)
    if not text.startswith("{"):
        raise OptionError(f"option '{name}' must be earliest, latest or JSON, not '{text}'")
    what = "an offset, -2 (earliest) or -1 (latest)"
    return Boundary(by_queue=_by_queue(name, text, lambda number: number >= EARLIEST, what))
