"""The consumer groups that this broker serves and how (Java: SubscriptionGroupManager).

Owner: the admin lane; the client and pull lanes create groups by asking for them.  Readers take the
current snapshot without any lock; `_lock` orders the writers, the saver's `_file_lock` the saves,
both as in topics.py.
"""

from __future__ import annotations

import logging
import threading
from dataclasses import dataclass, field, fields, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from pyritemq.compat import fastjson
from pyritemq.compat.register_body import DataVersion
from pyritemq.server.broker.state import names
from pyritemq.server.broker.state.attributes import GROUP_ATTRIBUTES, alter
from pyritemq.server.broker.state.config_json import dumps_pretty
from pyritemq.server.broker.state.table_file import TableSaver, read_newest
from pyritemq.server.broker.state.topics import next_version

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pyritemq.compat.broker_conf import BrokerConfig
    from pyritemq.storage.tables import JsonTable

logger = logging.getLogger(__name__)

SYSTEM_GROUPS = (
    "TOOLS_CONSUMER",
    "FILTERSRV_CONSUMER",
    "SELF_TEST_C_GROUP",
    "CID_ONS-HTTP-PROXY",
    "CID_ONSAPI_PULL",
    "CID_ONSAPI_PERMISSION",
    "CID_ONSAPI_OWNER",
    "CID_RMQ_SYS_TRANS",
)
"""What SubscriptionGroupManager.init of 5.5.0 puts in before it reads the file."""

READ_BIT = 2
"""Java's PermName.INDEX_PERM_READ: the place of the read permission among the bits."""

_WIRE_NAMES = {
    "attributes": "attributes",
    "broker_id": "brokerId",
    "consume_broadcast_enable": "consumeBroadcastEnable",
    "consume_enable": "consumeEnable",
    "consume_from_min_enable": "consumeFromMinEnable",
    "consume_message_orderly": "consumeMessageOrderly",
    "consume_timeout_minute": "consumeTimeoutMinute",
    "group_name": "groupName",
    "group_retry_policy": "groupRetryPolicy",
    "group_sys_flag": "groupSysFlag",
    "notify_consumer_ids_changed_enable": "notifyConsumerIdsChangedEnable",
    "retry_max_times": "retryMaxTimes",
    "retry_queue_nums": "retryQueueNums",
    "subscription_data_set": "subscriptionDataSet",
    "which_broker_when_consume_slowly": "whichBrokerWhenConsumeSlowly",
}
"""In fastjson's order, which is that of the alphabet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SubscriptionGroupConfig:
    """A consumer group; defaults are Java's.  Retry policy and subscriptions stay as JSON."""

    group_name: str
    consume_enable: bool = True
    consume_from_min_enable: bool = True
    consume_broadcast_enable: bool = True
    consume_message_orderly: bool = False
    retry_queue_nums: int = 1
    retry_max_times: int = 16
    group_retry_policy: Mapping[str, Any] = field(default_factory=lambda: {"type": "CUSTOMIZED"})
    broker_id: int = 0
    which_broker_when_consume_slowly: int = 1
    notify_consumer_ids_changed_enable: bool = True
    group_sys_flag: int = 0
    consume_timeout_minute: int = 15
    subscription_data_set: Sequence[Any] | None = None
    attributes: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def from_json(cls, data: object) -> Self:
        """Absent and null fields have their defaults.  Raises ValueError."""
        if not isinstance(data, dict):
            raise ValueError("a subscription group is not a JSON object")
        given = {
            name: value
            for name, wire_name in _WIRE_NAMES.items()
            if (value := data.get(wire_name)) is not None
        }
        for known in fields(cls):
            if known.name in given:
                _check_kind(known.name, given[known.name], str(known.type))
        # A group without a name is refused by the handler, in Java's words.
        return cls(**{"group_name": "", **given})

    def to_json(self) -> dict[str, Any]:
        """Java's field names, in fastjson's order."""
        return {wire: getattr(self, name) for name, wire in _WIRE_NAMES.items()}


def _check_kind(name: str, value: object, declared: str) -> None:
    kind: dict[str, type | tuple[type, ...]] = {"bool": bool, "int": int, "str": str}
    expected = kind.get(declared, (dict, list))
    if not isinstance(value, expected) or (expected is int and isinstance(value, bool)):
        raise ValueError(f"{_WIRE_NAMES[name]} has a wrong type")


class GroupSnapshot(NamedTuple):
    """All groups at one version; `forbidden` is group -> topic -> bits of what is switched off."""

    table: Mapping[str, SubscriptionGroupConfig]
    forbidden: Mapping[str, Mapping[str, int]]
    data_version: DataVersion

    def to_json(self) -> dict[str, object]:
        """Java's subscriptionGroup.json."""
        return {
            "dataVersion": self.data_version.to_json(),
            "forbiddenTable": self.forbidden,
            "subscriptionGroupTable": {name: group.to_json() for name, group in self.table.items()},
        }


class SubscriptionGroupTable:
    """Consumer groups by name."""

    def __init__(self, config: BrokerConfig, file: JsonTable, *, now_ms: Callable[[], int]) -> None:
        self._config = config
        self._file = file
        self._now_ms = now_ms
        self._lock = threading.Lock()
        self._saver = TableSaver(file, lambda: dumps_pretty(self._snapshot.to_json()))
        first = {name: SubscriptionGroupConfig(group_name=name) for name in SYSTEM_GROUPS}
        self._snapshot = GroupSnapshot(first, MappingProxyType({}), DataVersion(timestamp=now_ms()))

    def load(self) -> None:
        """Read the file at start; what it holds wins over the groups that every broker has."""
        loaded = read_newest(self._file, decode_snapshot)
        if loaded is not None:
            with self._lock:
                table = {**self._snapshot.table, **loaded.table}
                self._snapshot = loaded._replace(table=table)

    def persist(self) -> None:
        """Write the current snapshot."""
        self._saver.save()

    def save_late(self) -> None:
        """Write it if that could not be done when a client brought a new group."""
        self._saver.save_late()

    @property
    def snapshot(self) -> GroupSnapshot:
        return self._snapshot

    def __contains__(self, group: str) -> bool:
        return group in self._snapshot.table

    def find(self, group: str) -> SubscriptionGroupConfig | None:
        """A group, made now if it may be; None if it does not exist and may not."""
        found = self._snapshot.table.get(group)
        if found is not None or not self._may_create(group):
            return found

        def change(table: dict[str, SubscriptionGroupConfig]) -> bool:
            if group in table:
                return False
            table[group] = SubscriptionGroupConfig(group_name=group)
            return True

        if self._change(change, may_be_late=True):
            logger.info("subscription group created group=%s", group)
        return self._snapshot.table.get(group)

    def update(self, wanted: SubscriptionGroupConfig) -> None:
        """Create or replace a group; `wanted.attributes` are alterations.

        Raises AttributeFault.
        """

        def change(table: dict[str, SubscriptionGroupConfig]) -> bool:
            old = table.get(wanted.group_name)
            current = None if old is None else old.attributes
            attributes = alter(current, wanted.attributes, GROUP_ATTRIBUTES)
            table[wanted.group_name] = new = replace(wanted, attributes=attributes)
            logger.info("subscription group updated old=%s new=%s", old, new)
            return True

        self._change(change)

    def delete(self, group: str) -> bool:
        """Forget a group; whether there was one."""
        return self._change(lambda table: table.pop(group, None) is not None, forget=group)

    def disable_consume(self, group: str) -> bool:
        """Let a group read no more; whether it could until now."""

        def change(table: dict[str, SubscriptionGroupConfig]) -> bool:
            old = table.get(group)
            if old is None or not old.consume_enable:
                return False
            table[group] = replace(old, consume_enable=False)
            return True

        return self._change(change)

    def set_forbidden(self, group: str, topic: str, bit: int, *, forbidden: bool) -> None:
        """Switch a permission of the group on a topic off, or on again."""
        with self._lock:
            old = self._snapshot
            topics = dict(old.forbidden.get(group, {}))
            bits = topics.pop(topic, 0) & ~(1 << bit) | (forbidden << bit)
            if bits:
                topics[topic] = bits
            table = {name: its for name, its in old.forbidden.items() if name != group}
            if topics:
                table[group] = topics
            self._snapshot = GroupSnapshot(
                old.table, table, next_version(old.data_version, self._now_ms())
            )
        self.persist()

    def is_forbidden(self, group: str, topic: str, bit: int) -> bool:
        """Whether an operator has switched a permission of the group on this topic off."""
        return bool(self._snapshot.forbidden.get(group, {}).get(topic, 0) >> bit & 1)

    def _may_create(self, group: str) -> bool:
        config = self._config
        is_system = config.enable_create_sys_group and group.startswith(names.SYSTEM_GROUP_PREFIX)
        allowed = config.auto_create_subscription_group or is_system
        return allowed and names.group_fault(group) is None

    def _change(
        self,
        change: Callable[[dict[str, SubscriptionGroupConfig]], bool],
        *,
        forget: str | None = None,
        may_be_late: bool = False,
    ) -> bool:
        with self._lock:
            table = dict(self._snapshot.table)
            if not change(table):
                return False
            old = self._snapshot
            forbidden = {group: bits for group, bits in old.forbidden.items() if group != forget}
            self._snapshot = GroupSnapshot(
                table, forbidden, next_version(old.data_version, self._now_ms())
            )
        if may_be_late:
            self._saver.save_or_later()
        else:
            self._saver.save()
        return True


def decode_snapshot(data: bytes) -> GroupSnapshot:
    """Read subscriptionGroup.json.  Raises ValueError."""
    members = fastjson.loads(data)
    if not isinstance(members, dict):
        raise ValueError("not a JSON object")
    table = members.get("subscriptionGroupTable") or {}
    forbidden = members.get("forbiddenTable") or {}
    return GroupSnapshot(
        {str(name): SubscriptionGroupConfig.from_json(group) for name, group in table.items()},
        {str(g): {str(t): int(n) for t, n in bits.items()} for g, bits in forbidden.items()},
        DataVersion.from_json(members.get("dataVersion") or {}),
    )
