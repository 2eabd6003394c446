"""The SQL filters of all groups, and `consumerFilter.json` (Java: ConsumerFilterManager).

Owner: the client lane, where heartbeats bring filters and departures end them; pulls look one up.
`_lock` is held for look-ups and for putting an entry in place, `_file_lock` for a save.  An entry
is immutable.  A group's filter outlives its consumers by a day, so that a broker or a group that
comes back need not be asked again.
"""

from __future__ import annotations

import logging
import threading
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import orjson

from pyritemq.compat import fastjson
from pyritemq.server.broker.filters.bloom import BloomFilter, BloomFilterData
from pyritemq.server.broker.filters.selector_nodes import SelectorError
from pyritemq.server.broker.filters.sql92 import compile_expression
from pyritemq.server.broker.state.config_json import dumps_pretty
from pyritemq.server.broker.state.table_file import read_newest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from pyritemq.compat.broker_conf import BrokerConfig
    from pyritemq.server.broker.filters.sql92 import Expression
    from pyritemq.server.broker.state.subscriptions import Subscription
    from pyritemq.storage.tables import JsonTable

logger = logging.getLogger(__name__)

SAVE_SECONDS = 10
"""How often Java writes the file."""

DEAD_BEFORE_LOAD_MS = 30_000
"""Consumers that a broker finds in its file are taken to have died this long before it started."""

Key = tuple[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerFilterData:
    """One group's filter on one topic; `compiled` is None where a saved text does not compile."""

    topic: str
    consumer_group: str
    expression: str
    expression_type: str
    compiled: Expression | None
    born_time: int
    dead_time: int = 0
    bloom_filter_data: BloomFilterData | None
    client_version: int

    @property
    def is_dead(self) -> bool:
        return self.dead_time >= self.born_time

    def to_json(self) -> dict[str, Any]:
        """Java's field names, in fastjson's order; it writes arrays of numbers on one line."""
        bloom = self.bloom_filter_data
        return {
            "bloomFilterData": bloom
            and {
                "bitNum": bloom.bit_num,
                "bitPos": orjson.Fragment(orjson.dumps(bloom.bit_pos)),
            },
            "bornTime": self.born_time,
            "clientVersion": self.client_version,
            "consumerGroup": self.consumer_group,
            "dead": self.is_dead,
            "deadTime": self.dead_time,
            "expression": self.expression,
            "expressionType": self.expression_type,
            "topic": self.topic,
        }


class ConsumerFilterTable:
    """Filters by topic and group."""

    def __init__(self, config: BrokerConfig, file: JsonTable, *, now_ms: Callable[[], int]) -> None:
        self._file = file
        self._now_ms = now_ms
        self._kept_ms = config.filter_data_clean_time_span
        self._bloom = BloomFilter(
            error_percent=config.max_error_rate_of_bloom_filter,
            expected=config.expect_consumer_num_use_filter,
        )
        self._lock = threading.Lock()
        self._file_lock = threading.Lock()
        self._filters: dict[Key, ConsumerFilterData] = {}
        self._by_topic: dict[str, tuple[ConsumerFilterData, ...]] = {}  # of topics asked for
        self._saved: bytes | None = None

    def get(self, topic: str, group: str) -> ConsumerFilterData | None:
        """A group's filter on a topic, dead or alive."""
        with self._lock:
            return self._filters.get((topic, group))

    def on_topic(self, topic: str) -> tuple[ConsumerFilterData, ...]:
        """Every group's filter on a topic, dead or alive."""
        with self._lock:
            found = self._by_topic.get(topic)
            if found is None:
                found = tuple(data for key, data in self._filters.items() if key[0] == topic)
                self._by_topic[topic] = found
            return found

    @property
    def bit_num(self) -> int:
        """The bits of a message's bit map."""
        return self._bloom.bit_num

    def register(self, group: str, subscriptions: Iterable[Subscription]) -> None:
        """A heartbeat: all that a group subscribes to; filters on other topics end."""
        topics = set()
        for subscription in subscriptions:
            topics.add(subscription.topic)
            if not subscription.is_tag_type and subscription.sub_string:
                self._register(group, subscription)
        with self._lock:
            self._end([key for key in self._filters if key[1] == group and key[0] not in topics])

    def unregister(self, group: str) -> None:
        """The last consumer of a group is gone."""
        with self._lock:
            self._end([key for key in self._filters if key[1] == group])

    def load(self) -> None:
        """Read the file at start; a file made with another bloom filter is passed over, as Java's
        broker does."""
        loaded = read_newest(self._file, self._decode)
        if loaded is None:
            return
        if not all(self._bloom.is_valid(data.bloom_filter_data) for data in loaded):
            logger.info("filters passed over file=%s reason=bloom_filter_changed", self._file.name)
            return
        with self._lock:
            self._filters = {(data.topic, data.consumer_group): data for data in loaded}
            self._by_topic.clear()

    def persist(self) -> None:
        """Write the file, unless nothing has changed, without the filters that died long ago."""
        encoded = _encode(self._without_long_dead())
        with self._file_lock:
            if encoded != self._saved:
                self._file.save(encoded)
                self._saved = encoded

    def _without_long_dead(self) -> list[ConsumerFilterData]:
        oldest = self._now_ms() - self._kept_ms
        with self._lock:
            for key, data in [*self._filters.items()]:
                if data.is_dead and data.dead_time <= oldest:
                    del self._filters[key]
                    self._by_topic.pop(key[0], None)
            return list(self._filters.values())

    def _register(self, group: str, subscription: Subscription) -> None:
        key = subscription.topic, group
        with self._lock:
            old = self._filters.get(key)
        new = self._renewed(old, group, subscription)
        if new is old:
            return
        with self._lock:
            self._by_topic.pop(subscription.topic, None)
            if new is None:
                # the client asks for its filter and hears that there is none
                self._filters.pop(key, None)
            elif old is not None and new.compiled is old.compiled:
                self._filters[key] = new
            else:  # born here, not when it was compiled: bit_maps.py says why
                self._filters[key] = replace(new, born_time=self._now_ms())

    def _renewed(
        self, old: ConsumerFilterData | None, group: str, subscription: Subscription
    ) -> ConsumerFilterData | None:
        """What a group's filter becomes (Java: FilterDataMapByTopic.register)."""
        version = subscription.sub_version
        bloom = self._bloom.generate(f"{group}#{subscription.topic}")
        if old is None:
            return self._built(group, subscription, bloom)
        if version < old.client_version:
            return old
        if version == old.client_version:
            return replace(old, dead_time=0) if old.is_dead else old
        same = old.expression, old.expression_type, old.bloom_filter_data
        if same != (subscription.sub_string, subscription.expression_type, bloom):
            return self._built(group, subscription, bloom)
        return replace(old, client_version=version, dead_time=0 if old.is_dead else old.dead_time)

    def _built(
        self, group: str, subscription: Subscription, bloom: BloomFilterData
    ) -> ConsumerFilterData | None:
        compiled = compiled_or_none(subscription, group)
        if compiled is None:
            return None
        logger.info("filter registered group=%s topic=%s", group, subscription.topic)
        return ConsumerFilterData(
            topic=subscription.topic,
            consumer_group=group,
            expression=subscription.sub_string,
            expression_type=subscription.expression_type or "",
            compiled=compiled,
            born_time=self._now_ms(),
            bloom_filter_data=bloom,
            client_version=subscription.sub_version,
        )

    def _end(self, keys: list[Key]) -> None:
        """Under the lock: these filters have no consumer any more."""
        for key in keys:
            data = self._filters[key]
            if not data.is_dead:
                self._filters[key] = replace(data, dead_time=self._now_ms())

    def _decode(self, encoded: bytes) -> list[ConsumerFilterData]:
        by_topic = _object(_object(fastjson.loads(encoded)).get("filterDataByTopic") or {})
        return [
            self._loaded(_object(item))
            for topic in by_topic.values()
            if topic is not None
            for item in _object(_object(topic).get("groupFilterData") or {}).values()
            if item is not None
        ]

    def _loaded(self, item: dict[str, Any]) -> ConsumerFilterData:
        kind, text = str(item.get("expressionType")), str(item.get("expression"))
        try:
            compiled = compile_expression(kind, text)
        except SelectorError as error:
            logger.warning("filter does not compile topic=%s reason=%s", item.get("topic"), error)
            compiled = None
        born_time = int(item.get("bornTime") or 0)
        died = max(self._now_ms() - DEAD_BEFORE_LOAD_MS, born_time)
        return ConsumerFilterData(
            topic=str(item.get("topic")),
            consumer_group=str(item.get("consumerGroup")),
            expression=text,
            expression_type=kind,
            compiled=compiled,
            born_time=born_time,
            dead_time=int(item.get("deadTime") or 0) or died,
            bloom_filter_data=BloomFilterData.from_json(item.get("bloomFilterData")),
            client_version=int(item.get("clientVersion") or 0),
        )


def compiled_or_none(subscription: Subscription, group: str) -> Expression | None:
    """A subscription's expression; the fault of one that does not compile is logged."""
    try:
        return compile_expression(subscription.expression_type, subscription.sub_string)
    except SelectorError as error:
        logger.warning(
            "filter refused group=%s topic=%s reason=%s", group, subscription.topic, error
        )
        return None


def _encode(filters: Iterable[ConsumerFilterData]) -> bytes:
    by_topic: dict[str, dict[str, Any]] = {}
    for data in filters:
        topic = by_topic.setdefault(data.topic, {"groupFilterData": {}, "topic": data.topic})
        topic["groupFilterData"][data.consumer_group] = data.to_json()
    return dumps_pretty({"filterDataByTopic": by_topic})


def _object(data: object) -> dict[str, Any]:
    if not isinstance(data, dict):
        raise ValueError("consumerFilter.json holds something that is not a JSON object")
    return data
