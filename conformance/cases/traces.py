"""Message traces and namespaces: what clients add to names and topics by themselves."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from pyritemq.conformance import steps
from pyritemq.conformance import wire as wires
from pyritemq.conformance.catalogue import WIRE, case, family
from pyritemq.conformance.setup import relying_on
from pyritemq.conformance.trial import bodies

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyritemq.conformance.actors import Json
    from pyritemq.conformance.trial import Trial

family("TRACE", "Message traces")
family("NS", "Namespaces")
SOURCE = "client: AsyncTraceDispatcher"
NAMESPACE = "client: NamespaceUtil"
TRACE_TOPIC = "RMQ_SYS_TRACE_TOPIC"


def _traces(t: Trial, topic: str, key: str) -> list[str]:
    """The kinds of the traces in a topic that are about a message: Pub, SubBefore, SubAfter."""
    wire, group = t.wire(), t.group()
    kinds: list[str] = []
    for queue_id in range(max(1, steps.write_queues(t.namesrv_wire(), topic))):
        offset, end = 0, steps.max_offset(wire, topic, queue_id)
        while offset < end:
            found = wires.pulled(wires.pull(wire, topic, queue_id, offset, group=group))
            if not found:
                break
            offset = found[-1].queue_offset + 1
            kinds += _about(b"".join(bytes(one.body) for one in found).decode(), key)
    return sorted(set(kinds))


def _about(text: str, key: str) -> list[str]:
    lines = [line for line in text.split("\x02") if key in line]
    return [line.split("\x01", 1)[0] for line in lines]


@case("TRACE-001", "A send is traced", source=SOURCE, features="trace", core=True)
def send_is_traced(t: Trial) -> None:
    """A producer with trace on leaves a Pub line about its message in RMQ_SYS_TRACE_TOPIC."""
    topic = t.topic(queues=1)
    sent = t.producer(trace=True).send(topic, "x", keys="k")
    t.eventually("traces", lambda: _traces(t, TRACE_TOPIC, sent["msgId"]), ["Pub"])


@case("TRACE-002", "A consumption is traced", source=SOURCE, features="trace")
def consumption_is_traced(t: Trial) -> None:
    """A consumer with trace on leaves SubBefore and SubAfter lines about the message."""
    topic = t.topic(queues=1)
    consumer = t.consumer(topic, trace=True)
    sent = t.producer().send(topic, "x")
    consumer.received(1)
    wanted = ["SubAfter", "SubBefore"]
    t.eventually("traces", lambda: _traces(t, TRACE_TOPIC, sent["msgId"]), wanted)


@case("TRACE-003", "A trace topic of one's own", source=SOURCE, features="trace")
def own_topic(t: Trial) -> None:
    """With a custom trace topic the trace is there."""
    topic, mine = t.topic(queues=1), t.topic(queues=1)
    sent = t.producer(trace=True, traceTopic=mine).send(topic, "x")
    t.eventually("traces", lambda: _traces(t, mine, sent["msgId"]), ["Pub"])


@case("TRACE-004", "mqadmin shows a trace", source="mqadmin: queryMsgTraceById", features="trace")
def shown_by_mqadmin(t: Trial) -> None:
    """queryMsgTraceById shows the message's Pub line with success."""
    topic = t.topic(queues=1)
    group = t.name("P")
    sent = t.producer(trace=True, group=group).send(topic, "x")

    def shown() -> bool:
        said = t.mqadmin("queryMsgTraceById", "-i", sent["msgId"])
        return any(group in line and "success" in line for line in said.splitlines())

    t.eventually("shown", shown, True, within=60)


@case(
    "TRACE-005",
    "The trace topic is there from the start",
    source="broker: traceTopicEnable",
    run_with=WIRE,
    setup=relying_on("traceTopicEnable"),
)
def topic_is_there(t: Trial) -> None:
    """With traceTopicEnable the route of RMQ_SYS_TRACE_TOPIC has one queue."""
    found = steps.route(t.namesrv_wire(), TRACE_TOPIC)
    t.true("a route", found is not None)
    assert found is not None
    t.equal("queues", [one["writeQueueNums"] for one in found["queueDatas"]], [1])


@case(
    "NS-001", "A namespace is part of the name", source=NAMESPACE, features="namespace", core=True
)
def part_of_the_name(t: Trial) -> None:
    """A producer in namespace N sends to topic T: the broker has N%T, and a consumer in N sees the
    message under the name T."""
    space, short = t.name("N"), t.name("T")
    t.create_topic(t.servers.broker.address, f"{space}%{short}", 1)
    options = {"namespace": space}
    producer = t.producer(options=options)
    t.eventually("sent", lambda: producer.send(short, "inside")["status"], "SEND_OK")
    got = t.consumer(short, options=options).received(1)[0]
    t.equal("received", (got["topic"], got["body"]), (short, "inside"))
    t.equal("at the broker", steps.max_offset(t.wire(), f"{space}%{short}"), 1)


def _status(send: Callable[[], Json]) -> str:
    return str(send()["status"])


@case("NS-002", "Namespaces do not meet", source=NAMESPACE, features="namespace")
def apart(t: Trial) -> None:
    """Two namespaces with one topic name: each consumer receives its own message only."""
    spaces, short = [t.name("N"), t.name("N")], t.name("T")
    for space in spaces:
        t.create_topic(t.servers.broker.address, f"{space}%{short}", 1)
    both = [t.consumer(short, options={"namespace": space}) for space in spaces]
    for space in spaces:
        producer = t.producer(options={"namespace": space})
        send = partial(producer.send, short, space)
        t.eventually("sent", partial(_status, send), "SEND_OK")
    for space, consumer in zip(spaces, both, strict=True):
        t.equal("received", bodies(consumer.received(1)), [space])
        t.equal("nothing else", len(consumer.quiet(1)), 1)


@case("NS-003", "Retries stay in the namespace", source=NAMESPACE, features="namespace retry")
def retries(t: Trial) -> None:
    """A message that fails comes again under its short name, and the broker's retry topic is
    %RETRY%N%group."""
    space, short, group = t.name("N"), t.name("T"), t.name("G")
    t.create_topic(t.servers.broker.address, f"{space}%{short}", 1)
    options = {"namespace": space}
    consumer = t.consumer(short, group=group, options=options)
    producer = t.producer(options=options)
    t.eventually(
        "sent",
        lambda: producer.send(short, "again", properties={"fail": "1"})["status"],
        "SEND_OK",
    )
    got = consumer.received(2)
    t.equal("topics", [one["topic"] for one in got], [short, short])
    t.equal("retry topic", steps.max_offset(t.wire(), f"%RETRY%{space}%{group}"), 1)


@case("NS-004", "Transactions in a namespace", source=NAMESPACE, features="namespace transaction")
def transactions(t: Trial) -> None:
    """A transactional producer in a namespace is asked, and its message arrives there."""
    space, short = t.name("N"), t.name("T")
    t.create_topic(t.servers.broker.address, f"{space}%{short}", 1)
    options = {"namespace": space}
    producer = t.producer(transactional=True, options=options)

    def sent() -> str:
        result = producer.send_in_transaction(short, "asked", local="unknown", check="commit")
        return str(result["status"])

    t.eventually("sent", sent, "SEND_OK")
    consumer = t.consumer(short, options=options)
    t.equal("received", bodies(consumer.received(1)), ["asked"])
