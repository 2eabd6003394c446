"""Steps that many cases share."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any

from pyritemq.conformance import wire as wires
from pyritemq.conformance.actors import message, queue
from pyritemq.protocol.codes import RequestCode

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyritemq.conformance.actors import Consumer, Json
    from pyritemq.conformance.trial import Trial
    from pyritemq.conformance.wire import Wire

READABLE_SECONDS = 20.0
POLL_SECONDS = 0.02


def numbered(topic: str, count: int, *, first: int = 0, **fields: Any) -> list[Json]:  # noqa: ANN401
    """Messages whose bodies are their numbers."""
    return [message(topic, str(number), **fields) for number in range(first, first + count)]


def numbers(count: int, first: int = 0) -> list[str]:
    return [str(number) for number in range(first, first + count)]


def fill(t: Trial, topic: str, count: int, *, queue_id: int = 0, first: int = 0) -> list[Json]:
    """Numbered messages in one queue, by the client under test."""
    how = {"queue": queue(topic, queue_id, t.servers.broker.name)}
    return t.producer().send_many(numbered(topic, count, first=first), **how)


def fill_by_wire(wire: Wire, topic: str, count: int, *, queue_id: int = 0) -> None:
    """Numbered messages in one queue, and wait until the queue has them: a broker answers a send
    before that."""
    sent = [wires.send(wire, topic, str(number), queue_id) for number in range(count)]
    end = int(sent[-1].ext_fields["queueOffset"]) + 1
    deadline = time.monotonic() + READABLE_SECONDS
    while max_offset(wire, topic, queue_id) < end and time.monotonic() < deadline:
        time.sleep(POLL_SECONDS)


def in_background(action: Callable[[], object]) -> threading.Thread:
    thread = threading.Thread(target=action, daemon=True)
    thread.start()
    return thread


def max_offset(wire: Wire, topic: str, queue_id: int = 0) -> int:
    reply = wire.call(RequestCode.GET_MAX_OFFSET, {"topic": topic, "queueId": queue_id})
    return int(reply.ext_fields.get("offset", "-1"))


def stored_offset(wire: Wire, group: str, topic: str, queue_id: int = 0) -> int | None:
    fields = {"consumerGroup": group, "topic": topic, "queueId": queue_id}
    reply = wire.call(RequestCode.QUERY_CONSUMER_OFFSET, {**fields, "setZeroIfNotFound": "false"})
    return int(reply.ext_fields["offset"]) if reply.code == 0 else None


def settled(t: Trial, consumer: Consumer, topic: str, queues: int, total: int) -> None:
    """Wait until the broker has the consumer's offsets for all that it consumed: a listener is done
    a moment before its consumer notes that."""
    wire = t.wire()

    def stored() -> int:
        consumer.call("persist")
        found = [stored_offset(wire, consumer.group, topic, number) for number in range(queues)]
        return sum(offset or 0 for offset in found)

    t.eventually("stored offsets", stored, total)


def route(wire: Wire, topic: str) -> Json | None:
    """The route of a topic, or None where there is none."""
    reply = wire.call(RequestCode.GET_ROUTEINFO_BY_TOPIC, {"topic": topic})
    found: Json | None = wires.java_json(reply.body) if reply.code == 0 else None
    return found


def cluster_brokers(wire: Wire) -> list[str]:
    info = wires.java_json(wire.call(RequestCode.GET_BROKER_CLUSTER_INFO).body)
    return sorted(info["brokerAddrTable"])


def write_queues(wire: Wire, topic: str) -> int:
    """How many queues a topic has on its first broker; 0 where it has no route."""
    found = route(wire, topic)
    return int(found["queueDatas"][0]["writeQueueNums"]) if found and found["queueDatas"] else 0


def stored(t: Trial, topic: str) -> int:
    """How many messages a topic has."""
    wire, queues = t.wire(), write_queues(t.namesrv_wire(), topic)
    return sum(max_offset(wire, topic, number) for number in range(queues))
