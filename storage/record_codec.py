"""The message record packed and checked with precompiled structs: the hot path of put and recovery.

The readable declaration is MessageRecord in protocol/record_layout.py; a property test holds the
two equal. Pure; any thread. The layout:

    head        total size i32 | magic i32 | body CRC i32 | queue id i32 | flag i32
                | queue offset i64 | phy offset i64 | sys flag i32 | born timestamp i64
                | born host 8 or 20 | store timestamp i64 | store host 8 or 20
                | reconsume times i32 | prepared transaction offset i64 | body length i32
    body
    topic       length i8 (v1) or i16 (v2, for topics longer than 127 bytes) | topic
    properties  length i16 | properties
"""

from struct import Struct
from typing import Final, NamedTuple
from zlib import crc32

from pyritemq.protocol.record import (
    BORNHOST_V6,
    MAGIC_BLANK,
    MAGIC_V1,
    MAGIC_V2,
    STOREHOSTADDRESS_V6,
)

HOST_V4_SIZE: Final = 8
HOST_V6_SIZE: Final = 20
HOSTS_V6: Final = BORNHOST_V6 | STOREHOSTADDRESS_V6
TOPIC_V1_MAX: Final = 127  # Byte.MAX_VALUE: a longer topic makes the record a v2
BLANK_MIN: Final = 8  # END_FILE_MIN_BLANK_LENGTH: each file keeps room for the filler's head

SIZE_AND_MAGIC: Final = Struct(">ii")
LENGTH_I16: Final = Struct(">h")
_LENGTH_I8: Final = Struct(">b")
_I32: Final = Struct(">i")
_I64: Final = Struct(">q")


def _head(born_host_size: int, store_host_size: int) -> Struct:
    return Struct(f">iiiiiqqiq{born_host_size}sq{store_host_size}siqi")


HEADS: Final = {
    0: _head(HOST_V4_SIZE, HOST_V4_SIZE),
    BORNHOST_V6: _head(HOST_V6_SIZE, HOST_V4_SIZE),
    STOREHOSTADDRESS_V6: _head(HOST_V4_SIZE, HOST_V6_SIZE),
    HOSTS_V6: _head(HOST_V6_SIZE, HOST_V6_SIZE),
}
HEAD_V4: Final = HEADS[0]
_SYS_FLAG_AT: Final = 36
_BORN_HOST_AT: Final = 48


def topic_field(topic: bytes) -> bytes:
    """The topic as it lies in a record, with its length."""
    length = LENGTH_I16 if len(topic) > TOPIC_V1_MAX else _LENGTH_I8
    return length.pack(len(topic)) + topic


def magic_for(topic: bytes) -> int:
    """The record version that a topic asks for (autoMessageVersionOnTopicLen)."""
    return MAGIC_V2 if len(topic) > TOPIC_V1_MAX else MAGIC_V1


def pack_blank(size: int) -> bytes:
    """Head of the filler that says: the file ends here, size bytes are left over."""
    return SIZE_AND_MAGIC.pack(size, MAGIC_BLANK)


def store_timestamp_of(record: memoryview) -> int:
    """Store time out of a record's bytes, which must hold at least its head."""
    (sys_flag,) = _I32.unpack_from(record, _SYS_FLAG_AT)
    host_size = HOST_V6_SIZE if sys_flag & BORNHOST_V6 else HOST_V4_SIZE
    timestamp: int = _I64.unpack_from(record, _BORN_HOST_AT + host_size)[0]
    return timestamp


class CheckedRecord(NamedTuple):
    """What deriving needs of a record that passed every check."""

    size: int
    topic: bytes
    queue_id: int
    queue_offset: int
    phy_offset: int
    sys_flag: int
    store_timestamp: int
    properties: bytes


class Blank(NamedTuple):
    """The filler: go on with the next file."""

    size: int


class BadRecord(NamedTuple):
    """Where a run of good records ends, and why; no reason if only zeroes lie there."""

    reason: str


def check_record(
    view: memoryview, position: int, *, phy_offset: int, check_crc: bool
) -> CheckedRecord | Blank | BadRecord:
    """Read and check the record at position of a file; never raises, whatever bytes lie there.

    The checks are those of CommitLog.checkMessageAndReturnSize (5.5.0), and one more: the record
    must say that it lies where it does, or remains of something older could pass for new records.
    """
    if position + SIZE_AND_MAGIC.size > len(view):
        return BadRecord("the file ends within a record's head")
    size, magic = SIZE_AND_MAGIC.unpack_from(view, position)
    if magic == MAGIC_BLANK:
        return Blank(size)
    if magic not in (MAGIC_V1, MAGIC_V2):
        return BadRecord("" if size == magic == 0 else f"magic code {magic & 0xFFFFFFFF:#x}")
    if size < HEAD_V4.size or position + size > len(view):
        return BadRecord(f"a record of {size} bytes does not fit into the file")
    return _check_fields(view[position : position + size], magic, phy_offset, check_crc)


def _check_fields(
    record: memoryview, magic: int, phy_offset: int, check_crc: bool
) -> CheckedRecord | BadRecord:
    (sys_flag,) = _I32.unpack_from(record, _SYS_FLAG_AT)
    head = HEADS[sys_flag & HOSTS_V6]
    if len(record) < head.size:
        return BadRecord("the record is shorter than its head")
    fields = head.unpack_from(record)
    crc, queue_id, queue_offset, own_offset = fields[2], fields[3], fields[5], fields[6]
    if own_offset != phy_offset:
        return BadRecord(f"the record says that it lies at {own_offset}")
    body_size = fields[14]
    texts = _split_texts(record, head.size, body_size, magic)
    if texts is None:
        return BadRecord("the lengths within the record do not add up")
    body = record[head.size : head.size + body_size]
    if check_crc and body_size and crc32(body) & 0x7FFFFFFF != crc:
        return BadRecord("the body does not match its CRC")
    topic, properties = texts
    return CheckedRecord(
        len(record), topic, queue_id, queue_offset, own_offset, sys_flag, fields[10], properties
    )


def _split_texts(
    record: memoryview, body_at: int, body_size: int, magic: int
) -> tuple[bytes, bytes] | None:
    """(topic, properties), or None unless body, topic and properties fill the record exactly."""
    topic_length = _LENGTH_I8 if magic == MAGIC_V1 else LENGTH_I16
    topic_at = body_at + body_size + topic_length.size
    if body_size < 0 or topic_at > len(record):
        return None
    (topic_size,) = topic_length.unpack_from(record, topic_at - topic_length.size)
    properties_at = topic_at + topic_size + LENGTH_I16.size
    if topic_size < 0 or properties_at > len(record):
        return None
    (properties_size,) = LENGTH_I16.unpack_from(record, properties_at - LENGTH_I16.size)
    if properties_size < 0 or properties_at + properties_size != len(record):
        return None
    topic = bytes(record[topic_at : topic_at + topic_size])
    return topic, bytes(record[properties_at:])
