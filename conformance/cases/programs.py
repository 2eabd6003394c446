"""Official programs as they are: the examples of 5.5.0, and the benchmark for a short run.

Examples have fixed topics and groups, so each case has servers of its own.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pyritemq.conformance import steps
from pyritemq.conformance.catalogue import TOOLS, case, family
from pyritemq.conformance.clients import wait_until
from pyritemq.conformance.traffic import by_queue, received_messages, sent_messages

if TYPE_CHECKING:
    from pyritemq.conformance.traffic import Message
    from pyritemq.conformance.trial import Trial

family("EXAMPLE", "Official examples")
family("BENCH", "Official benchmark")
EXAMPLES = "example: org.apache.rocketmq.example"
SECONDS = 90.0
TPS = re.compile(r"Send TPS: *(\d+)|SendTPS: *(\d+)|Send TPS:(\d+)|Consume TPS: *(\d+)|TPS: *(\d+)")


def _produced(t: Trial, name: str) -> list[Message]:
    producer = t.program(name)
    producer.wait(timeout=SECONDS)
    return sent_messages(producer.output())


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
    t.eventually("stored", lambda: _count(t, "Jodie_topic_1023"), 100)


def _count(t: Trial, topic: str) -> int:
    """How many messages a topic has."""
    wire, queues = t.wire(), steps.write_queues(t.namesrv_wire(), topic)
    return sum(steps.max_offset(wire, topic, number) for number in range(queues))


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
    t.eventually("committed", lambda: _count(t, "TopicTest1234"), 3, within=SECONDS)


def _benchmark(t: Trial, name: str, *arguments: str) -> None:
    """Start a benchmark class, wait for its first line of figures, and stop it."""
    program = t.program(f"benchmark.{name}", "-n", t.namesrv, *arguments)
    output = wait_until(program, lambda text: bool(_figures(text)), timeout=SECONDS)
    figures = _figures(output)
    t.true("figures", any(figures), output[-500:])


def _figures(text: str) -> list[int]:
    return [int(next(filter(None, found))) for found in TPS.findall(text)]


def _stored(t: Trial, topic: str) -> bool:
    return _count(t, topic) > 0


@case("BENCH-001", "Producer", source="benchmark: Producer", run_with=TOOLS)
def bench_producer(t: Trial) -> None:
    """benchmark.Producer prints a rate above zero, and its topic has messages."""
    topic = t.topic()
    _benchmark(t, "Producer", "-t", topic, "-w", "4", "-s", "128")
    t.eventually("stored", lambda: _stored(t, topic), True)


@case("BENCH-002", "Consumer", source="benchmark: Consumer", run_with=TOOLS)
def bench_consumer(t: Trial) -> None:
    """benchmark.Consumer prints a rate above zero while benchmark.Producer sends."""
    topic, group = t.topic(), t.group()
    t.program("benchmark.Producer", "-n", t.namesrv, "-t", topic, "-w", "1", "-s", "128")
    _benchmark(t, "Consumer", "-t", topic, "-g", group, "-p", "false")


@case("BENCH-003", "BatchProducer", source="benchmark: BatchProducer", run_with=TOOLS)
def bench_batch(t: Trial) -> None:
    """benchmark.BatchProducer prints a rate above zero, and its topic has messages."""
    topic = t.topic()
    _benchmark(t, "BatchProducer", "-t", topic, "-w", "2", "-s", "128", "-b", "16")
    t.eventually("stored", lambda: _stored(t, topic), True)


@case("BENCH-004", "TransactionProducer", source="benchmark: TransactionProducer", run_with=TOOLS)
def bench_transactions(t: Trial) -> None:
    """benchmark.TransactionProducer prints a rate above zero, and its topic has messages."""
    topic = t.topic()
    _benchmark(t, "TransactionProducer", "-t", topic, "-w", "2", "-s", "128")
    t.eventually("stored", lambda: _stored(t, topic), True)


SPRING_SENT = (
    *("plain", "unwanted", "failing", "order", "batch", "delayed"),
    *("transaction COMMIT_MESSAGE", "transaction ROLLBACK_MESSAGE"),
)

SPRING_RECEIVED = {
    *("plain 0", "failing 0", "failing 1", "tea x 3", "delayed 0", "committed 0"),
    *(f"batch-{number} 0" for number in range(3)),
    *(f"ordered-{number}" for number in range(5)),
}


@case(
    "EXAMPLE-009",
    "A Spring Boot application",
    source="tool: org.apache.rocketmq:rocketmq-spring-boot-starter 2.3.5",
    run_with=TOOLS,
    alone=True,
)
def spring_boot(t: Trial) -> None:
    """A sample on the starter: plain, batch, delayed, ordered and transactional sends by its
    template, and listeners by annotation with a tag, a class of its own, a failure that is tried
    again, and an order. What is not wanted and what was rolled back is not received."""
    for topic in ("spring-plain", "spring-order", "spring-ordered"):
        t.create_topic(t.servers.broker.address, topic, 4)
    sample = t.spring_sample()

    def received(text: str) -> list[str]:
        return re.findall(r"^sample: received (.+)$", text, re.MULTILINE)

    wait_until(sample, lambda text: set(received(text)) >= SPRING_RECEIVED, timeout=2 * SECONDS)
    output = sample.output()
    sent = [word.removesuffix(" SEND_OK") for word in re.findall(r"sample: sent (.+)", output)]
    t.equal("sent", sent, list(SPRING_SENT))
    t.equal("received", set(received(output)), SPRING_RECEIVED)
    ordered = [word for word in received(output) if word.startswith("ordered-")]
    t.equal("ordered", ordered, sorted(ordered))
