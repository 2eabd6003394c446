"""Records to an Arrow batch of the source's columns, many rows at a time.

The same for records in CommitLog files and in PULL replies: a buffer, and where in it the records
lie. Only the columns that are asked for are made.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyritemq.protocol.record import BORNHOST_V6, COMPRESSED, STOREHOSTADDRESS_V6
from pyritemq.spark.bodies import inflate_rows
from pyritemq.spark.columns import TIMESTAMP, arrow_schema
from pyritemq.spark.gather import AnyArray, Bytes, gather_binary
from pyritemq.spark.hosts import host_column, offset_message_ids
from pyritemq.spark.properties import Pairs, split_properties
from pyritemq.spark.record_heads import Heads

UNIQ_KEY = "UNIQ_KEY"  # the id that the producer gave; Java's consumers show it as the message id


@dataclass
class Rows:
    """A batch: heads that passed their checks, and what a row does not say of itself."""

    data: Bytes
    heads: Heads
    topics: pa.Array  # by row
    broker_name: str
    queue_offsets: AnyArray  # the queue's own, which in a light queue (%LMQ%) is not the record's
    inflate: bool = True

    @cached_property
    def pairs(self) -> Pairs:
        heads = self.heads
        return split_properties(
            gather_binary(self.data, heads.properties_at, heads.properties_length)
        )

    @property
    def stored_on_v6(self) -> AnyArray:
        is_v6: AnyArray = (self.heads["sys_flag"] & STOREHOSTADDRESS_V6) != 0
        return is_v6


def _plain(field: str) -> Callable[[Rows], pa.Array]:
    return lambda rows: pa.array(rows.heads[field])


def _time(field: str) -> Callable[[Rows], pa.Array]:
    # whatever a client wrote there: a time that does not fit wraps around rather than fails
    return lambda rows: pa.array(rows.heads[field] * 1000).cast(TIMESTAMP)


def _property(name: str) -> Callable[[Rows], pa.Array]:
    return lambda rows: rows.pairs.column(name)


def _value(rows: Rows) -> pa.Array:
    heads = rows.heads
    values = gather_binary(rows.data, heads.body_at, heads["body_length"].astype(np.int64))
    return inflate_rows(values, heads["sys_flag"]) if rows.inflate else values


def _sys_flag(rows: Rows) -> pa.Array:
    """Says whether `value` is compressed, as Java's MessageDecoder leaves it."""
    flags = rows.heads["sys_flag"]
    return pa.array(flags & ~np.int32(COMPRESSED) if rows.inflate else flags)


def _message_id(rows: Rows) -> pa.Array:
    given = rows.pairs.column(UNIQ_KEY)
    if not given.null_count:
        return given
    heads = rows.heads
    made = offset_message_ids(heads["store_host"], rows.stored_on_v6, heads["phy_offset"])
    return pc.coalesce(given, made)


def _born_host(rows: Rows) -> pa.Array:
    return host_column(rows.heads["born_host"], (rows.heads["sys_flag"] & BORNHOST_V6) != 0)


def _store_host(rows: Rows) -> pa.Array:
    return host_column(rows.heads["store_host"], rows.stored_on_v6)


_MAKERS: dict[str, Callable[[Rows], pa.Array]] = {
    "key": _property("KEYS"),
    "value": _value,
    "topic": lambda rows: rows.topics,
    "brokerName": lambda rows: pa.repeat(
        pa.scalar(rows.broker_name, pa.string()), len(rows.topics)
    ),
    "queueId": _plain("queue_id"),
    "queueOffset": lambda rows: pa.array(rows.queue_offsets),
    "commitLogOffset": _plain("phy_offset"),
    "messageId": _message_id,
    "tags": _property("TAGS"),
    "bornTimestamp": _time("born_timestamp"),
    "storeTimestamp": _time("store_timestamp"),
    "bornHost": _born_host,
    "storeHost": _store_host,
    "sysFlag": _sys_flag,
    "flag": _plain("flag"),
    "reconsumeTimes": _plain("reconsume_times"),
    "preparedTransactionOffset": _plain("prepared_transaction_offset"),
    "properties": lambda rows: rows.pairs.as_map(),
    "bodyCrc": _plain("body_crc"),
}


def make_batch(rows: Rows, columns: tuple[str, ...]) -> pa.RecordBatch:
    """Raises BadRowError for a body that cannot be inflated."""
    arrays = [_MAKERS[name](rows) for name in columns]
    return pa.RecordBatch.from_arrays(arrays, schema=arrow_schema(columns))
