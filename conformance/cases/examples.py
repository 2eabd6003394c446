"""Official examples of 5.5.0 as they are.

Examples have fixed topics and groups, so each case has servers of its own.
"""

from __future__ import annotations

import json
import re
import time
from typing import TYPE_CHECKING

from pyritemq.conformance import steps
from pyritemq.conformance import wire as wires
from pyritemq.conformance.catalogue import TOOLS, case, family
from pyritemq.conformance.clients import ClientError, wait_until
from pyritemq.conformance.popping import set_mode
from pyritemq.conformance.traffic import by_queue, received_messages, sent_messages
from pyritemq.protocol.codes import RequestCode

if TYPE_CHECKING:
    from pyritemq.conformance.clients import RunningClient
    from pyritemq.conformance.traffic import Message
    from pyritemq.conformance.trial import Trial

family("EXAMPLE", "Official examples")
EXAMPLES = "example: org.apache.rocketmq.example"
MESSAGE_ID = re.compile(r"[mM]sgId(?: is:|=)([0-9A-F]+)")
SECONDS = 90.0
TIMES = 3


def _produced(t: Trial, name: str) -> list[Message]:
    producer = t.program(name)
    producer.wait(timeout=SECONDS)
    return sent_messages(producer.output())


def _run(t: Trial, name: str, *, says: str = "", loopback: bool = False) -> None:
    """Run a producer until it ends, or says a thing. One whose first send took longer than the
    client's 3 s, as on a machine that is full of work, gives up with an exception: once more."""
    output = ""
    for _ in range(TIMES):
        producer = t.program(name, loopback=loopback)
        deadline = time.monotonic() + SECONDS
        while not _has_ended(producer) and time.monotonic() < deadline:
            output = producer.output()
            if "Exception" in output or (says and says in output):
                break
        output = producer.output()
        if "Exception" not in output:
            return
    t.true(f"{name} without an exception", condition=False, got=output[-800:])


def _has_ended(program: RunningClient) -> bool:
    try:
        program.wait(timeout=1.0)
    except ClientError:
        return False
    return True


def _consumed(t: Trial, name: str, sent: list[Message]) -> list[Message]:
    wanted = {message.key for message in sent}
    consumer = t.program(name)

    def has_all(text: str) -> bool:
        return {message.key for message in received_messages(text)} >= wanted

    return received_messages(wait_until(consumer, has_all, timeout=SECONDS))


def _same(t: Trial, received: list[Message], sent: list[Message]) -> None:
    t.equal("received", {one.key for one in received}, {one.key for one in sent})


@case("EXAMPLE-001", "quickstart", source=EXAMPLES, run_with=TOOLS, alone=True)
def quickstart(t: Trial) -> None:
    """quickstart.Consumer receives the thousand messages of quickstart.Producer."""
    sent = _produced(t, "quickstart.Producer")
    t.equal("sent", len(sent), 1000)
    _same(t, _consumed(t, "quickstart.Consumer", sent), sent)


@case("EXAMPLE-002", "simple: push and lite pull", source=EXAMPLES, run_with=TOOLS, alone=True)
def simple(t: Trial) -> None:
    """PushConsumer and LitePullConsumerSubscribe both receive what simple.Producer sent."""
    sent = _produced(t, "simple.Producer")
    t.equal("sent", len(sent), 128)
    _same(t, _consumed(t, "simple.PushConsumer", sent), sent)
    _same(t, _consumed(t, "simple.LitePullConsumerSubscribe", sent), sent)


@case("EXAMPLE-003", "simple: asynchronous sends", source=EXAMPLES, run_with=TOOLS, alone=True)
def asynchronous(t: Trial) -> None:
    """AsyncProducer ends by itself, and its hundred messages are stored."""
    t.program("simple.AsyncProducer").wait(timeout=SECONDS)
    t.eventually("stored", lambda: steps.stored(t, "Jodie_topic_1023"), 100)


@case("EXAMPLE-004", "ordermessage", source=EXAMPLES, run_with=TOOLS, alone=True)
def order(t: Trial) -> None:
    """ordermessage.Consumer sees each queue's messages in their order, repetitions left out."""
    sent = _produced(t, "simple.Producer")
    t.equal("sent", len(sent), 128)
    received = _consumed(t, "ordermessage.Consumer", sent)
    seen = {queue: list(dict.fromkeys(offsets)) for queue, offsets in by_queue(received).items()}
    t.equal("order", seen, {queue: sorted(offsets) for queue, offsets in by_queue(sent).items()})


@case("EXAMPLE-005", "broadcast", source=EXAMPLES, run_with=TOOLS, alone=True)
def broadcast(t: Trial) -> None:
    """broadcast.PushConsumer receives everything that simple.Producer sent."""
    sent = _produced(t, "simple.Producer")
    t.equal("sent", len(sent), 128)
    _same(t, _consumed(t, "broadcast.PushConsumer", sent), sent)


@case("EXAMPLE-006", "filter: tags", source=EXAMPLES, run_with=TOOLS, alone=True)
def tags(t: Trial) -> None:
    """TagFilterConsumer receives of TagFilterProducer's sixty messages those with TagA or TagC."""
    sent = _produced(t, "filter.TagFilterProducer")
    t.equal("sent", len(sent), 60)
    consumer = t.program("filter.TagFilterConsumer")
    output = wait_until(consumer, lambda text: len(received_messages(text)) >= 40, timeout=SECONDS)
    t.equal("received", len({one.key for one in received_messages(output)}), 40)


@case("EXAMPLE-007", "filter: SQL", source=EXAMPLES, run_with=TOOLS, alone=True)
def sql(t: Trial) -> None:
    """SqlFilterConsumer receives some of SqlFilterProducer's messages, all of them sent ones."""
    sent = _produced(t, "filter.SqlFilterProducer")
    consumer = t.program("filter.SqlFilterConsumer")
    output = wait_until(consumer, lambda text: len(received_messages(text)) >= 2, timeout=SECONDS)
    got = {one.key for one in received_messages(output)}
    t.true("some", len(got) >= 2, len(got))
    t.equal("strangers", got - {one.key for one in sent}, set())


@case("EXAMPLE-008", "transaction", source=EXAMPLES, run_with=TOOLS, alone=True)
def transaction(t: Trial) -> None:
    """Of ten undecided messages the checks commit three; those are in the topic."""
    producer = t.program("transaction.TransactionProducer")
    wait_until(producer, lambda text: text.count("SEND_OK") >= 10, timeout=SECONDS)
    t.equal("sent", producer.output().count("sendStatus=SEND_OK"), 10)
    t.eventually("committed", lambda: steps.stored(t, "TopicTest1234"), 3, within=SECONDS)


def _until(
    t: Trial, name: str, what: str, count: int, *arguments: str, loopback: bool = False
) -> set[str]:
    """Run a consumer until it printed the ids of so many messages; fails where they do not come."""
    program = t.program(name, *arguments, loopback=loopback)
    wait_until(program, lambda text: len(_ids(text)) >= count, timeout=SECONDS)
    found = _ids(program.output())
    t.true(what, len(found) >= count, len(found))
    return found


def _ids(text: str) -> set[str]:
    return set(MESSAGE_ID.findall(text))


@case("EXAMPLE-009", "batch", source=EXAMPLES, run_with=TOOLS, alone=True)
def batch(t: Trial) -> None:
    """batch.SimpleBatchProducer stores its three messages, and SplitBatchProducer its hundred
    thousand, in batches of a megabyte."""
    _run(t, "batch.SimpleBatchProducer", says="SEND_OK")
    t.eventually("stored", lambda: steps.stored(t, "BatchTest"), 3)
    t.program("batch.SplitBatchProducer")
    t.eventually("stored", lambda: steps.stored(t, "BatchTest"), 100_003, within=SECONDS)


@case("EXAMPLE-010", "rpc", source=EXAMPLES, run_with=TOOLS, alone=True)
def rpc(t: Trial) -> None:
    """rpc.ResponseConsumer answers rpc.RequestProducer, which looks for 127.0.0.1:9876, and
    rpc.AsyncRequestProducer; both print the reply."""
    responder = t.program("rpc.ResponseConsumer", loopback=True)
    responder.wait_for_line("Consumer Started", timeout=SECONDS)
    t.eventually("a reply", lambda: _replied(t, "RequestProducer", loopback=True), True)
    t.eventually("a later reply", lambda: _replied(t, "AsyncRequestProducer"), True)


def _replied(t: Trial, name: str, *, loopback: bool = False) -> bool:
    """Whether the example got its reply: it waits 3 s, less than a new topic may need."""
    asker = t.program(f"rpc.{name}", loopback=loopback)

    def done(text: str) -> bool:
        return "replyMessage" in text or "Exception" in text or "fail" in text

    return "reply message contents" in wait_until(asker, done, timeout=SECONDS)


@case("EXAMPLE-011", "schedule: delay levels", source=EXAMPLES, run_with=TOOLS, alone=True)
def scheduled(t: Trial) -> None:
    """ScheduledMessageConsumer receives the hundred messages of ScheduledMessageProducer, which are
    delayed by ten seconds."""
    _run(t, "schedule.ScheduledMessageProducer")
    _until(t, "schedule.ScheduledMessageConsumer", "received", 100)


@case("EXAMPLE-012", "schedule: timers", source=EXAMPLES, run_with=TOOLS, alone=True)
def timers(t: Trial) -> None:
    """TimerMessageConsumer receives the ten messages of TimerMessageProducer, which are timed ten
    seconds ahead."""
    _run(t, "schedule.TimerMessageProducer")
    _until(t, "schedule.TimerMessageConsumer", "received", 10)


@case("EXAMPLE-013", "namespace", source=EXAMPLES, run_with=TOOLS, alone=True)
def namespaces(t: Trial) -> None:
    """PushConsumerWithNamespace and PullConsumerWithNamespace both receive the hundred messages of
    ProducerWithNamespace; all three look for 127.0.0.1:9876."""
    _run(t, "namespace.ProducerWithNamespace", loopback=True)
    _until(t, "namespace.PushConsumerWithNamespace", "pushed", 100, loopback=True)
    puller = t.program("namespace.PullConsumerWithNamespace", loopback=True)
    output = wait_until(puller, lambda text: len(_ids(text)) >= 100, timeout=SECONDS)
    t.equal("pulled", len(_ids(output)), 100)


@case("EXAMPLE-014", "tracemessage", source=EXAMPLES, run_with=TOOLS, alone=True)
def traced(t: Trial) -> None:
    """TracePushConsumer receives what TraceProducer sent, and the traces of both are stored."""
    sent = _produced(t, "tracemessage.TraceProducer")
    t.equal("sent", len(sent), 128)
    _same(t, _consumed(t, "tracemessage.TracePushConsumer", sent), sent)
    t.eventually("traces", lambda: steps.stored(t, "RMQ_SYS_TRACE_TOPIC") > 1, True)


@case("EXAMPLE-015", "operation", source=EXAMPLES, run_with=TOOLS, alone=True)
def operation(t: Trial) -> None:
    """operation.Consumer prints the five messages of operation.Producer, each of which fails once
    and comes again."""
    topic = ("-t", "TopicOperation")
    sent = ("-g", "producers", *topic, "-a", "TagA", "-k", "key", "-c", "5")
    t.program("operation.Producer", *sent).wait(timeout=SECONDS)
    t.equal("stored", steps.stored(t, "TopicOperation"), 5)
    how = ("-g", "consumers", *topic, "-s", "*", "-f", "false")
    program = t.program("operation.Consumer", *how)
    text = wait_until(program, lambda text: len(_keys(text)) >= 5, timeout=SECONDS)
    t.equal("received", len(_keys(text)), 5)


def _keys(text: str) -> set[str]:
    return {message.key for message in received_messages(text)}


@case("EXAMPLE-016", "simple: one-way sends", source=EXAMPLES, run_with=TOOLS, alone=True)
def oneway(t: Trial) -> None:
    """OnewayProducer, which looks for localhost:9876, stores its hundred messages."""
    t.create_topic(t.servers.broker.address, "TopicTest", 4)
    t.eventually("the route", lambda: steps.write_queues(t.namesrv_wire(), "TopicTest"), 4)
    t.program("simple.OnewayProducer", loopback=True).wait(timeout=SECONDS)
    t.eventually("stored", lambda: steps.stored(t, "TopicTest"), 100)


@case("EXAMPLE-017", "simple: pulls", source=EXAMPLES, run_with=TOOLS, alone=True)
def pulls(t: Trial) -> None:
    """PullScheduleService and PullConsumer move their groups' offsets to the end of what
    simple.Producer sent, and LitePullConsumerAssign prints messages of two queues."""
    sent = _produced(t, "simple.Producer")
    t.program("simple.PullScheduleService")
    t.program("simple.PullConsumer", loopback=True)
    lite = t.program("simple.LitePullConsumerAssign")

    def committed(group: str) -> int:
        wire = t.wire()
        found = [steps.stored_offset(wire, group, "TopicTest", number) for number in range(4)]
        return sum(offset or 0 for offset in found)

    for group in ("GroupName1", "please_rename_unique_group_name_5"):
        t.eventually(group, lambda group=group: committed(group), len(sent), within=SECONDS)  # type: ignore[misc]
    output = wait_until(
        lite, lambda text: len(by_queue(received_messages(text))) >= 2, timeout=SECONDS
    )
    t.equal("queues assigned", len(by_queue(received_messages(output))), 2)


@case(
    "EXAMPLE-018", "simple: assigned queues with tags", source=EXAMPLES, run_with=TOOLS, alone=True
)
def assigned(t: Trial) -> None:
    """LitePullConsumerAssignWithSubExpression prints messages of TagA from its two topics' queues,
    and none of TagB."""
    for topic in ("TopicTest", "TopicTest1"):
        _fill_with_tags(t, topic)
    lite = t.program("simple.LitePullConsumerAssignWithSubExpression")
    text = wait_until(lite, lambda text: text.count("TAGS=TagA") >= 10, timeout=SECONDS)
    t.true("TagA came", text.count("TAGS=TagA") >= 10, text[-500:])
    t.equal("of TagB", text.count("TAGS=TagB"), 0)


def _fill_with_tags(t: Trial, topic: str) -> None:
    t.create_topic(t.servers.broker.address, topic, 4)
    t.eventually("the route", lambda: steps.write_queues(t.namesrv_wire(), topic), 4)
    wire = t.wire()
    for number in range(4):
        for tag in ("TagA", "TagB") * 10:
            wires.send(wire, topic, tag, number, properties=f"TAGS\x01{tag}\x02")


@case("EXAMPLE-019", "simple: pop", source=EXAMPLES, run_with=TOOLS, alone=True)
def popping(t: Trial) -> None:
    """PopConsumer switches its group to POP by itself, and receives what simple.Producer sent."""
    group = json.dumps({"groupName": "CID_JODIE_1"}).encode()
    t.wire().call(RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, body=group)
    sent = _produced(t, "simple.Producer")
    code = set_mode(t.wire(), "TopicTest", "CID_JODIE_1", "POP").code
    t.equal("mode", code, 0)
    _same(t, _consumed(t, "simple.PopConsumer", sent), sent)


@case("EXAMPLE-020", "ordermessage.Producer", source=EXAMPLES, run_with=TOOLS, alone=True)
def order_producer(t: Trial) -> None:
    """It stores its hundred messages, ten of each order in one queue."""
    sent = _produced(t, "ordermessage.Producer")
    t.equal("sent", len(sent), 100)
    t.equal("stored", steps.stored(t, "TopicTestjjj"), 100)
    counts = {queue: len(offsets) for queue, offsets in by_queue(sent).items()}
    t.equal("whole orders", {count % 10 for count in counts.values()}, {0})


@case("EXAMPLE-021", "tracemessage: OpenTracing", source=EXAMPLES, run_with=TOOLS, alone=True)
def open_tracing(t: Trial) -> None:
    """OpenTracingPushConsumer receives what OpenTracingProducer and OpenTracingTransactionProducer
    sent; nobody listens for their spans."""
    sent = _produced(t, "tracemessage.OpenTracingProducer")
    t.true("sent", len(sent) >= 1, len(sent))
    t.program("tracemessage.OpenTracingTransactionProducer")
    stored = len(sent) + 1
    t.eventually("stored", lambda: steps.stored(t, "TopicTest"), stored, within=SECONDS)
    _same(t, _consumed(t, "tracemessage.OpenTracingPushConsumer", sent), sent)


@case("EXAMPLE-022", "openmessaging", source=EXAMPLES, run_with=TOOLS, alone=True)
def open_messaging(t: Trial) -> None:
    """openmessaging.SimplePushConsumer receives the three messages of SimpleProducer, and
    SimplePullConsumer its own; all look for localhost:9876."""
    _run(t, "openmessaging.SimpleProducer", loopback=True)
    t.eventually("stored", lambda: steps.stored(t, "OMS_HELLO_TOPIC"), 3, within=SECONDS)
    consumer = t.program("openmessaging.SimplePushConsumer", loopback=True)
    text = wait_until(
        consumer, lambda text: text.count("Received one message") >= 3, timeout=SECONDS
    )
    t.equal("pushed", text.count("Received one message"), 3)
    puller = t.program("openmessaging.SimplePullConsumer", loopback=True)
    text = wait_until(puller, lambda text: "Received one message" in text, timeout=SECONDS)
    t.true("pulled", "Received one message" in text, text[-500:])
