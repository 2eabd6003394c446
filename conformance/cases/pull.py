"""Pull and long polling."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from pyritemq.conformance import steps
from pyritemq.conformance import wire as wires
from pyritemq.conformance.actors import queue
from pyritemq.conformance.catalogue import WIRE, case, family
from pyritemq.conformance.trial import bodies
from pyritemq.protocol.codes import RequestCode, ResponseCode

if TYPE_CHECKING:
    from pyritemq.conformance.actors import Json
    from pyritemq.conformance.trial import Trial

family("PULL", "Pull and long polling")
SOURCE = "client: DefaultMQPullConsumer.pull"
PROCESSOR = "broker: PullMessageProcessor"


def _first(t: Trial, topic: str) -> Json:
    return queue(topic, 0, t.servers.broker.name)


@case(
    "PULL-001",
    "A pull gives messages and the next offset",
    source=SOURCE,
    features="pull selector",
    core=True,
)
def found(t: Trial) -> None:
    """FOUND with the bodies in order; nextBeginOffset is behind the last, and the queue's bounds
    are told."""
    topic = t.topic(queues=1)
    steps.fill(t, topic, 5)
    result = t.puller().pull(_first(t, topic), 0)
    t.equal("status", result["status"], "FOUND")
    t.equal("bodies", bodies(result["messages"]), steps.numbers(5))
    bounds = (result["nextBeginOffset"], result["minOffset"], result["maxOffset"])
    t.equal("next, min, max", bounds, (5, 0, 5))


@case("PULL-002", "At the end there is nothing new", source=SOURCE, features="pull selector")
def nothing_new(t: Trial) -> None:
    """A pull at the queue's end is NO_NEW_MSG and stays at its offset."""
    topic = t.topic(queues=1)
    steps.fill(t, topic, 2)
    result = t.puller().pull(_first(t, topic), 2)
    t.equal("status", result["status"], "NO_NEW_MSG")
    t.equal("next", result["nextBeginOffset"], 2)


@case("PULL-003", "Beyond the end the offset is corrected", source=SOURCE, features="pull selector")
def beyond_the_end(t: Trial) -> None:
    """A pull at 100 of a queue that ends at 2 is OFFSET_ILLEGAL with the end as next offset."""
    topic = t.topic(queues=1)
    steps.fill(t, topic, 2)
    result = t.puller().pull(_first(t, topic), 100)
    t.equal("status", result["status"], "OFFSET_ILLEGAL")
    t.equal("next", result["nextBeginOffset"], 2)


@case("PULL-004", "A pull that matches nothing moves on", source=SOURCE, features="pull selector")
def nothing_matches(t: Trial) -> None:
    """With a tag that no message has: NO_MATCHED_MSG, and the next offset is behind what was
    looked at."""
    topic = t.topic(queues=1)
    steps.fill(t, topic, 3)
    result = t.puller().pull(_first(t, topic), 0, expression="Other")
    t.equal("status", result["status"], "NO_MATCHED_MSG")
    t.equal("next", result["nextBeginOffset"], 3)


@case("PULL-005", "A pull has a bound of its own", source=SOURCE, features="pull selector")
def bounded(t: Trial) -> None:
    """Of ten messages a pull for four gives four, and the next offset is 4."""
    topic = t.topic(queues=1)
    steps.fill(t, topic, 10)
    result = t.puller().pull(_first(t, topic), 0, count=4)
    t.equal("bodies", bodies(result["messages"]), steps.numbers(4))
    t.equal("next", result["nextBeginOffset"], 4)


@case(
    "PULL-006",
    "A waiting pull is answered by an arrival",
    source="broker: long polling",
    run_with=WIRE,
    core=True,
)
def arrival(t: Trial) -> None:
    """A pull that may wait 20 s is silent until a message comes, then it has that message."""
    topic, wire, group = t.topic(queues=1), t.wire(), t.group()
    fields = wires.pull_fields(topic, 0, 0, group=group, wait_ms=20_000)
    asked = wire.ask(RequestCode.PULL_MESSAGE, fields)
    t.true("no answer yet", not wire.has_reply(asked, within=1.0))
    wires.send(t.wire(), topic, "come")
    got = wires.pulled(wire.reply(asked))
    t.equal("body", [bytes(one.body) for one in got], [b"come"])


@case("PULL-007", "A waiting pull ends with its time", source="broker: long polling", run_with=WIRE)
def time_over(t: Trial) -> None:
    """A pull that may wait 1 s is PULL_NOT_FOUND within 10 s, the broker's own pace included."""
    topic, wire = t.topic(queues=1), t.wire()
    began = time.monotonic()
    reply = wires.pull(wire, topic, 0, 0, group=t.group(), wait_ms=1000)
    t.equal("code", reply.code, ResponseCode.PULL_NOT_FOUND)
    took = time.monotonic() - began
    t.true("not at once, not too late", 0.8 < took < 10, took)


@case(
    "PULL-008",
    "Offsets of a queue can be asked for",
    source="client: MQAdmin",
    features="pull selector",
)
def offsets(t: Trial) -> None:
    """min is 0, max is the count, a time before all gives 0, and the earliest store time is that of
    the first message."""
    topic = t.topic(queues=1)
    steps.fill(t, topic, 4)
    puller, of = t.puller(), _first(t, topic)
    t.equal("min", puller.offset("min", of), 0)
    t.equal("max", puller.offset("max", of), 4)
    t.equal("search", puller.offset("search", of, timestamp=1000), 0)
    first = puller.pull(of, 0)["messages"][0]["storeTimestamp"]
    t.equal("earliest", puller.offset("earliest", of), first)


@case("PULL-009", "A pull of an unknown topic", source=PROCESSOR, run_with=WIRE)
def unknown_topic(t: Trial) -> None:
    """TOPIC_NOT_EXIST."""
    reply = wires.pull(t.wire(), t.name("none"), 0, 0, group=t.group())
    t.equal("code", reply.code, ResponseCode.TOPIC_NOT_EXIST)


@case("PULL-010", "A pull of a queue that is not there", source=PROCESSOR, run_with=WIRE)
def unknown_queue(t: Trial) -> None:
    """INVALID_PARAMETER, with the queue's number in the remark."""
    reply = wires.pull(t.wire(), t.topic(queues=2), 77, 0, group=t.group())
    t.equal("code", reply.code, ResponseCode.INVALID_PARAMETER)
    t.true("the remark", "77" in (reply.remark or ""), reply.remark)


@case(
    "PULL-011",
    "A pull commits an offset on its way",
    source="protocol: sysFlag bit 0",
    run_with=WIRE,
)
def commits(t: Trial) -> None:
    """A pull with the commit bit and commitOffset 2 stores 2 for the group."""
    topic, wire, group = t.topic(queues=1), t.wire(), t.group()
    steps.fill_by_wire(wire, topic, 3)
    wires.pull(wire, topic, 0, 2, group=group, commitOffset=2, sysFlag=5)
    t.eventually("offset", lambda: steps.stored_offset(wire, group, topic), 2)


@case(
    "PULL-012",
    "A pull's reply has its four fields",
    source="protocol: PullMessageResponseHeader",
    run_with=WIRE,
)
def reply_fields(t: Trial) -> None:
    """suggestWhichBrokerId 0, nextBeginOffset, minOffset and maxOffset."""
    topic, wire = t.topic(queues=1), t.wire()
    steps.fill_by_wire(wire, topic, 3)
    got = wires.pull(wire, topic, 0, 0, group=t.group()).ext_fields
    names = ("suggestWhichBrokerId", "nextBeginOffset", "minOffset", "maxOffset")
    t.equal("fields", [got.get(name) for name in names], ["0", "3", "0", "3"])


@case(
    "PULL-013", "A pull without a subscription needs a heartbeat", source=PROCESSOR, run_with=WIRE
)
def without_subscription(t: Trial) -> None:
    """Without the subscription bit and without a heartbeat before: SUBSCRIPTION_NOT_EXIST."""
    reply = wires.pull(t.wire(), t.topic(), 0, 0, group=t.group(), sysFlag=0)
    t.equal("code", reply.code, ResponseCode.SUBSCRIPTION_NOT_EXIST)


@case(
    "PULL-014",
    "After a heartbeat the subscription is known",
    source="protocol: HEART_BEAT",
    run_with=WIRE,
)
def with_heartbeat(t: Trial) -> None:
    """After a heartbeat with the subscription the same pull is answered with messages."""
    topic, wire, group = t.topic(queues=1), t.wire(), t.group()
    wires.send(wire, topic, "x")
    body = wires.heartbeat(t.name("client"), group, topic)
    t.equal("heartbeat", wire.call(RequestCode.HEART_BEAT, body=body).code, 0)
    reply = wires.pull(wire, topic, 0, 0, group=group, sysFlag=0)
    t.equal("messages", [bytes(one.body) for one in wires.pulled(reply)], [b"x"])


@case(
    "PULL-015",
    "The light pull request is answered",
    source="protocol: LITE_PULL_MESSAGE",
    run_with=WIRE,
)
def lite_pull(t: Trial) -> None:
    """LITE_PULL_MESSAGE gives what PULL_MESSAGE gives, to a consumer that is known."""
    topic, wire, group = t.topic(queues=1), t.wire(), t.group()
    wires.send(wire, topic, "x")
    wire.call(RequestCode.HEART_BEAT, body=wires.heartbeat(t.name("client"), group, topic))
    fields = wires.pull_fields(topic, 0, 0, group=group, sysFlag=16)
    reply = wire.call(RequestCode.LITE_PULL_MESSAGE, fields)
    t.equal("messages", [bytes(one.body) for one in wires.pulled(reply)], [b"x"])


@case(
    "PULL-016",
    "The client waits and is woken",
    source="client: pullBlockIfNotFound",
    features="pull selector",
)
def client_waits(t: Trial) -> None:
    """pullBlockIfNotFound at the end of a queue returns with the message that then comes."""
    topic, puller = t.topic(queues=1), t.puller()
    results: list[Json] = []
    thread = steps.in_background(
        lambda: results.append(puller.pull(_first(t, topic), 0, block=True))
    )
    steps.fill(t, topic, 1)
    thread.join(30)
    t.equal("statuses", [one["status"] for one in results], ["FOUND"])
