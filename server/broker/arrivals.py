"""Tells pulls that wait what the send lane has just stored; called by all that put on that lane."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyritemq.server.broker.long_polling import Arrival

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyritemq.server.broker.broker import Broker
    from pyritemq.server.broker.pop.long_polling import PopLongPolling
    from pyritemq.storage.messages import MessageToStore, PutResult


def announce(
    broker: Broker, messages: Sequence[MessageToStore], results: Sequence[PutResult]
) -> None:
    """Tell the long-polls of these queues, after the store has published them."""
    for waiting in broker.pop.waiting:
        if waiting.anybody_waits:
            _tell_pops(waiting, messages, results)
    long_polling = broker.long_polling
    if not long_polling.anybody_waits:
        return
    arrived: dict[tuple[str, int], tuple[int, set[int]]] = {}
    for message, result in zip(messages, results, strict=True):
        if not result.size:  # refused: it has no offset
            continue
        key = (message.topic.decode(), message.queue_id)
        if not long_polling.is_awaited(key):
            continue
        _, tags = arrived.get(key, (0, set()))
        tags.add(message.tags_code or 0)
        arrived[key] = result.queue_offset + 1, tags
    long_polling.announce(
        [Arrival(key, end, frozenset(tags)) for key, (end, tags) in arrived.items()]
    )


def _tell_pops(
    long_polling: PopLongPolling, messages: Sequence[MessageToStore], results: Sequence[PutResult]
) -> None:
    arrived: dict[tuple[str, int], tuple[int, set[int]]] = {}
    for message, result in zip(messages, results, strict=True):
        topic = message.topic.decode()
        if not result.size or not long_polling.is_awaited(topic):
            continue
        key = (topic, message.queue_id)
        count, tags = arrived.get(key, (0, set()))
        tags.add(message.tags_code or 0)
        arrived[key] = count + 1, tags
    if arrived:
        long_polling.arrived({key: (n, frozenset(tags)) for key, (n, tags) in arrived.items()})
