"""`df.write.format("rocketmq")` and `writeStream`: rows become messages.

At least once. A task that fails has sent some of its rows, and its retry sends them again: with
`idempotencyKey=auto` each row carries a property that is the same in every attempt, by which
consumers can drop twins.
"""

import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from pyritemq.spark.errors import OptionError
from pyritemq.spark.options import TIMEOUT_MS, GivenOptions
from pyritemq.spark.outgoing import MessageMaker, check_columns
from pyritemq.spark.sender import Sender

WRITE_OPTIONS: Final = ("namesrv", "topic", "idempotencyKey", "timeoutMs", "checkpointLocation")
_QUERY_ID: Final = "sql.streaming.queryId"  # Spark's names for what a task may ask for
_BATCH_ID: Final = "streaming.sql.batchId"


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkOptions:
    """What the user asked for."""

    namesrv: str
    topic: str | None
    idempotency: bool
    timeout_ms: int


def parse_sink_options(given: Mapping[str, str]) -> SinkOptions:
    """Raises OptionError."""
    if any(name.lower() == "path" for name in given):
        raise OptionError("a store folder is its broker's: write with option 'namesrv', not 'path'")
    options = GivenOptions(given, WRITE_OPTIONS)
    namesrv = options.addresses("namesrv")
    if namesrv is None:
        raise OptionError("option 'namesrv' must be given: host:port of a name server")
    word = options.text("idempotencyKey")
    if word not in (None, "auto", "none"):
        raise OptionError(f"option 'idempotencyKey' must be auto or none, not '{word}'")
    return SinkOptions(
        namesrv=namesrv,
        topic=options.text("topic"),
        idempotency=word == "auto",
        timeout_ms=options.number("timeoutMs") or TIMEOUT_MS,
    )


@dataclass
class Sent(WriterCommitMessage):
    """What a task reports: how many rows are stored."""

    rows: int


def _prefix(options: SinkOptions, run_id: str) -> str | None:
    """The same in every attempt of a task, and in a stream's batch that is run again."""
    if not options.idempotency:
        return None
    task = TaskContext.get()
    assert task is not None, "rows are written by tasks"
    query, batch = task.getLocalProperty(_QUERY_ID), task.getLocalProperty(_BATCH_ID)
    run = f"{query}-{batch}" if query and batch else run_id
    return f"{run}-{task.partitionId()}"


def _write(options: SinkOptions, run_id: str, batches: Iterator[pa.RecordBatch]) -> Sent:
    maker = MessageMaker(options.topic, idempotency_prefix=_prefix(options, run_id))
    sender = Sender(options.namesrv, timeout_ms=options.timeout_ms)
    try:
        for batch in batches:
            for message in maker.messages(batch):
                sender.send(message)
        sender.flush()
    finally:
        sender.close()
    return Sent(sender.stored)


class RocketMQWriter(DataSourceArrowWriter):
    """One batch write."""

    def __init__(self, options: SinkOptions, schema: StructType, *, overwrite: bool) -> None:
        if overwrite:
            raise OptionError("mode('overwrite') would delete a topic's messages; use append")
        check_columns(to_arrow_schema(schema), topic=options.topic)
        self._options = options
        self._run_id = uuid.uuid4().hex

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        return _write(self._options, self._run_id, iterator)


class RocketMQStreamWriter(DataSourceStreamArrowWriter):
    """A stream's writes."""

    def __init__(self, options: SinkOptions, schema: StructType) -> None:
        check_columns(to_arrow_schema(schema), topic=options.topic)
        self._options = options
        self._run_id = uuid.uuid4().hex

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        return _write(self._options, self._run_id, iterator)
