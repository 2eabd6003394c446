"""The message record packed and checked with precompiled structs: the hot path of put and of recovery.

The readable declaration is MessageRecord in protocol/record.py; a property test holds the two equal. The layout:

    head  total size i32 | magic i32 | body CRC i32 | queue id i32 | flag i32 | queue offset i64 | phy offset i64
          | sys flag i32 | born timestamp i64 | born host 8 or 20 | store timestamp i64 | store host 8 or 20
          | reconsume times i32 | prepared transaction offset i64 | body length i32
    body
    topic       length u8 (v1) or i16 (v2, for topics longer than 127 bytes) | topic
    properties  length i16 | properties
"""

from struct import Struct
from typing import Final, NamedTuple
from zlib import crc32

MAGIC_V1: Final = -626843481  # 0xdaa320a7
MAGIC_V2: Final = -626843477  # 0xdaa320ab
MAGIC_BLANK: Final = -875286124  # 0xcbd43194, the filler at the end of a file

BORNHOST_V6: Final = 0x10  # MessageSysFlag.BORNHOST_V6_FLAG
STOREHOST_V6: Final = 0x20  # MessageSysFlag.STOREHOSTADDRESS_V6_FLAG
TRANSACTION_TYPE: Final = 0xC
TRANSACTION_PREPARED: Final = 0x4
TRANSACTION_ROLLBACK: Final = 0xC

HOST_V4_SIZE: Final = 8
HOST_V6_SIZE: Final = 20
TOPIC_V1_MAX: Final = 127  # Byte.MAX_VALUE: a longer topic makes the record a v2
PROPERTIES_MAX: Final = 32767  # Short.MAX_VALUE
BLANK_MIN: Final = 8  # END_FILE_MIN_BLANK_LENGTH: each file keeps room for this filler head

BLANK_HEAD: Final = Struct(">ii")
PROPERTIES_LENGTH: Final = Struct(">h")


def _head(born_host_size: int, store_host_size: int) -> Struct:
    return Struct(f">iiiiiqqiq{born_host_size}sq{store_host_size}siqi")


HEADS: Final = {
    0: _head(HOST_V4_SIZE, HOST_V4_SIZE),
    BORNHOST_V6: _head(HOST_V6_SIZE, HOST_V4_SIZE),
    STOREHOST_V6: _head(HOST_V4_SIZE, HOST_V6_SIZE),
    BORNHOST_V6 | STOREHOST_V6: _head(HOST_V6_SIZE, HOST_V6_SIZE),
}
HOSTS_V6: Final = BORNHOST_V6 | STOREHOST_V6
HEAD_V4: Final = HEADS[0]
STORE_TIMESTAMP_AT: Final = 56  # in a record whose born host is IPv4; 12 further otherwise
_SYS_FLAG_AT: Final = 36
_I32: Final = Struct(">i")
_I64: Final = Struct(">q")
_U8: Final = Struct(">B")


def topic_field(topic: bytes) -> bytes:
    """The topic as it lies in a record, with its length."""
    if len(topic) > TOPIC_V1_MAX:
        return PROPERTIES_LENGTH.pack(len(topic)) + topic
    return _U8.pack(len(topic)) + topic


def magic_for(topic: bytes) -> int:
    return MAGIC_V2 if len(topic) > TOPIC_V1_MAX else MAGIC_V1


def body_crc(body: bytes | memoryview) -> int:
    """UtilAll.crc32: the sign bit is dropped."""
    return crc32(body) & 0x7FFFFFFF


def pack_blank(size: int) -> bytes:
    """Head of the filler that says: the file ends here, size bytes are left over."""
    return BLANK_HEAD.pack(size, MAGIC_BLANK)


def store_timestamp_at(record: memoryview) -> int:
    (sys_flag,) = _I32.unpack_from(record, _SYS_FLAG_AT)
    at = STORE_TIMESTAMP_AT + (HOST_V6_SIZE - HOST_V4_SIZE if sys_flag & BORNHOST_V6 else 0)
    timestamp: int = _I64.unpack_from(record, at)[0]
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


class BadRecord(NamedTuple):
    """Where a run of good records ends, and why."""

    reason: str


class Blank(NamedTuple):
    """The filler: go on with the next file."""

    size: int


_BLANK_OR_RECORD_MIN: Final = 8


def check_record(
    view: memoryview, position: int, *, phy_offset: int, check_crc: bool
) -> CheckedRecord | Blank | BadRecord:
    """Read and check the record at position of a CommitLog file; never raises on whatever bytes lie there.

    The checks are CommitLog.checkMessageAndReturnSize's (5.5.0), and one more: the record must say that it lies where
    it does, or the remains of an older file could pass for new records.
    """
    end = len(view)
    if position + _BLANK_OR_RECORD_MIN > end:
        return BadRecord("the file ends within a record head")
    size, magic = BLANK_HEAD.unpack_from(view, position)
    if magic == MAGIC_BLANK:
        return Blank(size)
    if magic not in (MAGIC_V1, MAGIC_V2):
        return BadRecord(
            "nothing more" if size == magic == 0 else f"magic code {magic & 0xFFFFFFFF:#x}"
        )
    if size < HEAD_V4.size or position + size > end:
        return BadRecord(f"a record of {size} bytes does not fit into the file")
    return _check_fields(view[position : position + size], magic, phy_offset, check_crc)


def _check_fields(
    record: memoryview, magic: int, phy_offset: int, check_crc: bool
) -> CheckedRecord | BadRecord:
    size = len(record)
    (sys_flag,) = _I32.unpack_from(record, _SYS_FLAG_AT)
    head = HEADS[sys_flag & HOSTS_V6]
    if size < head.size:
        return BadRecord("the record is shorter than its head")
    (
        (
            _,
            _,
            crc,
            queue_id,
            _,
            queue_offset,
            own_offset,
            _,
            _,
            _,
            store_timestamp,
            _,
            _,
            _,
            body_size,
        )
    ) = head.unpack_from(record)
    if own_offset != phy_offset:
        return BadRecord(f"the record says that it lies at {own_offset}")
    topic_at = head.size + max(body_size, 0)
    length_size = 1 if magic == MAGIC_V1 else 2
    if body_size < 0 or topic_at + length_size > size:
        return BadRecord(f"body length {body_size}")
    topic_size = (
        record[topic_at] if length_size == 1 else PROPERTIES_LENGTH.unpack_from(record, topic_at)[0]
    )
    properties_at = topic_at + length_size + max(topic_size, 0) + 2
    if topic_size < 0 or properties_at > size:
        return BadRecord(f"topic length {topic_size}")
    (properties_size,) = PROPERTIES_LENGTH.unpack_from(record, properties_at - 2)
    if properties_at + max(properties_size, 0) != size:
        return BadRecord(f"properties length {properties_size}")
    if check_crc and body_crc(record[head.size : topic_at]) != crc and body_size:
        return BadRecord("body CRC")
    return CheckedRecord(
        size,
        bytes(record[topic_at + length_size : properties_at - 2]),
        queue_id,
        queue_offset,
        own_offset,
        sys_flag,
        store_timestamp,
        bytes(record[properties_at:]),
    )
