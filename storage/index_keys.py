"""What the index knows of a record: its keys, as the numbers that an index file holds for them.

Pure; used by the builder, which goes through the CommitLog, and by queries. A record is found under
its UNIQ_KEY, under each word of its KEYS and, in 5.5.0, under its TAGS; the text that is hashed is
`topic#key`, or `topic#T#tags` (Java: IndexService.buildIndex).

Hashes are put together from parts, as h(a + b) = h(a) * 31^len(b) + h(b): the topic and the front
of a unique key, which the messages of one client share, are hashed once. A 32-character key costs
0.5 µs that way, and 1.9 µs character by character (Python 3.11, 2026-11-18).
"""

from operator import mul
from struct import Struct
from typing import Final, NamedTuple, TypeVar

from pyritemq.compat.java_hash import java_string_hash
from pyritemq.protocol.record import (
    MAGIC_V1,
    TRANSACTION_MASK,
    TRANSACTION_ROLLBACK,
)
from pyritemq.storage.derive import property_of
from pyritemq.storage.record_codec import (
    HOSTS_V6,
    LENGTH_I16,
    BadRecord,
    Blank,
    check_record,
)

INDEX_TYPE_TAG: Final = "T"  # MessageConst.INDEX_TAG_TYPE; all other types are looked up alike

_UNIQ_KEY: Final = b"UNIQ_KEY\x01"
_KEYS: Final = b"KEYS\x01"
_TAGS: Final = b"TAGS\x01"
_SPACE: Final = b" "
_BITS: Final = 0xFFFFFFFF
_POWERS_MAX: Final = 256  # ours: longer keys are hashed by the plain function
_POWERS: Final[tuple[int, ...]] = tuple(pow(31, n, 1 << 32) for n in range(_POWERS_MAX))
_WEIGHTS: Final = tuple(_POWERS[n - 1 :: -1] if n else () for n in range(_POWERS_MAX))
_BACK: Final = 8  # characters of a unique key that change from message to message
_FRONTS_MAX: Final = 4096  # ours: bound of each memory of hashes; it is emptied when full
_QUICK_HEAD: Final = Struct(">ii20xqi16xq20xi")  # a v1 record with IPv4 hosts, up to the body
_QUICK_HEAD_SIZE: Final = 88
_Value = TypeVar("_Value")


class RecordKeys(NamedTuple):
    """One record as the index sees it."""

    size: int
    topic: bytes
    properties: bytes
    sys_flag: int
    store_timestamp: int


def read_keys(view: memoryview, position: int, phy_offset: int) -> RecordKeys | Blank | BadRecord:
    """The record at a position of a CommitLog file, checked but for its CRC; never raises."""
    if position + _QUICK_HEAD_SIZE <= len(view):
        size, magic, own, flag, timestamp, body = _QUICK_HEAD.unpack_from(view, position)
        topic_at = position + _QUICK_HEAD_SIZE + body + 1
        end = position + size
        if (
            magic == MAGIC_V1
            and not flag & HOSTS_V6
            and own == phy_offset
            and body >= 0
            and topic_at < end <= len(view)
        ):
            texts_at = topic_at + view[topic_at - 1]
            properties_at = texts_at + 2
            if properties_at <= end and (
                properties_at + LENGTH_I16.unpack_from(view, texts_at)[0] == end
            ):
                topic = bytes(view[topic_at:texts_at])
                return RecordKeys(size, topic, bytes(view[properties_at:end]), flag, timestamp)
    return _read_any(view, position, phy_offset)


def _read_any(view: memoryview, position: int, phy_offset: int) -> RecordKeys | Blank | BadRecord:
    found = check_record(view, position, phy_offset=phy_offset, check_crc=False)
    if isinstance(found, (Blank, BadRecord)):
        return found
    return RecordKeys(
        found.size, found.topic, found.properties, found.sys_flag, found.store_timestamp
    )


def is_indexed(sys_flag: int) -> bool:
    """Whether a record has a place in the index: all but rolled back transactions."""
    return sys_flag & TRANSACTION_MASK != TRANSACTION_ROLLBACK


def has_key(record: RecordKeys, topic: bytes, key: bytes, index_type: str | None) -> bool:
    """Whether a query for the key is about this record."""
    if record.topic != topic or not is_indexed(record.sys_flag):
        return False
    properties = record.properties
    if index_type == INDEX_TYPE_TAG:
        return property_of(properties, _TAGS) == key
    words = property_of(properties, _KEYS).split(_SPACE)
    return key in words or property_of(properties, _UNIQ_KEY) == key


class KeyHasher:
    """Hashes of keys, with a memory for what repeats; belongs to one thread."""

    def __init__(self) -> None:
        self._topics: dict[bytes, tuple[int, dict[bytes, int]]] = {}
        self._fronts: dict[bytes, int] = {}

    def hashes(self, record: RecordKeys) -> list[int]:
        """One number for each key of the record, in the order in which Java puts them."""
        if not is_indexed(record.sys_flag):
            return []
        topic, tags_seen = self._topics.get(record.topic) or self._add_topic(record.topic)
        properties = record.properties
        found = []
        unique = property_of(properties, _UNIQ_KEY)
        if unique:
            found.append(_positive(self._join(topic, unique)))
        keys = property_of(properties, _KEYS)
        if keys:
            found += [_positive(self._join(topic, key)) for key in keys.split(_SPACE) if key]
        tags = property_of(properties, _TAGS)
        if tags:
            value = tags_seen.get(tags)
            if value is None:
                value = _positive(self._join(topic, b"T#" + tags))
                _remember(tags_seen, tags, value)
            found.append(value)
        return found

    def _add_topic(self, topic: bytes) -> tuple[int, dict[bytes, int]]:
        entry: tuple[int, dict[bytes, int]] = (_hash(topic + b"#"), {})
        _remember(self._topics, topic, entry)
        return entry

    def _join(self, before: int, key: bytes) -> int:
        """Hash of a text that starts with one whose hash is known."""
        if not key.isascii() or len(key) >= _POWERS_MAX:
            text = key.decode("utf-8", "replace")
            units = len(text.encode("utf-16-be", "surrogatepass")) // 2
            return before * int(pow(31, units, 1 << 32)) + java_string_hash(text)
        if len(key) <= 2 * _BACK:
            return before * _POWERS[len(key)] + _sum_ascii(key)
        front = key[:-_BACK]
        value = self._fronts.get(front)
        if value is None:
            value = _hash(front)
            _remember(self._fronts, front, value)
        value = before * _POWERS[len(front)] + value
        return value * _POWERS[_BACK] + _sum_ascii(key[-_BACK:])


def index_hash(topic: str, key: str, index_type: str | None) -> int:
    """The number under which a query looks (IndexFile.indexKeyHashMethod)."""
    middle = f"#{INDEX_TYPE_TAG}#" if index_type == INDEX_TYPE_TAG else "#"
    return _positive(java_string_hash(topic + middle + key))


def _sum_ascii(text: bytes) -> int:
    """Hash of up to 255 ASCII characters, not yet cut to 32 bits."""
    value: int = sum(map(mul, text, _WEIGHTS[len(text)]))
    return value


def _hash(text: bytes) -> int:
    return java_string_hash(text.decode("utf-8", "replace"))


def _positive(value: int) -> int:
    """Math.abs of the 32-bit hash, and 0 for the one number that has no positive."""
    value &= _BITS
    if value < 0x8000_0000:
        return value
    return (-value & _BITS) if value != 0x8000_0000 else 0


def _remember(memory: dict[bytes, _Value], key: bytes, value: _Value) -> None:
    if len(memory) >= _FRONTS_MAX:
        memory.clear()
    memory[key] = value
