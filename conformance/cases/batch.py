"""Batches: many messages in one request."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyritemq.conformance import steps
from pyritemq.conformance import wire as wires
from pyritemq.conformance.actors import message, queue
from pyritemq.conformance.catalogue import WIRE, case, family
from pyritemq.conformance.trial import bodies
from pyritemq.protocol.codes import RequestCode
from pyritemq.protocol.record import BatchEntry, encode_batch

if TYPE_CHECKING:
    from pyritemq.conformance.trial import Trial

family("BATCH", "Batches")
SOURCE = "client: DefaultMQProducer.send(Collection)"


@case("BATCH-001", "All messages of a batch arrive", source=SOURCE, features="batch", core=True)
def whole_batch(t: Trial) -> None:
    """SEND_OK with an id for each message, and a consumer receives all ten."""
    topic = t.topic()
    sent = t.producer().send_batch(steps.numbered(topic, 10))
    t.equal("status", sent["status"], "SEND_OK")
    t.equal("ids", len(sent["msgId"].split(",")), 10)
    got = bodies(t.consumer(topic).received(10))
    t.equal("received", sorted(got), steps.numbers(10))


@case("BATCH-002", "A batch takes consecutive offsets", source=SOURCE, features="batch selector")
def consecutive(t: Trial) -> None:
    """Two batches to one queue begin at 0 and 5; the order within is kept."""
    topic, producer = t.topic(queues=2), t.producer()
    to = queue(topic, 1, t.servers.broker.name)
    first = producer.send_batch(steps.numbered(topic, 5), queue=to)
    second = producer.send_batch(steps.numbered(topic, 5, first=5), queue=to)
    t.equal("offsets", (first["queueOffset"], second["queueOffset"]), (0, 5))
    found = t.puller().pull(to, 0)
    t.equal("order", bodies(found["messages"]), steps.numbers(10))


@case("BATCH-003", "Each message keeps its own tags", source=SOURCE, features="batch tags")
def tags(t: Trial) -> None:
    """A consumer of one tag receives only that part of the batch."""
    topic = t.topic()
    batch = [message(topic, str(n), tags="odd" if n % 2 else "even") for n in range(8)]
    t.producer().send_batch(batch)
    got = t.consumer(topic, "odd").received(4)
    t.equal("received", sorted(bodies(got)), ["1", "3", "5", "7"])


@case(
    "BATCH-004",
    "A batch above the limit is refused",
    source="client: maxMessageSize",
    features="batch",
)
def too_large(t: Trial) -> None:
    """Five messages of one MiB are MESSAGE_ILLEGAL in one batch."""
    topic = t.topic()
    batch = [message(topic, bodySize=1 << 20) for _ in range(5)]
    t.refused("send", lambda: t.producer().send_batch(batch), code=13)


@case(
    "BATCH-005",
    "Delays cannot be in a batch",
    source="client: MessageBatch.generateFromList",
    features="batch",
)
def delayed(t: Trial) -> None:
    """The client refuses a batch with a delay level before it asks a broker."""
    batch = steps.numbered(t.topic(), 2, delayLevel=1)
    t.refused("send", lambda: t.producer().send_batch(batch))


@case(
    "BATCH-006",
    "A batch has one topic",
    source="client: MessageBatch.generateFromList",
    features="batch",
)
def two_topics(t: Trial) -> None:
    """The client refuses messages of two topics in one batch."""
    batch = [message(t.topic(), "a"), message(t.topic(), "b")]
    t.refused("send", lambda: t.producer().send_batch(batch))


@case("BATCH-007", "A batch can be sent asynchronously", source=SOURCE, features="batch async")
def asynchronous(t: Trial) -> None:
    """The callback has SEND_OK, and all messages arrive."""
    topic = t.topic()
    sent = t.producer().send_batch(steps.numbered(topic, 4), mode="async")
    t.equal("status", sent["status"], "SEND_OK")
    t.equal("received", sorted(bodies(t.consumer(topic).received(4))), steps.numbers(4))


@case(
    "BATCH-008",
    "The batch request answers with every id",
    source="protocol: SEND_BATCH_MESSAGE",
    run_with=WIRE,
)
def frame(t: Trial) -> None:
    """SEND_BATCH_MESSAGE is answered with as many offset ids as there are messages, and the first
    queue offset."""
    topic, wire = t.topic(queues=1), t.wire()
    entries = [BatchEntry(flag=0, body=b"%d" % n, properties=b"") for n in range(3)]
    fields = wires.send_fields(topic, m="true")
    reply = wire.call(RequestCode.SEND_BATCH_MESSAGE, fields, encode_batch(entries))
    t.equal("code", reply.code, 0)
    t.equal("ids", len(reply.ext_fields["msgId"].split(",")), 3)
    t.equal("offset", reply.ext_fields["queueOffset"], "0")
    t.eventually("stored", lambda: steps.max_offset(wire, topic), 3)


@case(
    "BATCH-009",
    "Messages of a batch are found by key",
    source="broker: index",
    features="batch query",
)
def keys(t: Trial) -> None:
    """Each message of a batch can be found by its own key."""
    topic, producer = t.topic(), t.producer()
    producer.send_batch([message(topic, str(n), keys=f"key{n}") for n in range(3)])

    t.eventually("by key", lambda: bodies(producer.query(topic, "key1")), ["1"])


@case(
    "BATCH-010",
    "A batch to a retry topic is refused",
    source="broker: SendMessageProcessor",
    run_with=WIRE,
)
def retry_topic(t: Trial) -> None:
    """SEND_BATCH_MESSAGE to %RETRY%… is refused and stores nothing."""
    group = t.group()
    entries = [BatchEntry(flag=0, body=b"x", properties=b"")]
    fields = wires.send_fields(f"%RETRY%{group}", m="true")
    reply = t.wire().call(RequestCode.SEND_BATCH_MESSAGE, fields, encode_batch(entries))
    t.equal("code", reply.code, 13)
