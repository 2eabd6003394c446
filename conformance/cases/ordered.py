"""Ordered messages and the queue locks behind them."""

from __future__ import annotations

import json
from collections import defaultdict
from typing import TYPE_CHECKING

from pyritemq.conformance import steps
from pyritemq.conformance.catalogue import WIRE, case, family
from pyritemq.conformance.trial import bodies
from pyritemq.conformance.wire import Wire, java_json
from pyritemq.protocol.codes import RequestCode

if TYPE_CHECKING:
    from pyritemq.conformance.trial import Trial

family("ORDER", "Ordered messages")
SOURCE = "client: MessageListenerOrderly"
LOCKS = "protocol: LOCK_BATCH_MQ"


@case(
    "ORDER-001",
    "A queue is received in its order",
    source=SOURCE,
    features="order selector",
    core=True,
)
def one_queue(t: Trial) -> None:
    """Thirty messages of one queue reach an orderly listener in the order of their sends."""
    topic = t.topic(queues=1)
    consumer = t.consumer(topic, mode="orderly")
    steps.fill(t, topic, 30)
    t.equal("order", bodies(consumer.received(30)), steps.numbers(30))


@case("ORDER-002", "A key keeps its order", source=SOURCE, features="order selector", core=True)
def by_key(t: Trial) -> None:
    """Messages of three keys, sent mixed, arrive in order key by key."""
    topic, producer = t.topic(queues=4), t.producer()
    consumer = t.consumer(topic, mode="orderly")
    for number in range(24):
        key = f"k{number % 3}"
        producer.send(topic, str(number), keys=key, how={"hashKey": key})
    seen: dict[str, list[int]] = defaultdict(list)
    for one in consumer.received(24):
        seen[one["keys"]].append(int(one["body"]))
    t.equal("order", dict(seen), {f"k{k}": list(range(k, 24, 3)) for k in range(3)})


@case("ORDER-003", "A failure holds up its queue", source=SOURCE, features="order selector retry")
def failure(t: Trial) -> None:
    """A message that fails twice is tried three times before the next one is seen."""
    topic, producer = t.topic(queues=1), t.producer()
    consumer = t.consumer(topic, mode="orderly")
    producer.send(topic, "first", properties={"fail": "2", "suspendMs": "100"})
    producer.send(topic, "second")
    t.equal("seen", bodies(consumer.received(4)), ["first", "first", "first", "second"])


@case("ORDER-004", "A queue has one holder", source=LOCKS, run_with=WIRE, core=True)
def one_holder(t: Trial) -> None:
    """LOCK_BATCH_MQ gives a queue to the first client and not to the second; after UNLOCK_BATCH_MQ
    the second has it."""
    topic, group, wire = t.topic(queues=1), t.group(), t.wire()
    t.equal("first", _lock(wire, group, "one", topic, t), 1)
    t.equal("second", _lock(wire, group, "two", topic, t), 0)
    t.equal("first again", _lock(wire, group, "one", topic, t), 1)
    wire.call(RequestCode.UNLOCK_BATCH_MQ, body=_lock_body(group, "one", topic, t))
    t.eventually("second after all", lambda: _lock(wire, group, "two", topic, t), 1)


@case("ORDER-005", "Locks are a group's own", source=LOCKS, run_with=WIRE)
def by_group(t: Trial) -> None:
    """Another group locks the same queue."""
    topic, wire = t.topic(queues=1), t.wire()
    t.equal("one group", _lock(wire, t.group(), "one", topic, t), 1)
    t.equal("another", _lock(wire, t.group(), "two", topic, t), 1)


def _lock_body(group: str, client: str, topic: str, t: Trial) -> bytes:
    queue = {"topic": topic, "brokerName": t.servers.broker.name, "queueId": 0}
    return json.dumps({"consumerGroup": group, "clientId": client, "mqSet": [queue]}).encode()


def _lock(wire: Wire, group: str, client: str, topic: str, t: Trial) -> int:
    reply = wire.call(RequestCode.LOCK_BATCH_MQ, body=_lock_body(group, client, topic, t))
    return len(java_json(reply.body)["lockOKMQSet"])


@case("ORDER-006", "Order outlives a change of holder", source=SOURCE, features="order selector")
def change_of_holder(t: Trial) -> None:
    """When the holder shuts down in the middle, the next one goes on where it stopped; each message
    is seen once, in order."""
    topic, group = t.topic(queues=1), t.group()
    first = t.consumer(topic, group=group, mode="orderly")
    steps.fill(t, topic, 10)
    t.equal("first", bodies(first.received(10)), steps.numbers(10))
    first.shutdown()
    second = t.consumer(topic, group=group, mode="orderly")
    steps.fill(t, topic, 10, first=10)
    t.equal("second", bodies(second.received(10)), steps.numbers(10, first=10))


@case(
    "ORDER-007", "Two orderly consumers share the queues", source=SOURCE, features="order selector"
)
def two_consumers(t: Trial) -> None:
    """Of two consumers each holds half of the queues, and every message is seen once, each queue in
    order."""
    topic, group, producer = t.topic(queues=4), t.group(), t.producer()
    both = [t.consumer(topic, group=group, mode="orderly") for _ in range(2)]
    t.eventually("shares", lambda: [len(one.queues()) for one in both], [2, 2])
    producer.send_many(steps.numbered(topic, 40))
    t.eventually("together", lambda: sum(len(one.received(0)) for one in both), 40, within=60)
    for consumer in both:
        seen: dict[int, list[int]] = defaultdict(list)
        for one in consumer.received(0):
            seen[one["queueId"]].append(one["queueOffset"])
        for offsets in seen.values():
            t.equal("offsets of a queue", offsets, list(range(10)))


@case(
    "ORDER-008",
    "An orderly failure ends in the dead letters",
    source="client: maxReconsumeTimes, orderly",
    features="order selector retry",
)
def dead_letter(t: Trial) -> None:
    """With maxReconsumeTimes=1 a message that always fails leaves the queue, and the next one is
    seen."""
    topic, producer, group = t.topic(queues=1), t.producer(), t.group()
    options = {"maxReconsumeTimes": 1}
    consumer = t.consumer(topic, group=group, mode="orderly", options=options)
    producer.send(topic, "bad", properties={"fail": "99", "suspendMs": "100"})
    producer.send(topic, "good")
    t.eventually("the next", lambda: "good" in bodies(consumer.received(0)), True)
