"""The topics of this broker: queue numbers, permissions, attributes (Java: TopicConfigManager).

Owner: the admin lane; the send and client lanes create topics too.  Readers take the current
snapshot, an immutable table with its version, without any lock.  `_lock` orders the writers and is
held while the next snapshot is built; the saver's `_file_lock` orders the saves, so that an older
snapshot never replaces a newer one on disk, and is held during that write alone.

A change is on disk before the call that made it returns (a topic of the broker's own making may
follow later, if the disk is full); then `on_change` is told, outside the
locks, which topics the name servers have to hear of.
"""

from __future__ import annotations

import logging
import threading
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from pyritemq.compat import fastjson
from pyritemq.compat.register_body import DataVersion, TopicConfig
from pyritemq.server.broker.state import names
from pyritemq.server.broker.state.attributes import (
    RESERVE_TIME,
    TOPIC_ATTRIBUTES,
    AttributeFault,
    alter,
)
from pyritemq.server.broker.state.config_json import dumps_pretty
from pyritemq.server.broker.state.names import RETRY_TOPIC_PREFIX as RETRY_PREFIX
from pyritemq.server.broker.state.names import topic_fault as validate_topic
from pyritemq.server.broker.state.table_file import TableSaver, read_newest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from pyritemq.compat.broker_conf import BrokerConfig
    from pyritemq.storage.tables import JsonTable

__all__ = [
    "FLAG_UNIT",
    "FLAG_UNIT_SUB",
    "PERM_INHERIT",
    "PERM_READ",
    "PERM_WRITE",
    "RETRY_PREFIX",
    "TopicConfig",
    "TopicSnapshot",
    "TopicTable",
    "decode_snapshot",
    "describe_topic",
    "next_version",
    "system_topics",
    "validate_topic",
]

logger = logging.getLogger(__name__)

PERM_READ = 4
PERM_WRITE = 2
PERM_INHERIT = 1
"""Other topics may be created in the image of this one."""

FLAG_UNIT = 1
FLAG_UNIT_SUB = 2
"""Bits of topicSysFlag for topics of unitised deployments."""

SCHEDULE_QUEUE_NUMS = 18
BENCHMARK_QUEUE_NUMS = 1024


class TopicSnapshot(NamedTuple):
    """All topics at one version."""

    table: Mapping[str, TopicConfig]
    data_version: DataVersion

    def to_json(self) -> dict[str, object]:
        """Java's topics.json."""
        return {
            "dataVersion": self.data_version.to_json(),
            "topicConfigTable": {name: topic.to_json() for name, topic in self.table.items()},
        }


class TopicTable:
    """Topics by name."""

    def __init__(self, config: BrokerConfig, file: JsonTable, *, now_ms: Callable[[], int]) -> None:
        self._config = config
        self._file = file
        self._now_ms = now_ms
        self._lock = threading.Lock()
        self._saver = TableSaver(file, lambda: dumps_pretty(self._snapshot.to_json()))
        first = {topic.topic_name: topic for topic in system_topics(config)}
        self._system_topics = names.SYSTEM_TOPICS | first.keys()
        self._snapshot = TopicSnapshot(first, DataVersion(timestamp=now_ms()))
        self.on_change: Callable[[list[TopicConfig]], None] = lambda topics: None

    def load(self) -> None:
        """Read the file at start; what it holds wins over the topics that every broker has."""
        loaded = read_newest(self._file, decode_snapshot)
        if loaded is not None:
            with self._lock:
                table = {**self._snapshot.table, **loaded.table}
                self._snapshot = TopicSnapshot(table, loaded.data_version)

    def persist(self) -> None:
        """Write the current snapshot."""
        self._saver.save()

    def save_late(self) -> None:
        """Write it if that could not be done when a client made the broker change it."""
        self._saver.save_late()

    @property
    def snapshot(self) -> TopicSnapshot:
        return self._snapshot

    def get(self, topic: str) -> TopicConfig | None:
        """A topic's configuration; the send and pull lanes ask for each message."""
        return self._snapshot.table.get(topic)

    def __contains__(self, topic: str) -> bool:
        return topic in self._snapshot.table

    @property
    def system_topics(self) -> frozenset[str]:
        """The topics that every broker has, and those with this broker's names in them."""
        return self._system_topics

    def is_system_topic(self, topic: str) -> bool:
        """Whether the broker needs this topic for itself."""
        return topic in self._system_topics or topic.startswith(names.SYSTEM_TOPIC_PREFIX)

    def is_order_topic(self, topic: str) -> bool:
        """Whether the topic is declared as globally ordered."""
        found = self.get(topic)
        return found is not None and found.order

    def is_closed_to_senders(self, topic: str) -> bool:
        """Whether only the broker itself may write to this topic."""
        return topic in names.NOT_ALLOWED_SEND_TOPICS

    def create_on_send(
        self, topic: str, default_topic: str, *, queue_nums: int, unit_mode: bool, peer: str
    ) -> TopicConfig | None:
        """A topic that a producer sends to for the first time, in the image of `default_topic`.

        A retry topic is made in any case; any other only if the default topic is there and may be
        inherited from, else the result is None.
        """
        is_retry = topic.startswith(names.RETRY_TOPIC_PREFIX)
        sys_flag = (FLAG_UNIT_SUB if is_retry else FLAG_UNIT) if unit_mode else 0

        def make(table: Mapping[str, TopicConfig]) -> TopicConfig | None:
            default = table.get(default_topic)
            if default is not None and self._may_inherit(default):
                return _inherit(default, topic, queue_nums, sys_flag)
            logger.warning(
                "topic not inherited topic=%s default=%s perm=%s peer=%s",
                topic,
                default_topic,
                None if default is None else default.perm,
                peer,
            )
            return replace(_topic(topic, 1), topic_sys_flag=sys_flag) if is_retry else None

        return self._create(topic, make)

    def create_on_send_back(
        self,
        topic: str,
        *,
        queue_nums: int,
        perm: int = PERM_READ | PERM_WRITE,
        order: bool = False,
        topic_sys_flag: int = 0,
    ) -> TopicConfig:
        """A retry, DLQ or other topic of the broker's own making; an existing one stays as it is,
        but for `order`."""
        found = self.get(topic)
        if found is not None:
            return found if found.order == order else self._set_order(found, order=order)
        new = TopicConfig(
            topic,
            read_queue_nums=queue_nums,
            write_queue_nums=queue_nums,
            perm=perm,
            topic_sys_flag=topic_sys_flag,
            order=order,
        )
        return self._create(topic, lambda table: new, may_be_late=True) or new

    def update(self, wanted: TopicConfig) -> TopicConfig:
        """Create or replace a topic; `wanted.attributes` are alterations (`+key`, `-key`).

        Raises AttributeFault.
        """
        if f"+{RESERVE_TIME}" in wanted.attributes:
            # Only Java's tiered store knows the attribute's effect; its plain store refuses it.
            raise AttributeFault("Update topic reserveTime not supported")

        def change(table: dict[str, TopicConfig]) -> list[TopicConfig]:
            old = table.get(wanted.topic_name)
            current = None if old is None else old.attributes
            attributes = alter(current, wanted.attributes, TOPIC_ATTRIBUTES)
            table[wanted.topic_name] = new = replace(wanted, attributes=attributes)
            logger.info("topic updated old=%s new=%s", old, new)
            return [new]

        return self._change(change)[0]

    def delete(self, topic: str) -> bool:
        """Forget a topic; whether there was one.  Name servers are told by whoever deletes it."""

        def change(table: dict[str, TopicConfig]) -> list[TopicConfig]:
            old = table.pop(topic, None)
            return [] if old is None else [old]

        deleted = self._change(change, announce=False)
        if deleted:
            logger.info("topic deleted topic=%s", topic)
        return bool(deleted)

    def new_version(self) -> None:
        """Count up, without a change of topics: what name servers are told has changed."""
        with self._lock:
            table, version = self._snapshot
            self._snapshot = TopicSnapshot(table, next_version(version, self._now_ms()))
        self.persist()

    def set_ordered(self, topics: Iterable[str]) -> None:
        """Mark topics that a name server's ORDER_TOPIC_CONFIG lists."""
        found = [config for topic in topics if (config := self.get(topic)) is not None]
        for config in found:
            if not config.order:
                self._set_order(config, order=True)

    def _set_order(self, found: TopicConfig, *, order: bool) -> TopicConfig:
        def change(table: dict[str, TopicConfig]) -> list[TopicConfig]:
            old = table.get(found.topic_name, found)
            table[found.topic_name] = new = replace(old, order=order)
            return [new]

        # As in Java, the name servers learn of it with the next periodic registration.
        return self._change(change, announce=False)[0]

    def _may_inherit(self, default: TopicConfig) -> bool:
        if default.topic_name == names.AUTO_CREATE_TOPIC:
            return self._config.auto_create_topic_enable and bool(default.perm & PERM_INHERIT)
        return bool(default.perm & PERM_INHERIT)

    def _create(
        self,
        topic: str,
        make: Callable[[Mapping[str, TopicConfig]], TopicConfig | None],
        *,
        may_be_late: bool = False,
    ) -> TopicConfig | None:
        def change(table: dict[str, TopicConfig]) -> list[TopicConfig]:
            if topic in table:
                return []
            new = make(table)
            if new is None:
                return []
            table[topic] = new
            logger.info("topic created topic=%s", new)
            return [new]

        self._change(change, may_be_late=may_be_late)
        return self.get(topic)

    def _change(
        self,
        change: Callable[[dict[str, TopicConfig]], list[TopicConfig]],
        *,
        announce: bool = True,
        may_be_late: bool = False,
    ) -> list[TopicConfig]:
        """Apply `change` to a copy of the table; if it changed topics, publish, save, announce."""
        with self._lock:
            table = dict(self._snapshot.table)
            changed = change(table)
            if not changed:
                return changed
            self._snapshot = TopicSnapshot(
                table, next_version(self._snapshot.data_version, self._now_ms())
            )
        if may_be_late:
            self._saver.save_or_later()
        else:
            self._saver.save()
        if announce:
            self.on_change(changed)
        return changed


def _inherit(default: TopicConfig, topic: str, queue_nums: int, sys_flag: int) -> TopicConfig:
    nums = max(0, min(queue_nums, default.write_queue_nums))
    return TopicConfig(
        topic,
        read_queue_nums=nums,
        write_queue_nums=nums,
        perm=default.perm & ~PERM_INHERIT,
        topic_filter_type=default.topic_filter_type,
        topic_sys_flag=sys_flag,
    )


def describe_topic(topic: TopicConfig) -> str:
    """Java's TopicConfig.toString, which some remarks contain."""
    perm = "".join(
        letter if topic.perm & bit else "-"
        for letter, bit in (("R", PERM_READ), ("W", PERM_WRITE), ("X", PERM_INHERIT))
    )
    attributes = ", ".join(f"{key}={value}" for key, value in topic.attributes.items())
    return (
        f"TopicConfig [topicName={topic.topic_name}, readQueueNums={topic.read_queue_nums}, "
        f"writeQueueNums={topic.write_queue_nums}, perm={perm}, "
        f"topicFilterType={topic.topic_filter_type}, topicSysFlag={topic.topic_sys_flag}, "
        f"order={str(topic.order).lower()}, attributes={{{attributes}}}]"
    )


def next_version(version: DataVersion, now_ms: int) -> DataVersion:
    """The version after a change."""
    return DataVersion(now_ms, version.counter + 1, version.state_version)


def decode_snapshot(data: bytes) -> TopicSnapshot:
    """Read topics.json.  Raises ValueError."""
    fields = fastjson.loads(data)
    if not isinstance(fields, dict):
        raise ValueError("not a JSON object")
    table = fields.get("topicConfigTable") or {}
    return TopicSnapshot(
        {str(name): TopicConfig.from_json(topic) for name, topic in table.items()},
        DataVersion.from_json(fields.get("dataVersion") or {}),
    )


def system_topics(config: BrokerConfig) -> Iterator[TopicConfig]:
    """The topics that Java 5.5.0 has before it reads topics.json (TopicConfigManager.init)."""
    yield _topic(names.SELF_TEST_TOPIC, 1)
    if config.auto_create_topic_enable:
        inheritable = PERM_READ | PERM_WRITE | PERM_INHERIT
        yield _topic(names.AUTO_CREATE_TOPIC, config.default_topic_queue_nums, inheritable)
    yield _topic(names.BENCHMARK_TOPIC, BENCHMARK_QUEUE_NUMS)
    yield TopicConfig(config.broker_cluster_name, perm=_inheritable_if(config.cluster_topic_enable))
    yield _topic(config.broker_name, 1, _inheritable_if(config.broker_topic_enable))
    yield _topic(names.OFFSET_MOVED_EVENT, 1)
    yield _topic(names.SCHEDULE_TOPIC, SCHEDULE_QUEUE_NUMS)
    if config.trace_topic_enable:
        yield _topic(config.msg_trace_topic_name, 1)
    yield _topic(f"{config.broker_cluster_name}_{names.REPLY_TOPIC_POSTFIX}", 1)
    yield _topic(names.REVIVE_TOPIC_PREFIX + config.broker_cluster_name, config.revive_queue_num)
    yield _topic(names.SYNC_BROKER_MEMBER_PREFIX + config.broker_name, 1, PERM_INHERIT)
    yield _topic(names.TRANS_HALF_TOPIC, 1)
    yield _topic(names.TRANS_OP_HALF_TOPIC, 1)
    yield _topic(names.ROCKSDB_TRANS_HALF_TOPIC, 1)
    yield _topic(names.ROCKSDB_TRANS_OP_HALF_TOPIC, 1)
    if config.timer_wheel_enable:
        yield _topic(names.TIMER_TOPIC, 1)


def _topic(name: str, queue_nums: int, perm: int = PERM_READ | PERM_WRITE) -> TopicConfig:
    return TopicConfig(name, read_queue_nums=queue_nums, write_queue_nums=queue_nums, perm=perm)


def _inheritable_if(enabled: bool) -> int:
    return PERM_INHERIT | (PERM_READ | PERM_WRITE if enabled else 0)
