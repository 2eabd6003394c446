"""POP over remoting: messages are hidden instead of queues being owned."""

from __future__ import annotations

import base64
import json
import time
from typing import TYPE_CHECKING, Any

from pyritemq.conformance import popping, steps
from pyritemq.conformance import wire as wires
from pyritemq.conformance.catalogue import WIRE, case, family
from pyritemq.conformance.popping import ack, pop, pop_fields, pop_reply
from pyritemq.conformance.setup import relying_on
from pyritemq.conformance.trial import bodies
from pyritemq.protocol.codes import RequestCode, ResponseCode

if TYPE_CHECKING:
    from pyritemq.conformance.actors import Consumer
    from pyritemq.conformance.popping import Popped
    from pyritemq.conformance.trial import Trial
    from pyritemq.conformance.wire import Wire
    from pyritemq.protocol.command import Command

family("POP", "POP consumption")
PROCESSOR = "broker: PopMessageProcessor"
REVIVER = "broker: PopReviveService"
CLIENT_REBALANCE = "client: DefaultMQPushConsumer.setClientRebalance(false)"
REVIVED = 60.0
"""Check points go through the timers to the reviver: some seconds after the invisible time."""


def _until(
    t: Trial, wire: Wire, topic: str, group: str, count: int, **more: object
) -> list[Popped]:
    """Pop until so many messages were seen: a pop looks at queues in its own order, and a queue
    that another pop reads at the moment is left out."""
    found: list[Popped] = []

    def look() -> bool:
        found.extend(pop(wire, topic, group, **more))
        return len(found) >= count

    t.eventually(f"{count} popped", look, True, within=REVIVED)
    return found


def _bodies(messages: list[Popped]) -> list[str]:
    return [one.body for one in messages]


@case("POP-001", "A pop gives messages of every queue", source=PROCESSOR, run_with=WIRE, core=True)
def every_queue(t: Trial) -> None:
    """Without a queue's number, the messages of four queues are popped; another pop of the group
    finds nothing, and another group finds all of them."""
    topic, group, other, wire = t.topic(queues=4), t.group(), t.group(), t.wire()
    for number in range(4):
        wires.send(wire, topic, str(number), number)
    found = _until(t, wire, topic, group, 4)
    t.equal("popped", sorted(_bodies(found)), steps.numbers(4))
    t.equal("again", pop_reply(wire, topic, group).code, ResponseCode.POLLING_TIMEOUT)
    t.equal("others", sorted(_bodies(_until(t, wire, topic, other, 4))), steps.numbers(4))


@case(
    "POP-002",
    "What a pop's reply tells",
    source="protocol: PopMessageResponseHeader",
    run_with=WIRE,
)
def reply_fields(t: Trial) -> None:
    """popTime, invisibleTime, a reviveQid of eight, the first offset and all offsets of the queue,
    and how many messages are left."""
    topic, group, wire = t.topic(queues=1), t.group(), t.wire()
    steps.fill_by_wire(wire, topic, 3)
    reply = pop_reply(wire, topic, group, queueId=0, maxMsgNums=2)
    got = reply.ext_fields
    t.equal("code and remark", (reply.code, reply.remark), (0, "FOUND"))
    names = ("invisibleTime", "startOffsetInfo", "msgOffsetInfo", "restNum")
    wanted = [str(popping.INVISIBLE_MS), "0 0 0", "0 0 0,1", "1"]
    t.equal("fields", [got.get(name) for name in names], wanted)
    t.true("reviveQid", int(got["reviveQid"]) in range(8), got["reviveQid"])
    t.true("popTime", int(got["popTime"]) > 0, got["popTime"])


@case("POP-003", "A pop has a bound of its own", source=PROCESSOR, run_with=WIRE)
def bounded(t: Trial) -> None:
    """A pop for three of five gives three, the next one the other two."""
    topic, group, wire = t.topic(queues=1), t.group(), t.wire()
    steps.fill_by_wire(wire, topic, 5)
    t.equal("first", _bodies(pop(wire, topic, group, queueId=0, maxMsgNums=3)), steps.numbers(3))
    second = pop(wire, topic, group, queueId=0, maxMsgNums=3)
    t.equal("second", _bodies(second), steps.numbers(2, first=3))


@case("POP-004", "A pop moves the group's offset", source=PROCESSOR, run_with=WIRE)
def commits(t: Trial) -> None:
    """After a pop of three the offset of the group in that queue is 3, before any ack."""
    topic, group, wire = t.topic(queues=1), t.group(), t.wire()
    steps.fill_by_wire(wire, topic, 3)
    t.equal("popped", len(pop(wire, topic, group, queueId=0)), 3)
    t.eventually("offset", lambda: steps.stored_offset(wire, group, topic), 3)


@case(
    "POP-005", "What is not acked comes back, what is acked does not", source=REVIVER, run_with=WIRE
)
def comes_back(t: Trial) -> None:
    """Of two messages one is acked: the other is popped again after its invisible time, under its
    own topic, with a reconsume count of 1 and a handle that acks it in the retry topic."""
    topic, group, wire = t.topic(queues=1), t.group(), t.wire()
    steps.fill_by_wire(wire, topic, 2)
    first, _ = pop(wire, topic, group, queueId=0, invisibleTime=3000)
    t.equal("ack", ack(wire, first).code, 0)
    found = _until(t, wire, topic, group, 1)
    t.equal("back", _bodies(found), ["1"])
    (back,) = found
    t.equal("topic and count", (back.record.topic, back.record.reconsume_times), (topic, 1))
    t.equal("where it is acked", back.fields["topic"], f"%RETRY%{group}_{topic}")
    t.equal("ack of the second", ack(wire, back).code, 0)
    t.equal("nothing else", _bodies(pop(wire, topic, group)), [])


@case(
    "POP-006",
    "The invisible time can be shortened",
    source="protocol: CHANGE_MESSAGE_INVISIBLETIME",
    run_with=WIRE,
)
def shortened(t: Trial) -> None:
    """A message hidden for ten minutes comes back after its time was changed to two seconds."""
    topic, group, wire = t.topic(queues=1), t.group(), t.wire()
    steps.fill_by_wire(wire, topic, 1)
    (message,) = pop(wire, topic, group, queueId=0, invisibleTime=600_000)
    reply = popping.change_invisible(wire, message, 2000)
    t.equal("code and time", (reply.code, reply.ext_fields["invisibleTime"]), (0, "2000"))
    found = _until(t, wire, topic, group, 1)
    seen = [(one.body, one.record.reconsume_times) for one in found]
    t.equal("bodies and counts", seen, [("0", 1)])


@case(
    "POP-007",
    "The invisible time can be lengthened",
    source="protocol: CHANGE_MESSAGE_INVISIBLETIME",
    run_with=WIRE,
)
def lengthened(t: Trial) -> None:
    """Of two messages hidden for three seconds one has its time changed to ten minutes: the other
    comes back alone."""
    topic, group, wire = t.topic(queues=1), t.group(), t.wire()
    steps.fill_by_wire(wire, topic, 2)
    first, _ = pop(wire, topic, group, queueId=0, invisibleTime=3000)
    t.equal("code", popping.change_invisible(wire, first, 600_000).code, 0)
    t.equal("back", _bodies(_until(t, wire, topic, group, 1)), ["1"])
    t.equal("nothing else", _bodies(pop(wire, topic, group, pollTime=3000)), [])


@case("POP-008", "Acks in one request", source="protocol: BATCH_ACK_MESSAGE", run_with=WIRE)
def acked_together(t: Trial) -> None:
    """BATCH_ACK_MESSAGE with a bit for each of two of three messages: only the third comes back."""
    topic, group, wire = t.topic(queues=1), t.group(), t.wire()
    steps.fill_by_wire(wire, topic, 3)
    reply = pop_reply(wire, topic, group, queueId=0, invisibleTime=3000)
    t.equal("popped", len(popping.popped(wire, reply, topic, group)), 3)
    t.equal(
        "code",
        wire.call(
            RequestCode.BATCH_ACK_MESSAGE, body=_batch_ack(reply, topic, group, wire.broker)
        ).code,
        0,
    )
    t.equal("back", _bodies(_until(t, wire, topic, group, 1)), ["2"])
    t.equal("nothing else", _bodies(pop(wire, topic, group)), [])


def _batch_ack(reply: Command, topic: str, group: str, broker: str) -> bytes:
    """Acks the first and the second message of the reply: bits 0 and 1."""
    fields = reply.ext_fields
    one = {"c": group, "t": topic, "r": "0", "so": 0, "rq": int(fields["reviveQid"]), "q": 0}
    one |= {"pt": int(fields["popTime"]), "it": int(fields["invisibleTime"])}
    bits = base64.b64encode(bytes([0b11])).decode()
    return json.dumps({"brokerName": broker, "acks": [{**one, "b": bits}]}).encode()


@case(
    "POP-009",
    "A waiting pop is answered by an arrival",
    source="broker: PopLongPollingService",
    run_with=WIRE,
    core=True,
)
def arrival(t: Trial) -> None:
    """A pop that may wait 20 s is silent until a message comes, then it has that message."""
    topic, group, wire = t.topic(queues=2), t.group(), t.wire()
    asked = wire.ask(RequestCode.POP_MESSAGE, pop_fields(topic, group, **_waiting(20_000)))
    t.true("no answer yet", not wire.has_reply(asked, within=1.0))
    wires.send(t.wire(), topic, "come", 1)
    t.equal("body", _bodies(popping.popped(wire, wire.reply(asked), topic, group)), ["come"])


def _waiting(poll_ms: int) -> dict[str, object]:
    return {"pollTime": poll_ms, "bornTime": int(time.time() * 1000)}


@case(
    "POP-010",
    "A waiting pop ends with its time",
    source="broker: PopLongPollingService",
    run_with=WIRE,
)
def time_over(t: Trial) -> None:
    """A pop that may wait 1 s is POLLING_TIMEOUT within 10 s."""
    topic, group, wire = t.topic(queues=1), t.group(), t.wire()
    began = time.monotonic()
    reply = pop_reply(wire, topic, group, **_waiting(1000))
    t.equal("code", reply.code, ResponseCode.POLLING_TIMEOUT)
    took = time.monotonic() - began
    t.true("not at once, not too late", 0.5 < took < 10, took)


@case(
    "POP-011",
    "A pop filters",
    source=PROCESSOR,
    run_with=WIRE,
    setup=relying_on("enablePropertyFilter"),
)
def filtered(t: Trial) -> None:
    """exp B with expType TAG gives the two messages of tag B; SQL92 gives those whose property
    matches, to another group."""
    topic, group, other, wire = t.topic(queues=1), t.group(), t.group(), t.wire()
    for tag in "ABAB":
        wires.send(wire, topic, tag, properties=f"TAGS\x01{tag}\x02a\x01{tag}\x02")
    tagged = _until(t, wire, topic, group, 2, exp="B", expType="TAG")
    t.equal("by tag", _bodies(tagged), ["B", "B"])
    chosen = _until(t, wire, topic, other, 2, exp="a = 'A'", expType="SQL92")
    t.equal("by property", _bodies(chosen), ["A", "A"])


@case(
    "POP-012",
    "An ordered pop blocks its queue",
    source="broker: ConsumerOrderInfoManager",
    run_with=WIRE,
)
def in_order(t: Trial) -> None:
    """With order=true the next two messages are hidden until both of the first two are acked."""
    topic, group, wire = t.topic(queues=1), t.group(), t.wire()
    steps.fill_by_wire(wire, topic, 4)
    how = {"order": "true", "queueId": 0, "maxMsgNums": 2}
    first, second = pop(wire, topic, group, **how)
    t.equal("blocked", _bodies(pop(wire, topic, group, **how)), [])
    t.equal("ack", ack(wire, second).code, 0)
    t.equal("still blocked", _bodies(pop(wire, topic, group, **how)), [])
    t.equal("ack", ack(wire, first).code, 0)
    after = _until(t, wire, topic, group, 2, **how)
    t.equal("after", _bodies(after), steps.numbers(2, first=2))


@case(
    "POP-013",
    "What was not acked in order comes in order again",
    source="broker: ConsumerOrderInfoManager",
    run_with=WIRE,
)
def again_in_order(t: Trial) -> None:
    """After their invisible time the same two messages are popped again, before any later one."""
    topic, group, wire = t.topic(queues=1), t.group(), t.wire()
    steps.fill_by_wire(wire, topic, 3)
    how = {"order": "true", "queueId": 0, "maxMsgNums": 2, "invisibleTime": 2000}
    t.equal("first", _bodies(pop(wire, topic, group, **how)), steps.numbers(2))
    t.equal("again", _bodies(_until(t, wire, topic, group, 2, **how)), steps.numbers(2))


@case("POP-014", "Pops that are refused", source=PROCESSOR, run_with=WIRE)
def refused(t: Trial) -> None:
    """An unknown topic is TOPIC_NOT_EXIST; a queue that is not there, and more than 32 messages at
    once, are INVALID_PARAMETER; a filter that does not parse is SUBSCRIPTION_PARSE_FAILED."""
    topic, group, wire = t.topic(queues=1), t.group(), t.wire()

    def code(of: str, **fields: object) -> int:
        return pop_reply(wire, of, group, **fields).code

    t.equal("topic", code(t.name("none")), ResponseCode.TOPIC_NOT_EXIST)
    t.equal("queue", code(topic, queueId=77), ResponseCode.INVALID_PARAMETER)
    t.equal("count", code(topic, maxMsgNums=33), ResponseCode.INVALID_PARAMETER)
    bad = code(topic, exp="a ==== 1", expType="SQL92")
    t.equal("filter", bad, ResponseCode.SUBSCRIPTION_PARSE_FAILED)


@case("POP-015", "Acks that are refused", source="broker: AckMessageProcessor", run_with=WIRE)
def bad_acks(t: Trial) -> None:
    """An ack for an unknown topic is TOPIC_NOT_EXIST, for a queue that is not there
    MESSAGE_ILLEGAL, and for an offset beyond the queue NO_MESSAGE."""
    topic, group, wire = t.topic(queues=1), t.group(), t.wire()
    steps.fill_by_wire(wire, topic, 1)
    (message,) = pop(wire, topic, group, queueId=0)

    def code(**fields: object) -> int:
        return wire.call(RequestCode.ACK_MESSAGE, {**message.fields, **fields}).code

    t.equal("topic", code(topic=t.name("none")), ResponseCode.TOPIC_NOT_EXIST)
    t.equal("queue", code(queueId=77), ResponseCode.MESSAGE_ILLEGAL)
    t.equal("offset", code(offset=5), ResponseCode.NO_MESSAGE)
    t.equal("a good one", code(), 0)


@case(
    "POP-016",
    "A consumer may ask whether there is something",
    source="protocol: NOTIFICATION",
    run_with=WIRE,
)
def notification(t: Trial) -> None:
    """NOTIFICATION says hasMsg before the pop and not after it; one that waits is answered by an
    arrival."""
    topic, group, wire = t.topic(queues=1), t.group(), t.wire()
    steps.fill_by_wire(wire, topic, 1)
    t.eventually("before", lambda: popping.notified(wire, topic, group), True)
    t.equal("popped", len(_until(t, wire, topic, group, 1)), 1)
    t.eventually("after", lambda: popping.notified(wire, topic, group), False)
    waiting = t.wire()
    fields = {"consumerGroup": group, "topic": topic, "queueId": -1, **_waiting(20_000)}
    asked = waiting.ask(RequestCode.NOTIFICATION, fields)
    t.true("no answer yet", not waiting.has_reply(asked, within=1.0))
    wires.send(wire, topic, "more")
    t.equal("woken", waiting.reply(asked).ext_fields["hasMsg"], "true")


@case(
    "POP-017",
    "The broker assigns queues to pop",
    source="protocol: QUERY_ASSIGNMENT",
    run_with=WIRE,
)
def assigned(t: Trial) -> None:
    """Without a mode a member gets its share of queues to pull; after SET_MESSAGE_REQUEST_MODE POP
    it gets any queue, to pop."""
    topic, group, wire = t.topic(queues=4), t.group(), t.wire()
    client_id = t.name("client")
    wire.call(RequestCode.HEART_BEAT, body=wires.heartbeat(client_id, group, topic))
    pulls = [(number, "PULL") for number in range(4)]

    def look() -> object:
        return popping.assignments(wire, topic, group, client_id)

    t.eventually("to pull", look, pulls)
    t.equal("mode", popping.set_mode(wire, topic, group, "POP").code, 0)
    t.eventually("to pop", look, [(popping.ANY_QUEUE, "POP")])


def _popping(t: Trial, topic: str, group: str, **how: Any) -> Consumer:  # noqa: ANN401
    """A push consumer whose broker tells it to pop."""
    code = popping.set_mode(t.wire(), topic, group, "POP").code
    t.equal("request mode", code, 0)
    options = {"clientRebalance": False, **how.pop("options", {})}
    return t.consumer(topic, group=group, options=options, **how)


@case("POP-018", "A push consumer pops", source=CLIENT_REBALANCE, features="pop", core=True)
def client(t: Trial) -> None:
    """With clientRebalance=false and the mode POP it receives everything, each message once, and
    holds no queue of its own."""
    topic, group = t.topic(queues=4), t.group()
    consumer = _popping(t, topic, group)
    t.producer().send_many(steps.numbered(topic, 20))
    got = consumer.received(20)
    t.equal("received", sorted(bodies(got), key=int), steps.numbers(20))
    t.equal("nothing else", len(consumer.quiet(20)), 20)
    t.equal("queues held", consumer.queues(), [])


@case("POP-019", "More consumers than queues", source=CLIENT_REBALANCE, features="pop")
def many(t: Trial) -> None:
    """Two popping consumers share a topic of one queue: each receives some, and together they have
    every message once."""
    topic, group = t.topic(queues=1), t.group()
    options = {"popBatchNums": 1, "consumeThreadMin": 1, "consumeThreadMax": 1}
    both = [_popping(t, topic, group, options=options) for _ in range(2)]
    producer = t.producer()
    producer.send_many(steps.numbered(topic, 30, properties={"sleepMs": "100"}))

    def all_bodies() -> list[str]:
        found = [body for one in both for body in bodies(one.received(0))]
        return sorted(found, key=int)

    t.eventually("together", all_bodies, steps.numbers(30), within=REVIVED)
    shares = [len(one.received(0)) for one in both]
    t.true("each has some", all(shares), shares)


@case(
    "POP-020",
    "A popped message that fails comes again",
    source=CLIENT_REBALANCE,
    features="pop retry",
)
def fails(t: Trial) -> None:
    """A listener that fails once receives the message again, under its topic, with a reconsume
    count of 1."""
    topic, group = t.topic(queues=1), t.group()
    consumer = _popping(t, topic, group)
    t.producer().send(topic, "again", properties={"fail": "1"})
    got = consumer.received(2, within=REVIVED)
    seen = [(one["topic"], one["body"], one["reconsumeTimes"]) for one in got]
    t.equal("received", seen, [(topic, "again", 0), (topic, "again", 1)])


@case(
    "POP-021",
    "A popping consumer takes over from a dead one",
    source=CLIENT_REBALANCE,
    features="pop",
)
def takes_over(t: Trial) -> None:
    """A consumer's process is killed while it works on messages: after their invisible time another
    one of the group receives them."""
    topic, group = t.topic(queues=1), t.group()
    doomed = t.another_driver()
    options = {"popInvisibleTime": 10_000}
    first = _popping(t, topic, group, via=doomed, options=options)
    t.producer().send_many(steps.numbered(topic, 3, properties={"sleepMs": "60000"}))
    t.equal("under way", len(first.received(3)), 3)
    doomed.kill()
    second = _popping(t, topic, group, options=options)
    got = {one["body"] for one in second.received(3, within=REVIVED)}
    t.equal("received", sorted(got), steps.numbers(3))


@case("POP-022", "A group may be switched back to pulling", source=CLIENT_REBALANCE, features="pop")
def switched_back(t: Trial) -> None:
    """After SET_MESSAGE_REQUEST_MODE PULL the running consumer goes on with what comes then, and
    holds the queues."""
    topic, group = t.topic(queues=2), t.group()
    consumer = _popping(t, topic, group)
    producer = t.producer()
    producer.send_many(steps.numbered(topic, 4))
    t.equal("popped", len(consumer.received(4)), 4)
    t.equal("mode", popping.set_mode(t.wire(), topic, group, "PULL").code, 0)
    held = [(t.servers.broker.name, number) for number in range(2)]
    t.eventually("queues held", consumer.queues, held)
    producer.send_many(steps.numbered(topic, 4, first=4))

    def all_bodies() -> list[str]:
        return sorted(set(bodies(consumer.received(0))), key=int)

    t.eventually("received", all_bodies, steps.numbers(8))


@case("POP-023", "Pops and acks survive a kill", source=REVIVER, run_with=WIRE, alone=True)
def survives_a_kill(t: Trial) -> None:
    """The broker is killed between pop and invisible time: what was not acked is popped again."""
    topic, group, wire = t.topic(queues=1), t.group(), t.wire()
    steps.fill_by_wire(wire, topic, 4)
    found = pop(wire, topic, group, queueId=0, invisibleTime=5000)
    t.equal("popped", _bodies(found), steps.numbers(4))
    t.equal("ack", ack(wire, found[0]).code, 0)
    t.servers.broker.restart(kill=True)
    again, seen = t.wire(), set()

    def look() -> bool:
        seen.update(_bodies(pop(again, topic, group)))
        return seen >= {"1", "2", "3"}

    t.eventually("the others", look, True, within=90)
