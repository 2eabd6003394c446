"""The message record, message properties and the body of a batch send.

A record is the same bytes in the CommitLog and in the body of a PULL reply. The readable layout is
``MessageRecord`` in record_layout.py, kept apart because `construct` costs a server 10 MB and 60 ms
(2026-11-18) that it has no use for; property tests hold this reader equal to it. The hot path of
the store packs records in storage/record_codec.py. Pure; called from any thread.
"""

from struct import Struct
from typing import Final, NamedTuple

from pyritemq.protocol.errors import RecordError

MAGIC_V1: Final = -626843481
MAGIC_V2: Final = -626843477  # topics longer than 127 bytes: the topic's length takes two bytes
MAGIC_BLANK: Final = -875286124  # filler at the end of a CommitLog file

# Bits of sys_flag (Java: MessageSysFlag).
COMPRESSED: Final = 0x1
MULTI_TAGS: Final = 0x1 << 1
TRANSACTION_NOT: Final = 0
TRANSACTION_PREPARED: Final = 0x1 << 2
TRANSACTION_COMMIT: Final = 0x2 << 2
TRANSACTION_ROLLBACK: Final = 0x3 << 2
TRANSACTION_MASK: Final = 0x3 << 2
BORNHOST_V6: Final = 0x1 << 4
STOREHOSTADDRESS_V6: Final = 0x1 << 5
NEED_UNWRAP: Final = 0x1 << 6
INNER_BATCH: Final = 0x1 << 7
COMPRESSION_LZ4: Final = 0x1 << 8
COMPRESSION_ZSTD: Final = 0x2 << 8
COMPRESSION_ZLIB: Final = 0x3 << 8
COMPRESSION_MASK: Final = 0x7 << 8

NAME_VALUE_SEPARATOR: Final = "\x01"
PROPERTY_SEPARATOR: Final = "\x02"
PROPERTIES_MAX: Final = 32767  # bytes; the length is a Java short

_SIZE_AND_MAGIC = Struct(">ii")
_TO_BORN_TIMESTAMP = Struct(">iiiiiqqiq")
_I64 = Struct(">q")
_I32 = Struct(">i")
_I16 = Struct(">h")
_I8 = Struct(">b")
_TO_BODY_LENGTH = Struct(">iqi")
_BATCH_HEAD = Struct(">iiiii")


class Record(NamedTuple):
    """One stored message. Hosts are the address (4 or 16 bytes) and the port as an i32, packed."""

    total_size: int
    magic: int
    body_crc: int
    queue_id: int
    flag: int
    queue_offset: int
    phy_offset: int
    sys_flag: int
    born_timestamp: int
    born_host: bytes
    store_timestamp: int
    store_host: bytes
    reconsume_times: int
    prepared_transaction_offset: int
    body: bytes
    topic: str
    properties: bytes


class BatchEntry(NamedTuple):
    """One message of a SEND_BATCH_MESSAGE body; topic and the rest stand in the request header."""

    flag: int
    body: bytes
    properties: bytes


class _Reader:
    """A position in bytes that never runs past its end."""

    __slots__ = ("_data", "_end", "_pos")

    def __init__(self, data: bytes | memoryview, pos: int, end: int) -> None:
        self._data = data
        self._pos = pos
        self._end = end

    def unpack(self, layout: Struct) -> tuple[int, ...]:
        return layout.unpack_from(self._data, self._advance(layout.size))

    def take(self, size: int) -> bytes:
        start = self._advance(size)
        return bytes(self._data[start : start + size])

    @property
    def remaining(self) -> int:
        return self._end - self._pos

    def _advance(self, size: int) -> int:
        start = self._pos
        if not 0 <= size <= self._end - start:
            raise RecordError(f"{size} bytes wanted at {start}, {self._end - start} there")
        self._pos = start + size
        return start


def decode_record(buffer: bytes | memoryview, pos: int = 0) -> Record:
    """Read the record at ``pos``; the next one is ``total_size`` further. Raises RecordError, also
    for a blank filler and for lengths that do not add up to the total."""
    total_size, magic = _Reader(buffer, pos, len(buffer)).unpack(_SIZE_AND_MAGIC)
    if magic not in (MAGIC_V1, MAGIC_V2):
        raise RecordError(f"illegal magic code {magic & 0xFFFFFFFF:#010x} at {pos}")
    if not _SIZE_AND_MAGIC.size <= total_size <= len(buffer) - pos:
        raise RecordError(f"record of {total_size} bytes at {pos} is not whole")
    reader = _Reader(buffer, pos, pos + total_size)
    head = reader.unpack(_TO_BORN_TIMESTAMP)
    sys_flag = head[7]
    born_host = reader.take(20 if sys_flag & BORNHOST_V6 else 8)
    (store_timestamp,) = reader.unpack(_I64)
    store_host = reader.take(20 if sys_flag & STOREHOSTADDRESS_V6 else 8)
    reconsume_times, prepared_offset, body_length = reader.unpack(_TO_BODY_LENGTH)
    body = reader.take(body_length)
    (topic_length,) = reader.unpack(_I16 if magic == MAGIC_V2 else _I8)
    topic = reader.take(topic_length).decode("utf-8", "replace")
    properties = reader.take(reader.unpack(_I16)[0])
    if reader.remaining:
        raise RecordError(f"record at {pos} has {reader.remaining} bytes too many")
    hosts_and_times = born_host, store_timestamp, store_host, reconsume_times, prepared_offset
    return Record._make((*head, *hosts_and_times, body, topic, properties))


def decode_records(buffer: bytes | memoryview) -> list[Record]:
    """All records of a PULL body. Raises RecordError."""
    records: list[Record] = []
    pos = 0
    while pos < len(buffer):
        record = decode_record(buffer, pos)
        records.append(record)
        pos += record.total_size
    return records


def decode_properties(data: bytes | memoryview) -> dict[str, str]:
    """Java's string2messageProperties: a pair without separator, name or value is passed over."""
    properties: dict[str, str] = {}
    for pair in str(data, "utf-8", "replace").split(PROPERTY_SEPARATOR):
        name, _, value = pair.partition(NAME_VALUE_SEPARATOR)
        if name and value:
            properties[name] = value
    return properties


def encode_properties(properties: dict[str, str]) -> bytes:
    """Java's messageProperties2String: each pair ends with the separator, the last one too."""
    pairs = [f"{name}\x01{value}\x02" for name, value in properties.items()]
    return "".join(pairs).encode()


def decode_batch(body: bytes | memoryview) -> list[BatchEntry]:
    """Read the messages of a SEND_BATCH_MESSAGE body. Raises RecordError.

    Size, magic and CRC of an entry are not looked at: Java's client writes zeros for the latter two
    and its broker reads on by the lengths of body and properties.
    """
    entries: list[BatchEntry] = []
    reader = _Reader(body, 0, len(body))
    while reader.remaining:
        _, _, _, flag, body_length = reader.unpack(_BATCH_HEAD)
        message_body = reader.take(body_length)
        entries.append(BatchEntry(flag, message_body, reader.take(reader.unpack(_I16)[0])))
    return entries


def encode_batch(entries: list[BatchEntry]) -> bytes:
    """What Java's client sends as the body of SEND_BATCH_MESSAGE."""
    parts: list[bytes] = []
    for flag, body, properties in entries:
        size = _BATCH_HEAD.size + len(body) + _I16.size + len(properties)
        parts.append(_BATCH_HEAD.pack(size, 0, 0, flag, len(body)))
        parts += (body, _I16.pack(len(properties)), properties)
    return b"".join(parts)
