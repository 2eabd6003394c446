"""The official examples, unmodified, against a fresh server: what was sent is what is received."""

from __future__ import annotations

import time
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest

from pyritemq.conformance.clients import MQADMIN, Clients, wait_until
from pyritemq.conformance.jars import CLIENT_VERSIONS
from pyritemq.conformance.traffic import Message, by_queue, received_messages, sent_messages

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyritemq.conformance.servers.cluster import Cluster

SECONDS = 90.0
"""For any one client; a JVM on a loaded two-core machine has needed 20."""

each_client = pytest.mark.parametrize("version", CLIENT_VERSIONS)


def produce(clients: Clients, cluster: Cluster, name: str, version: str) -> list[Message]:
    """Run a producer to its end and return what it says is stored."""
    with clients.start(name, namesrv=cluster.namesrv, client_version=version) as producer:
        producer.wait(timeout=SECONDS)
        return sent_messages(producer.output())


def keys(messages: list[Message]) -> set[str]:
    return {message.key for message in messages}


def consume_at_once(
    clients: Clients, cluster: Cluster, names: Sequence[str], version: str, sent: list[Message]
) -> dict[str, list[Message]]:
    """Run consumers side by side until each has all that was sent; return what each received."""

    def has_all(text: str) -> bool:
        return keys(received_messages(text)) >= keys(sent)

    with ExitStack() as stack:
        running = [
            stack.enter_context(
                clients.start(name, namesrv=cluster.namesrv, client_version=version)
            )
            for name in names
        ]
        outputs = [wait_until(consumer, has_all, timeout=SECONDS) for consumer in running]
    return dict(zip(names, map(received_messages, outputs), strict=True))


def consume_with_mqadmin(
    clients: Clients, cluster: Cluster, topic: str, count: int
) -> list[Message]:
    """Read a topic that no example consumes with the pull consumer inside mqadmin."""
    arguments = ["consumeMessage", "-n", cluster.namesrv, "-t", topic, "-c", str(count)]
    with clients.start(MQADMIN, namesrv=cluster.namesrv, arguments=arguments) as admin:
        admin.wait(timeout=SECONDS)
        return received_messages(admin.output())


@each_client
def test_waiting_quickstart_consumer_receives_every_message_sent(
    clients: Clients, cluster: Cluster, version: str
) -> None:
    """The topic is made first: a client that waits for a new one looks only every 30 s."""
    before = produce(clients, cluster, "simple.Producer", version)
    assert len(before) == 128
    with clients.start(
        "quickstart.Consumer", namesrv=cluster.namesrv, client_version=version
    ) as consumer:
        consumer.wait_for_line("Receive New Messages", timeout=SECONDS)
        sent = produce(clients, cluster, "quickstart.Producer", version)
        assert len(sent) == 1000
        sent += before
        output = wait_until(
            consumer, lambda text: keys(received_messages(text)) >= keys(sent), timeout=SECONDS
        )
    received = received_messages(output)
    assert sorted(received, key=lambda m: m.key) == sorted(sent, key=lambda m: m.key)


@each_client
def test_backlog_is_consumed_by_push_broadcast_and_lite_pull_consumers(
    clients: Clients, cluster: Cluster, version: str
) -> None:
    sent = produce(clients, cluster, "quickstart.Producer", version)
    assert len(sent) == 1000
    received = consume_at_once(
        clients,
        cluster,
        ("broadcast.PushConsumer", "simple.PushConsumer", "simple.LitePullConsumerSubscribe"),
        version,
        sent,
    )
    assert {name: keys(messages) for name, messages in received.items()} == {
        name: keys(sent) for name in received
    }


@each_client
def test_ordered_consumer_receives_each_queue_in_order(
    clients: Clients, cluster: Cluster, version: str
) -> None:
    """The example asks for some messages again, after 3 s; only their first coming counts."""
    sent = produce(clients, cluster, "simple.Producer", version)
    assert len(sent) == 128
    consumer = "ordermessage.Consumer"
    received = consume_at_once(clients, cluster, (consumer,), version, sent)[consumer]
    first_seen = {queue: list(dict.fromkeys(seen)) for queue, seen in by_queue(received).items()}
    assert first_seen == {queue: sorted(offsets) for queue, offsets in by_queue(sent).items()}


@each_client
def test_two_broadcast_consumers_each_receive_everything(
    clients: Clients, cluster: Cluster, version: str
) -> None:
    before = produce(clients, cluster, "simple.Producer", version)
    with ExitStack() as stack:
        pair = [
            stack.enter_context(
                clients.start(
                    "broadcast.PushConsumer", namesrv=cluster.namesrv, client_version=version
                )
            )
            for _ in range(2)
        ]
        for consumer in pair:
            consumer.wait_for_line("Receive New Messages", timeout=SECONDS)
        sent = keys(before + produce(clients, cluster, "simple.Producer", version))
        assert len(sent) == 256

        def has_all(text: str) -> bool:
            return keys(received_messages(text)) >= sent

        outputs = [wait_until(consumer, has_all, timeout=SECONDS) for consumer in pair]
    assert [keys(received_messages(output)) for output in outputs] == [sent, sent]


@each_client
def test_lite_pull_consumer_receives_the_assigned_half_of_the_queues(
    clients: Clients, cluster: Cluster, version: str
) -> None:
    """The example assigns half of the queues, and seeks one to 10 while it may be pulling."""
    sent = by_queue(produce(clients, cluster, "quickstart.Producer", version))

    def complete_queues(text: str) -> list[int]:
        received = by_queue(received_messages(text))
        return [q for q in received if set(received[q]) >= set(sent[q][10:])]

    with clients.start(
        "simple.LitePullConsumerAssign", namesrv=cluster.namesrv, client_version=version
    ) as consumer:
        output = wait_until(consumer, lambda text: len(complete_queues(text)) == 2, timeout=SECONDS)
    assert len(complete_queues(output)) == 2
    assert len(by_queue(received_messages(output))) == 2


@each_client
def test_batch_is_stored_as_single_messages_side_by_side_in_one_queue(
    clients: Clients, cluster: Cluster, version: str
) -> None:
    """The example never ends, and that of 4.x prints nothing: the topic is watched instead.

    A first send that takes longer than the client's 3 s, as on a machine short of cores, makes the
    example give up with an exception: then it is started again.
    """
    received: list[Message] = []
    for _ in range(3):
        with clients.start(
            "batch.SimpleBatchProducer", namesrv=cluster.namesrv, client_version=version
        ) as producer:
            while not received and "Exception" not in producer.output():
                received = consume_with_mqadmin(clients, cluster, "BatchTest", 100)
            producer.stop()
            sent = sent_messages(producer.output())
        if received:
            break
    assert [sorted(offsets) for offsets in by_queue(received).values()] == [[0, 1, 2]]
    assert not sent or set(sent) == set(received)


def test_batches_of_a_megabyte_are_stored_whole(clients: Clients, cluster: Cluster) -> None:
    """The example sends 100,000 messages in eight batches, and never ends either."""
    deadline = time.monotonic() + SECONDS
    received: list[Message] = []
    with clients.start("batch.SplitBatchProducer", namesrv=cluster.namesrv) as producer:
        while len(received) < 100_000 and time.monotonic() < deadline:
            received = consume_with_mqadmin(clients, cluster, "BatchTest", 200_000)
        producer.stop()
        sent = sent_messages(producer.output())
    assert len(received) == 100_000
    assert set(received) == set(sent)


@each_client
def test_ordered_producer_keeps_each_order_in_one_queue(
    clients: Clients, cluster: Cluster, version: str
) -> None:
    sent = produce(clients, cluster, "ordermessage.Producer", version)
    assert len(sent) == 100
    received = consume_with_mqadmin(clients, cluster, "TopicTestjjj", 1000)
    assert sorted(received, key=lambda m: m.key) == sorted(sent, key=lambda m: m.key)
    queue_of_order = [{m.queue_id for m in sent[order::10]} for order in range(10)]
    assert all(len(queues) == 1 for queues in queue_of_order)


def test_asynchronous_sends_are_all_acknowledged_and_stored(
    clients: Clients, cluster: Cluster
) -> None:
    with clients.start("simple.AsyncProducer", namesrv=cluster.namesrv) as producer:
        producer.wait(timeout=SECONDS)
        acknowledged = [line for line in producer.output().splitlines() if " OK " in line]
    assert len(acknowledged) == 100
    received = consume_with_mqadmin(clients, cluster, "Jodie_topic_1023", 1000)
    assert keys(received) == {line.split()[-1] for line in acknowledged}
