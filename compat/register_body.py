"""The body of REGISTER_BROKER: a broker's topics and their version, plain or compressed.

Our broker encodes it and our name server decodes it, and both do so with Java peers. The plain form
is the JSON of RegisterBrokerBody; the compressed form (compressedRegister=true) is a zlib stream of
length-prefixed pieces: the data version, each topic as a line of text, the filter servers and, from
version 5.0.0 on, the queue mappings of static topics. Pure functions, called from any lane; a body
that cannot be read is a RegisterBodyError, and one that would inflate past a bound is refused.
"""

import re
import struct
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Self

from pyritemq.compat import fastjson
from pyritemq.compat.versions import CURRENT_VERSION, V5_0_0

# 50,000 topics take some 10 MB as JSON; beyond this a body is an attack, not a registration.
INFLATED_SIZE_MAX = 64 * 1024 * 1024

_INT = struct.Struct(">i")
_INTEGER_TEXT = re.compile("[-+]?[0-9]{1,19}")
_LONG = 1 << 63
_SINGLE_TAG = "SINGLE_TAG"


class RegisterBodyError(ValueError):
    """The body is not a registration."""


@dataclass(frozen=True, slots=True)
class DataVersion:
    """When a table last changed: equal on both sides means nothing to tell."""

    timestamp: int = 0
    counter: int = 0
    state_version: int = 0

    @classmethod
    def from_json(cls, fields: object) -> Self:
        """Missing fields are 0."""
        values = _expect_object(fields, "dataVersion")
        return cls(
            timestamp=_integer(values, "timestamp", 0),
            counter=_integer(values, "counter", 0),
            state_version=_integer(values, "stateVersion", 0),
        )

    @classmethod
    def decode(cls, body: bytes | memoryview) -> Self:
        return cls.from_json(_load(body))

    def to_json(self) -> dict[str, int]:
        return {
            "counter": self.counter,
            "stateVersion": self.state_version,
            "timestamp": self.timestamp,
        }

    def encode(self) -> bytes:
        return fastjson.dumps(self.to_json())


@dataclass(frozen=True, slots=True)
class TopicConfig:
    """A topic as brokers announce it.

    The defaults are Java's, for fields that a peer leaves out.
    """

    topic_name: str
    read_queue_nums: int = 16
    write_queue_nums: int = 16
    perm: int = 6
    topic_filter_type: str = _SINGLE_TAG
    topic_sys_flag: int = 0
    order: bool = False
    attributes: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def from_json(cls, fields: object) -> Self:
        values = _expect_object(fields, "topicConfig")
        return cls(
            topic_name=_text(values, "topicName"),
            read_queue_nums=_integer(values, "readQueueNums", 16),
            write_queue_nums=_integer(values, "writeQueueNums", 16),
            perm=_integer(values, "perm", 6),
            topic_filter_type=str(values.get("topicFilterType") or _SINGLE_TAG),
            topic_sys_flag=_integer(values, "topicSysFlag", 0),
            order=values.get("order") is True,
            attributes=_attributes(values.get("attributes")),
        )

    @classmethod
    def from_line(cls, line: str) -> Self:
        """The compressed form's text: TopicConfig.decode of 5.5.0, which drops topicSysFlag."""
        name, *rest = line.split(" ")
        if len(rest) < 4:
            raise RegisterBodyError("a topic line has at least five words")
        return cls(
            topic_name=name,
            read_queue_nums=_to_integer(rest[0], "readQueueNums"),
            write_queue_nums=_to_integer(rest[1], "writeQueueNums"),
            perm=_to_integer(rest[2], "perm"),
            topic_filter_type=rest[3],
            attributes=_attributes_of_line(rest[4]) if len(rest) > 4 else {},
        )

    def to_json(self) -> dict[str, Any]:
        return {
            "attributes": dict(self.attributes),
            "order": self.order,
            "perm": self.perm,
            "readQueueNums": self.read_queue_nums,
            "topicFilterType": self.topic_filter_type,
            "topicName": self.topic_name,
            "topicSysFlag": self.topic_sys_flag,
            "writeQueueNums": self.write_queue_nums,
        }

    def to_line(self) -> str:
        attributes = fastjson.dumps(dict(self.attributes)).decode()
        numbers = f"{self.read_queue_nums} {self.write_queue_nums} {self.perm}"
        return f"{self.topic_name} {numbers} {self.topic_filter_type} {attributes}"

    def with_perm(self, perm: int) -> Self:
        return replace(self, perm=perm)


@dataclass(frozen=True, slots=True)
class RegisterBrokerBody:
    """What a broker tells a name server. Queue mappings of static topics are JSON objects."""

    topics: Mapping[str, TopicConfig] = field(default_factory=dict)
    data_version: DataVersion = DataVersion()
    filter_servers: list[str] | None = field(default_factory=list)
    queue_mappings: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    mapping_data_version: DataVersion = DataVersion()

    def encode(self, *, compressed: bool) -> bytes:
        return self._encode_compressed() if compressed else self._encode_plain()

    @classmethod
    def decode(
        cls, body: bytes | memoryview, *, compressed: bool, version: int = CURRENT_VERSION
    ) -> Self:
        """`version` is that of the sending broker: before 5.0.0 the compressed form is shorter."""
        if compressed:
            return cls._decode_compressed(body, version)
        fields = _expect_object(_load(body), "body")
        wrapper = _object_or_empty(fields, "topicConfigSerializeWrapper")
        return cls._from_wrapper(wrapper, fields.get("filterServerList"))

    @classmethod
    def decode_topics_only(cls, body: bytes | memoryview) -> Self:
        """What brokers before 3.0.11 send: the topic wrapper alone, no filter servers."""
        return cls._from_wrapper(_load(body), None)

    def _encode_plain(self) -> bytes:
        wrapper = {
            "dataVersion": self.data_version.to_json(),
            "mappingDataVersion": self.mapping_data_version.to_json(),
            "topicConfigTable": {name: topic.to_json() for name, topic in self.topics.items()},
            "topicQueueMappingDetailMap": {},
            "topicQueueMappingInfoMap": self.queue_mappings,
        }
        filters = {} if self.filter_servers is None else {"filterServerList": self.filter_servers}
        return fastjson.dumps_standard(filters | {"topicConfigSerializeWrapper": wrapper})

    def _encode_compressed(self) -> bytes:
        topics = [topic.to_line().encode() for topic in self.topics.values()]
        mappings = [fastjson.dumps(mapping) for mapping in self.queue_mappings.values()]
        pieces = [
            _prefixed(self.data_version.encode()),
            _counted(topics),
            _prefixed(fastjson.dumps(self.filter_servers or [])),
            _counted(mappings),
        ]
        return zlib.compress(b"".join(pieces), zlib.Z_BEST_COMPRESSION)

    @classmethod
    def _from_wrapper(cls, wrapper: object, filter_servers: object) -> Self:
        fields = _expect_object(wrapper, "topicConfigSerializeWrapper")
        table = _object_or_empty(fields, "topicConfigTable")
        mappings = _object_or_empty(fields, "topicQueueMappingInfoMap")
        return cls(
            topics={str(name): TopicConfig.from_json(topic) for name, topic in table.items()},
            data_version=DataVersion.from_json(_object_or_empty(fields, "dataVersion")),
            filter_servers=_filter_servers(filter_servers),
            queue_mappings={str(topic): _queue_mapping(m) for topic, m in mappings.items()},
            mapping_data_version=DataVersion.from_json(
                _object_or_empty(fields, "mappingDataVersion")
            ),
        )

    @classmethod
    def _decode_compressed(cls, body: bytes | memoryview, version: int) -> Self:
        pieces = _Pieces(_inflate(body))
        data_version = DataVersion.decode(pieces.take())
        lines = [_decode_text(pieces.take()) for _ in range(pieces.take_count())]
        topics = {topic.topic_name: topic for topic in map(TopicConfig.from_line, lines)}
        filter_servers = _filter_servers(_load(pieces.take()))
        mappings: dict[str, Mapping[str, Any]] = {}
        if version >= V5_0_0:
            for _ in range(pieces.take_count()):
                mapping = _queue_mapping(_load(pieces.take()))
                mappings[mapping["topic"]] = mapping
        return cls(topics, data_version, filter_servers, mappings)


class _Pieces:
    """Length-prefixed pieces of an inflated body; every length is checked against what is there."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def take_count(self) -> int:
        if self._at + _INT.size > len(self._data):
            raise RegisterBodyError("the body ends early")
        count: int = _INT.unpack_from(self._data, self._at)[0]
        self._at += _INT.size
        if count < 0 or count > len(self._data) - self._at:
            raise RegisterBodyError("a length in the body is wrong")
        return count

    def take(self) -> bytes:
        length = self.take_count()
        self._at += length
        return self._data[self._at - length : self._at]


def _inflate(body: bytes | memoryview) -> bytes:
    inflater = zlib.decompressobj()
    try:
        data = inflater.decompress(body, INFLATED_SIZE_MAX)
    except zlib.error:
        raise RegisterBodyError("the body is not a zlib stream") from None
    if inflater.unconsumed_tail:
        raise RegisterBodyError(f"the body inflates past {INFLATED_SIZE_MAX} bytes")
    return data


def _prefixed(data: bytes) -> bytes:
    return _INT.pack(len(data)) + data


def _counted(pieces: list[bytes]) -> bytes:
    return _INT.pack(len(pieces)) + b"".join(map(_prefixed, pieces))


def _load(data: bytes | memoryview) -> object:
    try:
        return fastjson.loads(data)
    except fastjson.FastjsonError as error:
        raise RegisterBodyError(str(error)) from None


def _decode_text(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def _expect_object(value: object, what: str) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise RegisterBodyError(f"{what} is not an object")
    return value


def _object_or_empty(fields: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = fields.get(name)
    return {} if value is None else _expect_object(value, name)


def _integer(fields: Mapping[str, Any], name: str, default: int) -> int:
    value = fields.get(name)
    return default if value is None else _to_integer(value, name)


def _to_integer(value: object, name: str) -> int:
    """A long, also as text: fastjson writes some that way and reads them all."""
    if isinstance(value, str) and _INTEGER_TEXT.fullmatch(value):
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or not -_LONG <= value < _LONG:
        raise RegisterBodyError(f"{name} is not a number")
    return value


def _text(fields: Mapping[str, Any], name: str) -> str:
    value = fields.get(name)
    if not isinstance(value, str):
        raise RegisterBodyError(f"{name} is missing")
    return value


def _queue_mapping(value: object) -> dict[str, Any]:
    """Java's TopicQueueMappingInfo, and nothing else that a peer may have put there."""
    fields = _expect_object(value, "queue mapping")
    current = _object_or_empty(fields, "currIdMap")
    return {
        "bname": _text(fields, "bname"),
        "currIdMap": {
            _to_integer(logic, "currIdMap"): _to_integer(physical, "currIdMap")
            for logic, physical in current.items()
        },
        "dirty": fields.get("dirty") is True,
        "epoch": _integer(fields, "epoch", 0),
        "scope": str(fields.get("scope") or "__global__"),
        "topic": _text(fields, "topic"),
        "totalQueues": _integer(fields, "totalQueues", 0),
    }


def _attributes(value: object) -> dict[str, str]:
    if value is None:
        return {}
    return {str(key): str(item) for key, item in _expect_object(value, "attributes").items()}


def _attributes_of_line(text: str) -> dict[str, str]:
    """A blank inside an attribute cuts the line short; Java then reads none, and so do we."""
    try:
        return _attributes(_load(text.encode()))
    except RegisterBodyError:
        return {}


def _filter_servers(value: object) -> list[str] | None:
    if value is None:
        return None
    if not isinstance(value, Iterable) or isinstance(value, str | Mapping):
        raise RegisterBodyError("filterServerList is not a list")
    return [str(item) for item in value]
