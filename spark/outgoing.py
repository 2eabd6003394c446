"""A row of the sink as a message: columns checked once, properties put together row by row."""

import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa

from pyritemq.protocol.record import NAME_VALUE_SEPARATOR, PROPERTIES_MAX, PROPERTY_SEPARATOR
from pyritemq.spark.errors import OptionError, SparkSourceError

COLUMNS: Final = {
    "value": "a string or binary",
    "topic": "a string",
    "key": "a string",
    "tags": "a string",
    "properties": "a map of strings",
    "queueId": "an integer",
    "shardingKey": "a string",
    "delayTimeLevel": "an integer",
    "deliverTime": "a timestamp, or an integer of milliseconds",
    "idempotencyKey": "a string",
}
IDEMPOTENCY_KEY: Final = "IDEMPOTENCY_KEY"  # ours: consumers drop a message whose key they have had
_INTEGERS: Final = {"queueId", "delayTimeLevel"}
_RESERVED: Final = (NAME_VALUE_SEPARATOR, PROPERTY_SEPARATOR)


@dataclass(slots=True)
class OutMessage:
    """A message on its way to a broker."""

    topic: str
    body: bytes
    properties: str
    queue_id: int | None
    sharding_key: str | None
    alone: bool  # delayed messages do not travel in batches


def check_columns(schema: pa.Schema, *, topic: str | None) -> None:
    """Raises OptionError with one sentence."""
    for name in schema.names:
        if name not in COLUMNS:
            raise OptionError(
                f"column '{name}' cannot be written; the sink takes {', '.join(COLUMNS)}"
            )
        if not _fits(name, schema.field(name).type):
            raise OptionError(f"column '{name}' must be {COLUMNS[name]}")
    if "value" not in schema.names:
        raise OptionError("column 'value' is missing: the body of the message")
    if topic is None and "topic" not in schema.names:
        raise OptionError("a topic must be given: as option 'topic' or as a column 'topic'")
    if {"queueId", "shardingKey"} <= set(schema.names):
        raise OptionError("columns 'queueId' and 'shardingKey' exclude each other")
    if {"delayTimeLevel", "deliverTime"} <= set(schema.names):
        raise OptionError("columns 'delayTimeLevel' and 'deliverTime' exclude each other")


def _fits(name: str, kind: pa.DataType) -> bool:
    is_text, is_integer = pa.types.is_string, pa.types.is_integer
    if name == "value":
        return bool(is_text(kind) or pa.types.is_binary(kind))
    if name in _INTEGERS:
        return bool(is_integer(kind))
    if name == "deliverTime":
        return bool(pa.types.is_timestamp(kind) or is_integer(kind))
    if name == "properties":
        is_map = pa.types.is_map(kind)
        return bool(is_map and is_text(kind.key_type) and is_text(kind.item_type))
    return bool(is_text(kind))


class UniqueIds:
    """Message ids as producers make them: 32 hexadecimal digits, no two alike (UNIQ_KEY)."""

    def __init__(self) -> None:
        self._prefix = os.urandom(10).hex().upper()
        self._next = int.from_bytes(os.urandom(3), "big")

    def make(self) -> str:
        self._next += 1
        return f"{self._prefix}{self._next & 0xFFFFFFFFFFFF:012X}"


class MessageMaker:
    """Turns batches of rows into messages."""

    def __init__(self, topic: str | None, *, idempotency_prefix: str | None) -> None:
        self._topic = topic
        self._prefix = idempotency_prefix
        self._ids = UniqueIds()
        self._row = -1

    def messages(self, batch: pa.RecordBatch) -> Iterator[OutMessage]:
        check_columns(batch.schema, topic=self._topic)
        columns = {name: _values(batch.column(name)) for name in batch.schema.names}
        for at in range(batch.num_rows):
            self._row += 1
            yield self._message({name: values[at] for name, values in columns.items()})

    def _message(self, row: dict[str, Any]) -> OutMessage:
        topic = row.get("topic") or self._topic
        body = row["value"]
        if not topic:
            raise SparkSourceError(f"row {self._row} has no topic")
        if body is None:
            raise SparkSourceError(f"row {self._row} has no value (null)")
        properties = self._properties(row)
        delayed = row.get("delayTimeLevel") or row.get("deliverTime") is not None
        return OutMessage(
            topic,
            body.encode() if isinstance(body, str) else body,
            properties,
            row.get("queueId"),
            row.get("shardingKey"),
            bool(delayed),
        )

    def _properties(self, row: dict[str, Any]) -> str:
        pairs: dict[str, str] = {
            name: value for name, value in (row.get("properties") or ()) if value is not None
        }
        pairs["UNIQ_KEY"] = self._ids.make()
        pairs["WAIT"] = "true"
        for column, name in (("key", "KEYS"), ("tags", "TAGS"), ("shardingKey", "__SHARDINGKEY")):
            if row.get(column):
                pairs[name] = row[column]
        if row.get("delayTimeLevel"):
            pairs["DELAY"] = str(row["delayTimeLevel"])
        if row.get("deliverTime") is not None:
            pairs["TIMER_DELIVER_MS"] = str(row["deliverTime"])
        if row.get("idempotencyKey"):
            pairs[IDEMPOTENCY_KEY] = row["idempotencyKey"]
        elif self._prefix is not None:
            pairs[IDEMPOTENCY_KEY] = f"{self._prefix}-{self._row}"
        return self._join(pairs)

    def _join(self, pairs: dict[str, str]) -> str:
        for name, value in pairs.items():
            if any(mark in name or mark in value for mark in _RESERVED):
                raise SparkSourceError(
                    f"row {self._row}: property '{name!r}' holds a character 1 or 2, which "
                    "RocketMQ separates properties with"
                )
        text = "".join(f"{name}\x01{value}\x02" for name, value in pairs.items() if name)
        if len(text.encode()) > PROPERTIES_MAX:
            raise SparkSourceError(
                f"row {self._row}: the properties are longer than {PROPERTIES_MAX} bytes"
            )
        return text


def _values(column: pa.Array) -> list[Any]:
    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.timestamp("ms", tz=column.type.tz), safe=False).cast(pa.int64())
    values: list[Any] = column.to_pylist()
    return values


def now_ms() -> int:
    return time.time_ns() // 1_000_000
