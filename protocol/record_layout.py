"""The message record as a `construct` declaration: documentation, and oracle for the hot paths.

Nothing that serves requests imports this module (see record.py for why). Lengths and the total size
are derived when building, so that a record can be built from its meaning alone. Java:
MessageExtEncoder, MessageDecoder, MessageVersion, 5.5.0.
"""

from typing import Any

from construct import (
    Bytes,
    Construct,
    GreedyBytes,
    IfThenElse,
    Int8sb,
    Int16sb,
    Int32sb,
    Int64sb,
    OneOf,
    Prefixed,
    Rebuild,
    Struct,
    this,
)

from pyritemq.protocol.record import BORNHOST_V6, MAGIC_V1, MAGIC_V2, STOREHOSTADDRESS_V6

HostV4 = Struct("address" / Bytes(4), "port" / Int32sb)
HostV6 = Struct("address" / Bytes(16), "port" / Int32sb)


def _host(v6_flag: int) -> "Construct[Any, Any]":
    return IfThenElse(this.sys_flag & v6_flag, HostV6, HostV4)


def _record_size(record: Any) -> int:  # noqa: ANN401 - construct's context
    born = HostV6 if record.sys_flag & BORNHOST_V6 else HostV4
    store = HostV6 if record.sys_flag & STOREHOSTADDRESS_V6 else HostV4
    hosts = int(born.sizeof()) + int(store.sizeof())
    fixed = 4 * 5 + 8 * 2 + 4 + 8 + 8 + hosts + 4 + 8
    topic_length_size = 2 if record.magic == MAGIC_V2 else 1
    texts = 4 + len(record.body) + topic_length_size + len(record.topic) + 2
    return fixed + texts + len(record.properties)


MessageRecord = Struct(
    "total_size" / Rebuild(Int32sb, _record_size),
    "magic" / OneOf(Int32sb, [MAGIC_V1, MAGIC_V2]),
    "body_crc" / Int32sb,  # CRC-32 of the body without its sign bit
    "queue_id" / Int32sb,
    "flag" / Int32sb,
    "queue_offset" / Int64sb,
    "phy_offset" / Int64sb,
    "sys_flag" / Int32sb,
    "born_timestamp" / Int64sb,
    "born_host" / _host(BORNHOST_V6),
    "store_timestamp" / Int64sb,
    "store_host" / _host(STOREHOSTADDRESS_V6),
    "reconsume_times" / Int32sb,
    "prepared_transaction_offset" / Int64sb,
    "body" / Prefixed(Int32sb, GreedyBytes),
    "topic"
    / IfThenElse(
        this.magic == MAGIC_V2, Prefixed(Int16sb, GreedyBytes), Prefixed(Int8sb, GreedyBytes)
    ),
    "properties" / Prefixed(Int16sb, GreedyBytes),
)

BatchMessage = Struct(
    "total_size" / Rebuild(Int32sb, lambda entry: 22 + len(entry.body) + len(entry.properties)),
    "magic" / Rebuild(Int32sb, 0),  # not used in a batch
    "body_crc" / Rebuild(Int32sb, 0),  # likewise
    "flag" / Int32sb,
    "body" / Prefixed(Int32sb, GreedyBytes),
    "properties" / Prefixed(Int16sb, GreedyBytes),
)
