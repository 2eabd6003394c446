"""Push consumers: clustering, broadcasting, and rebalance as consumers come and go."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyritemq.conformance import steps
from pyritemq.conformance import wire as wires
from pyritemq.conformance.catalogue import WIRE, case, family
from pyritemq.conformance.trial import bodies
from pyritemq.conformance.wire import java_json
from pyritemq.protocol.codes import RequestCode

if TYPE_CHECKING:
    from pyritemq.conformance.trial import Trial

family("PUSH", "Push consumers and rebalance")
SOURCE = "client: DefaultMQPushConsumer"
REBALANCE = "client: RebalanceImpl"
BROADCAST = {"messageModel": "BROADCASTING"}


def _sorted(got: list[str]) -> list[str]:
    return sorted(got, key=int)


@case("PUSH-001", "A group shares the messages", source=SOURCE, core=True)
def clustering(t: Trial) -> None:
    """Two consumers of one group receive each of forty messages once, and both receive some."""
    topic, group = t.topic(queues=4), t.group()
    one, two = t.consumer(topic, group=group), t.consumer(topic, group=group)
    t.eventually("queues of each", lambda: (len(one.queues()), len(two.queues())), (2, 2))
    t.producer().send_many(steps.numbered(topic, 40))
    t.eventually("together", lambda: len(one.received(0)) + len(two.received(0)), 40)
    both = bodies(one.received(0)), bodies(two.received(0))
    t.equal("each once", _sorted(both[0] + both[1]), steps.numbers(40))
    t.equal("shares", (len(both[0]), len(both[1])), (20, 20))


@case(
    "PUSH-002",
    "Broadcasting reaches every consumer",
    source=SOURCE,
    features="broadcast",
    core=True,
)
def broadcasting(t: Trial) -> None:
    """Two broadcasting consumers of one group receive all ten messages each."""
    topic, group = t.topic(queues=4), t.group()
    both = [t.consumer(topic, group=group, options=BROADCAST) for _ in range(2)]
    t.producer().send_many(steps.numbered(topic, 10))
    for consumer in both:
        t.equal("received", _sorted(bodies(consumer.received(10))), steps.numbers(10))


@case("PUSH-003", "Who joins gets a share of the queues", source=REBALANCE)
def joining(t: Trial) -> None:
    """A consumer alone holds all four queues; when two more join, nobody holds more than two and
    every queue has one holder."""
    topic, group = t.topic(queues=4), t.group()
    first = t.consumer(topic, group=group)
    t.eventually("alone", lambda: len(first.queues()), 4)
    others = [t.consumer(topic, group=group) for _ in range(2)]

    def shares() -> list[int]:
        return sorted(len(one.queues()) for one in (first, *others))

    t.eventually("shares", shares, [1, 1, 2])


@case("PUSH-004", "Who leaves gives its queues back", source=REBALANCE)
def leaving(t: Trial) -> None:
    """After one of two consumers shut down, the other holds all queues and receives everything."""
    topic, group = t.topic(queues=4), t.group()
    one, two = t.consumer(topic, group=group), t.consumer(topic, group=group)
    t.eventually("shares", lambda: (len(one.queues()), len(two.queues())), (2, 2))
    two.shutdown()
    t.eventually("queues of the one that stayed", lambda: len(one.queues()), 4)
    t.producer().send_many(steps.numbered(topic, 8))
    t.equal("received", _sorted(bodies(one.received(8))), steps.numbers(8))


@case("PUSH-005", "Who dies gives its queues back", source="broker: closed channels", alone=False)
def dying(t: Trial) -> None:
    """A consumer whose process is killed leaves its queues to the other, without waiting for the
    two minutes of silence after which a broker forgets a client."""
    topic, group = t.topic(queues=4), t.group()
    stays = t.consumer(topic, group=group)
    doomed = t.another_driver()
    dies = t.consumer(topic, group=group, via=doomed)
    t.eventually("shares", lambda: (len(stays.queues()), len(dies.queues())), (2, 2))
    doomed.kill()
    t.eventually("queues of the one that stayed", lambda: len(stays.queues()), 4)


@case("PUSH-006", "A listener may take many at once", source="client: consumeMessageBatchMaxSize")
def batches(t: Trial) -> None:
    """With consumeMessageBatchMaxSize=8 a backlog of sixteen comes in batches of at most 8, and not
    one by one."""
    topic = t.topic(queues=1)
    steps.fill(t, topic, 16)
    options = {"consumeMessageBatchMaxSize": 8}
    got = t.consumer(topic, options=options).received(16)
    t.equal("received", _sorted(bodies(got)), steps.numbers(16))
    t.equal("largest batch", max(one["batchSize"] for one in got), 8)


@case("PUSH-007", "A consumer can be suspended", source="client: suspend, resume")
def suspended(t: Trial) -> None:
    """While suspended it receives nothing; after resume it receives what came meanwhile."""
    topic = t.topic(queues=1)
    consumer, producer = t.consumer(topic), t.producer()
    producer.send(topic, "0")
    t.equal("before", bodies(consumer.received(1)), ["0"])
    consumer.call("suspend")
    producer.send(topic, "1")
    came = len(consumer.quiet(1))  # by a pull that waited at the broker; the next is not made
    producer.send(topic, "2")
    t.equal("suspended", len(consumer.quiet(came)), came)
    consumer.call("resume")
    t.equal("after", _sorted(bodies(consumer.received(3))), steps.numbers(3))


@case("PUSH-008", "One consumer, two topics", source=SOURCE)
def two_topics(t: Trial) -> None:
    """A consumer that subscribes to two topics receives both."""
    first, second = t.topic(), t.topic()
    both = [{"topic": topic, "expression": "*"} for topic in (first, second)]
    consumer, producer = t.consumer(topics=both), t.producer()
    producer.send(first, "1")
    producer.send(second, "2")
    got = {(one["topic"], one["body"]) for one in consumer.received(2)}
    t.equal("received", got, {(first, "1"), (second, "2")})


@case(
    "PUSH-009",
    "A group continues where it stopped",
    source="client: RemoteBrokerOffsetStore",
    core=True,
)
def continues(t: Trial) -> None:
    """A consumer that shut down left its offsets: the next one of the group receives only what came
    later."""
    topic, group, producer = t.topic(queues=2), t.group(), t.producer()
    producer.send_many(steps.numbered(topic, 4))
    first = t.consumer(topic, group=group)
    t.equal("first", len(first.received(4)), 4)
    steps.settled(t, first, topic, 2, 4)
    first.shutdown()
    producer.send_many(steps.numbered(topic, 4, first=4))
    second = t.consumer(topic, group=group)
    t.equal("second", _sorted(bodies(second.received(4))), steps.numbers(4, first=4))
    t.equal("nothing twice", len(second.quiet(4)), 4)


@case("PUSH-010", "Groups do not disturb each other", source=SOURCE)
def two_groups(t: Trial) -> None:
    """Each of two groups receives everything."""
    topic = t.topic()
    both = [t.consumer(topic), t.consumer(topic)]
    t.producer().send_many(steps.numbered(topic, 6))
    for consumer in both:
        t.equal("received", _sorted(bodies(consumer.received(6))), steps.numbers(6))


@case(
    "PUSH-011", "The broker lists a group's members", source="protocol: GET_CONSUMER_LIST_BY_GROUP"
)
def members(t: Trial) -> None:
    """GET_CONSUMER_LIST_BY_GROUP has both client ids while two consumers run, then one."""
    topic, group, wire = t.topic(), t.group(), t.wire()
    t.consumer(topic, group=group)
    two = t.consumer(topic, group=group)

    def count() -> int:
        reply = wire.call(RequestCode.GET_CONSUMER_LIST_BY_GROUP, {"consumerGroup": group})
        return len(java_json(reply.body)["consumerIdList"]) if reply.code == 0 else 0

    t.eventually("members", count, 2)
    two.shutdown()
    t.eventually("members", count, 1)


@case(
    "PUSH-012",
    "Members are told when the group changes",
    source="protocol: NOTIFY_CONSUMER_IDS_CHANGED",
    run_with=WIRE,
)
def notified(t: Trial) -> None:
    """When a second client joins, the first is sent NOTIFY_CONSUMER_IDS_CHANGED with the group."""
    topic, group, first, second = t.topic(), t.group(), t.wire(), t.wire()
    first.call(RequestCode.HEART_BEAT, body=wires.heartbeat(t.name("a"), group, topic))
    first.pushed.clear()
    second.call(RequestCode.HEART_BEAT, body=wires.heartbeat(t.name("b"), group, topic))
    told = first.push(RequestCode.NOTIFY_CONSUMER_IDS_CHANGED)
    t.equal("group", told.ext_fields.get("consumerGroup"), group)


@case("PUSH-013", "A consumer learns of new queues", source=REBALANCE)
def more_queues(t: Trial) -> None:
    """When the topic gets more queues, messages in them are received by a consumer that starts
    then."""
    topic, group = t.topic(queues=1), t.group()
    t.create_topic(t.servers.broker.address, topic, 3)
    consumer = t.consumer(topic, group=group)
    t.eventually("queues", lambda: len(consumer.queues()), 3)


@case(
    "PUSH-014",
    "A broadcasting consumer keeps its own offsets",
    source="client: LocalFileOffsetStore",
    features="broadcast",
)
def broadcast_offsets(t: Trial) -> None:
    """The broker stores no offset for a broadcasting group."""
    topic, group, wire = t.topic(queues=1), t.group(), t.wire()
    consumer = t.consumer(topic, group=group, options=BROADCAST)
    t.producer().send(topic, "x")
    consumer.received(1)
    consumer.shutdown()
    t.equal("offset at the broker", steps.stored_offset(wire, group, topic), None)
