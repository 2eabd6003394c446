"""Static topics: which logical queue is which queue of this broker (topicQueueMapping.json).

Owned by lane ADMIN; `snapshot` is an immutable dict replaced whole, so every thread may read it.

Java can spread the logical queues over brokers, move them while they hold messages, and translates
queue ids and offsets in every request.  Here a logical queue is the queue of the same id on this
broker, from its first message on: what `mqadmin updateStaticTopic` makes on one broker, and what
needs no translation.  Any other mapping is refused, before anything is changed.

Java: TopicQueueMappingManager and TopicQueueMappingUtils, 5.5.0.
"""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING, Any, NamedTuple

from pyritemq.compat import fastjson
from pyritemq.compat.register_body import DataVersion
from pyritemq.server.broker.state.config_json import dumps_pretty
from pyritemq.server.broker.state.table_file import TableSaver, read_newest
from pyritemq.server.broker.state.topics import next_version

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pyritemq.storage.tables import JsonTable

logger = logging.getLogger(__name__)

SCOPE = "__global__"
"""MixAll.METADATA_SCOPE_GLOBAL."""

QUEUES_MAX = 65_536
"""Ours: of one topic; a mapping is a line of every registration."""

_ITEM_DEFAULTS = {
    "endOffset": -1,
    "gen": 0,
    "logicOffset": 0,
    "queueId": 0,
    "startOffset": 0,
    "timeOfEnd": -1,
    "timeOfStart": -1,
}


class MappingFault(Exception):  # noqa: N818 - a fault of the caller, as AttributeFault
    """Why a mapping is not taken, in a sentence."""


class QueueMapping(NamedTuple):
    """A static topic's queues on this broker."""

    topic: str
    broker_name: str
    total_queues: int
    epoch: int
    hosted: Mapping[int, list[dict[str, Any]]]
    """Logical queue id -> where its messages lie, oldest first; the last one takes new ones."""
    scope: str = SCOPE
    dirty: bool = False

    @classmethod
    def from_json(cls, value: object) -> QueueMapping:
        """Raises ValueError or TypeError for what is not a TopicQueueMappingDetail."""
        if not isinstance(value, dict):
            raise TypeError("a queue mapping is not an object")
        hosted = value.get("hostedQueues") or {}
        if len(hosted) > QUEUES_MAX:
            raise ValueError(f"more than {QUEUES_MAX} queues")
        return cls(
            topic=str(value["topic"]),
            broker_name=str(value["bname"]),
            total_queues=int(value.get("totalQueues") or 0),
            epoch=int(value.get("epoch") or 0),
            hosted={int(number): [_item(one) for one in items] for number, items in hosted.items()},
            scope=str(value.get("scope") or SCOPE),
            dirty=value.get("dirty") is True,
        )

    def to_json(self) -> dict[str, Any]:
        """Java's TopicQueueMappingDetail."""
        return {
            "bname": self.broker_name,
            "currIdMap": {},
            "dirty": self.dirty,
            "epoch": self.epoch,
            "hostedQueues": dict(self.hosted),
            "scope": self.scope,
            "topic": self.topic,
            "totalQueues": self.total_queues,
        }

    def info(self) -> dict[str, Any]:
        """Java's TopicQueueMappingInfo: what name servers are told, and clients by them."""
        current = {number: items[-1]["queueId"] for number, items in self.hosted.items() if items}
        info = self.to_json() | {"currIdMap": current}
        del info["hostedQueues"]
        return info


class MappingSnapshot(NamedTuple):
    """What is saved."""

    table: Mapping[str, QueueMapping]
    data_version: DataVersion

    def to_json(self) -> dict[str, Any]:
        return {
            "dataVersion": self.data_version.to_json(),
            "topicQueueMappingInfoMap": {n: one.to_json() for n, one in self.table.items()},
        }


class QueueMappingTable:
    """The static topics of this broker."""

    def __init__(self, file: JsonTable, broker_name: str, *, now_ms: Callable[[], int]) -> None:
        self._file = file
        self._broker_name = broker_name
        self._now_ms = now_ms
        self._lock = threading.Lock()
        self.snapshot = MappingSnapshot({}, DataVersion(timestamp=now_ms()))
        self._saver = TableSaver(file, lambda: dumps_pretty(self.snapshot.to_json()))

    def load(self) -> None:
        """Read the file at start; mappings that cannot be served are kept in it, and named."""
        loaded = read_newest(self._file, decode_snapshot)
        if loaded is None:
            return
        self.snapshot = loaded
        for mapping in loaded.table.values():
            if (fault := self.fault(mapping)) is not None:
                logger.warning("static topic not served rightly reason=%s", fault)

    def get(self, topic: str) -> QueueMapping | None:
        return self.snapshot.table.get(topic)

    def infos(self, topics: Mapping[str, object]) -> dict[str, dict[str, Any]]:
        """Of these topics those that are static, as name servers are told."""
        return {name: one.info() for name, one in self.snapshot.table.items() if name in topics}

    def fault(self, mapping: QueueMapping) -> str | None:
        """Why this mapping cannot be served here; None if it can."""
        if mapping.broker_name != self._broker_name:
            return f"{mapping.topic} is mapped for {mapping.broker_name}, not {self._broker_name}"
        for number, items in mapping.hosted.items():
            one = items[0] if len(items) == 1 else None
            place = one and (one["bname"], one["queueId"], one["logicOffset"], one["startOffset"])
            if place != (self._broker_name, number, 0, 0):
                return (
                    f"logical queue {number} of {mapping.topic} is not simply queue {number} of "
                    f"{self._broker_name}: static topics on several brokers are not supported"
                )
        return None

    def merged(self, wanted: QueueMapping, *, force: bool) -> QueueMapping:
        """What an update makes of a topic's mapping; raises MappingFault and changes nothing."""
        fault = self.fault(wanted)
        if fault is not None:
            raise MappingFault(fault)
        old = self.get(wanted.topic)
        if old is None:
            return wanted
        if not force:
            _check_follows(old, wanted)
        return wanted._replace(hosted={**old.hosted, **wanted.hosted})

    def put(self, mapping: QueueMapping) -> None:
        """Publish and save; raises StorageError or OSError."""
        self._change({mapping.topic: mapping})

    def delete(self, topic: str) -> None:
        """Forget that a topic is static."""
        if topic in self.snapshot.table:
            self._change({topic: None})

    def _change(self, changes: Mapping[str, QueueMapping | None]) -> None:
        with self._lock:
            table = {**self.snapshot.table, **changes}
            version = next_version(self.snapshot.data_version, self._now_ms())
            left = {name: one for name, one in table.items() if one is not None}
            self.snapshot = MappingSnapshot(left, version)
        self._saver.save()


def _check_follows(old: QueueMapping, new: QueueMapping) -> None:
    """Java's words; a tool counts the epoch up with each change that it makes."""
    if new.epoch < old.epoch:
        raise MappingFault(f"Can't accept data with small epoch {new.epoch} < {old.epoch}")
    if new.scope != old.scope:
        raise MappingFault(f"Can't accept data with unmatched scope {new.scope} != {old.scope}")
    if new.epoch == old.epoch and not old.hosted.keys() <= new.hosted.keys():
        raise MappingFault("Cannot accept equal epoch with null data")


def _item(value: object) -> dict[str, Any]:
    """A LogicQueueMappingItem with all of its members, in fastjson's order."""
    if not isinstance(value, dict):
        raise TypeError("a queue mapping item is not an object")
    numbers = {name: int(value.get(name, default)) for name, default in _ITEM_DEFAULTS.items()}
    return {"bname": str(value.get("bname")), **numbers}


def decode_snapshot(data: bytes) -> MappingSnapshot:
    """The file of either broker; raises ValueError or TypeError."""
    value = fastjson.loads(data)
    if not isinstance(value, dict):
        raise TypeError("the table is not an object")
    found = value.get("topicQueueMappingInfoMap") or {}
    try:
        table = {str(name): QueueMapping.from_json(one) for name, one in found.items()}
    except KeyError as error:
        raise ValueError(f"{error} is missing") from None
    return MappingSnapshot(table, DataVersion.from_json(value.get("dataVersion") or {}))
