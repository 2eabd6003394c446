"""How far consumer groups are behind (Java: ConsumerLagCalculator).

Groups with members that are connected, and the topics that they subscribe to.  With a filter Java
estimates how many of the messages pass it; here all of them count.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from pyritemq.server.broker.state.names import RETRY_TOPIC_PREFIX

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyritemq.server.broker.broker import Broker


class Lag(NamedTuple):
    """A group's progress in a topic; times are how long the oldest message waits, 0 if none."""

    group: str
    topic: str
    lag: int
    lag_ms: int
    inflight: int
    queueing_ms: int
    ready: int


def lags(broker: Broker) -> Iterator[Lag]:
    for name, group in sorted(broker.consumers.groups().items()):
        if name not in broker.groups:
            continue
        for topic in sorted(group.subscriptions):
            config = broker.topics.get(topic)
            if config is None or topic.startswith(RETRY_TOPIC_PREFIX):
                continue
            if config.perm & broker.config.broker_permission & (broker.READ | broker.WRITE):
                yield _lag(broker, name, topic, config.write_queue_nums)


def _lag(broker: Broker, group: str, topic: str, queue_nums: int) -> Lag:
    lag = inflight = ready = 0
    oldest_unconsumed: list[int] = []
    oldest_unpulled: list[int] = []
    for queue_id in range(queue_nums):
        end = max(0, broker.store.max_offset(topic, queue_id))
        committed = broker.offsets.query(group, topic, queue_id)
        pulled = broker.offsets.query_pull(group, topic, queue_id)
        consumed = end if committed < 0 else committed
        lag += max(0, end - consumed)
        inflight += max(0, pulled - committed) if committed >= 0 else 0
        ready += max(0, end - pulled) if pulled >= 0 else 0
        oldest_unconsumed += _times(broker, topic, queue_id, consumed)
        oldest_unpulled += _times(broker, topic, queue_id, max(0, pulled))
    now_ms = broker.clock.now_ms()
    lag_ms = now_ms - min(oldest_unconsumed, default=now_ms)
    queueing_ms = now_ms - min(oldest_unpulled, default=now_ms)
    return Lag(group, topic, lag, max(0, lag_ms), inflight, max(0, queueing_ms), ready)


def _times(broker: Broker, topic: str, queue_id: int, offset: int) -> list[int]:
    """When the message at an offset was stored, if there is one."""
    if not 0 <= offset < broker.store.max_offset(topic, queue_id):
        return []
    time_ms = broker.store.store_time_at(topic, queue_id, offset)
    return [time_ms] if time_ms > 0 else []
