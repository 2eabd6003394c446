"""Limits and refusals: what a broker must not take, and with which code it says so."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyritemq.conformance import steps
from pyritemq.conformance import wire as wires
from pyritemq.conformance.catalogue import WIRE, case, family
from pyritemq.conformance.setup import with_properties
from pyritemq.conformance.trial import bodies
from pyritemq.protocol.codes import RequestCode, ResponseCode

if TYPE_CHECKING:
    from pyritemq.conformance.trial import Trial

family("LIMIT", "Limits and refusals")
CHECKS = "broker: AbstractSendMessageProcessor.msgCheck"
STRICT = with_properties(autoCreateTopicEnable="false", autoCreateSubscriptionGroup="false")


@case("LIMIT-001", "The client refuses what is above its limit", source="client: maxMessageSize")
def above_the_clients_limit(t: Trial) -> None:
    """Five MiB are MESSAGE_ILLEGAL with the client's default of four."""
    topic, producer = t.topic(), t.producer()
    t.refused("send", lambda: producer.send(topic, bodySize=5 << 20), code=13)


@case(
    "LIMIT-002",
    "The broker refuses what is above its limit",
    source="broker: maxMessageSize",
    run_with=WIRE,
    core=True,
)
def above_the_brokers_limit(t: Trial) -> None:
    """A body of five MiB is MESSAGE_ILLEGAL, the connection stays, nothing is stored."""
    topic, wire = t.topic(queues=1), t.wire()
    reply = wires.send(wire, topic, "x" * (5 << 20))
    t.equal("code", reply.code, ResponseCode.MESSAGE_ILLEGAL)
    t.equal("stored", steps.max_offset(wire, topic), 0)


@case("LIMIT-003", "Exactly four MiB are taken", source="broker: maxMessageSize")
def four_mebibytes(t: Trial) -> None:
    """The largest body that a client sends by default is stored and comes back."""
    topic = t.topic()
    options = {"compressMsgBodyOverHowmuch": 1 << 30}
    sent = t.producer(options=options).send(topic, bodySize=4 << 20)
    t.equal("status", sent["status"], "SEND_OK")
    t.equal("size", t.consumer(topic).received(1)[0]["bodySize"], 4 << 20)


@case(
    "LIMIT-004", "A topic's name has its characters", source="broker: TopicValidator", run_with=WIRE
)
def illegal_name(t: Trial) -> None:
    """Creating a topic with a slash or a space in its name is refused."""
    fields = {"defaultTopic": "TBW102", "readQueueNums": 1, "writeQueueNums": 1, "perm": 6}
    fields |= {"topicFilterType": "SINGLE_TAG", "topicSysFlag": 0, "order": "false"}
    for name in ("a/b", "a b", "../up", "x" * 128):
        reply = t.wire().call(RequestCode.UPDATE_AND_CREATE_TOPIC, {**fields, "topic": name})
        t.true(f"{name[:10]!r} is refused", reply.code != 0, reply.remark)


@case("LIMIT-005", "The client checks a topic's name", source="client: Validators.checkTopic")
def illegal_name_in_client(t: Trial) -> None:
    """A send to a name with a space raises MQClientException."""
    t.refused("send", lambda: t.producer().send("a b", "x"), kind="MQClientException")


@case(
    "LIMIT-006",
    "System topics take no sends",
    source="broker: TopicValidator.isNotAllowedSendTopic",
    run_with=WIRE,
)
def system_topic(t: Trial) -> None:
    """A send to SCHEDULE_TOPIC_XXXX is refused."""
    reply = wires.send(t.wire(), "SCHEDULE_TOPIC_XXXX", "x")
    t.true("refused", reply.code != 0, reply)


@case("LIMIT-007", "A queue must be there", source=CHECKS, run_with=WIRE)
def queue_out_of_range(t: Trial) -> None:
    """A send to queue 99 of two is INVALID_PARAMETER, and the remark has the number."""
    reply = wires.send(t.wire(), t.topic(queues=2), "x", 99)
    t.equal("code", reply.code, ResponseCode.INVALID_PARAMETER)
    t.true("the remark", "99" in (reply.remark or ""), reply.remark)


@case(
    "LIMIT-008",
    "Without autoCreateTopicEnable a topic must be there",
    source=CHECKS,
    run_with=WIRE,
    setup=STRICT,
)
def topic_must_exist(t: Trial) -> None:
    """A send to a topic that nobody made is TOPIC_NOT_EXIST."""
    reply = wires.send(t.wire(), t.name("none"), "x")
    t.equal("code", reply.code, ResponseCode.TOPIC_NOT_EXIST)


@case(
    "LIMIT-009",
    "The client reports the missing topic",
    source="client: DefaultMQProducerImpl",
    setup=STRICT,
)
def topic_must_exist_for_the_client(t: Trial) -> None:
    """The producer raises MQClientException with TOPIC_NOT_EXIST's number or without a route."""
    t.refused("send", lambda: t.producer().send(t.name("none"), "x"), kind="MQClientException")


@case(
    "LIMIT-010",
    "Without autoCreateSubscriptionGroup a group must be there",
    source="broker: PullMessageProcessor",
    run_with=WIRE,
    setup=STRICT,
)
def group_must_exist(t: Trial) -> None:
    """A pull of an unknown group is SUBSCRIPTION_GROUP_NOT_EXIST."""
    reply = wires.pull(t.wire(), t.topic(), 0, 0, group=t.name("none"))
    t.equal("code", reply.code, ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST)


@case("LIMIT-011", "Who may write a topic is for clients to see", source=CHECKS, run_with=WIRE)
def read_only(t: Trial) -> None:
    """A topic's permission 4 is in its route, and clients do not send to it (ROUTE-009); a frame
    that is sent all the same is stored: the broker looks at its own permission only."""
    topic, wire = t.topic(queues=1, perm=4), t.wire()
    t.equal("send", wires.send(wire, topic, "x").code, 0)
    t.eventually("stored", lambda: steps.max_offset(wire, topic), 1)


@case(
    "LIMIT-012", "A topic may be write-only", source="broker: PullMessageProcessor", run_with=WIRE
)
def write_only(t: Trial) -> None:
    """A pull of a topic with permission 2 is NO_PERMISSION; a send is stored."""
    topic, wire = t.topic(perm=2), t.wire()
    t.equal("send", wires.send(wire, topic, "x").code, 0)
    pulled = wires.pull(wire, topic, 0, 0, group=t.group())
    t.equal("pull", pulled.code, ResponseCode.NO_PERMISSION)


@case(
    "LIMIT-013",
    "A group may be shut",
    source="broker: SubscriptionGroupConfig.consumeEnable",
    run_with=WIRE,
)
def group_shut(t: Trial) -> None:
    """A pull of a group with consumeEnable=false is NO_PERMISSION."""
    group = t.group(consumeEnable=False)
    pulled = wires.pull(t.wire(), t.topic(), 0, 0, group=group)
    t.equal("pull", pulled.code, ResponseCode.NO_PERMISSION)


@case(
    "LIMIT-014",
    "Properties have a length",
    source="broker: properties of at most 32767 bytes",
    run_with=WIRE,
)
def long_properties(t: Trial) -> None:
    """Properties of 40,000 bytes are MESSAGE_ILLEGAL."""
    properties = "k\x01" + "v" * 40_000 + "\x02"
    reply = wires.send(t.wire(), t.topic(), "x", properties=properties)
    t.equal("code", reply.code, ResponseCode.MESSAGE_ILLEGAL)


@case("LIMIT-015", "Nothing is lost beside a refusal", source=CHECKS)
def others_go_on(t: Trial) -> None:
    """A producer whose message was refused sends the next one."""
    topic, producer = t.topic(), t.producer()
    t.refused("send", lambda: producer.send(topic, bodySize=5 << 20), code=13)
    producer.send(topic, "small")
    t.equal("received", bodies(t.consumer(topic).received(1)), ["small"])
