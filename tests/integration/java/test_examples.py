"""The official examples, unmodified, against a fresh server: what was sent is what is received."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest

from pyritemq.conformance.clients import MQADMIN, Clients, wait_until
from pyritemq.conformance.jars import CLIENT_VERSIONS
from pyritemq.conformance.traffic import Message, by_queue, received_messages, sent_messages

if TYPE_CHECKING:
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
def test_backlog_is_consumed_by_push_ordered_broadcast_and_lite_pull_consumers(
    clients: Clients, cluster: Cluster, version: str
) -> None:
    sent = produce(clients, cluster, "quickstart.Producer", version)
    assert len(sent) == 1000
    names = (
        "quickstart.Consumer",
        "ordermessage.Consumer",
        "broadcast.PushConsumer",
        "simple.PushConsumer",
        "simple.LitePullConsumerSubscribe",
    )
    with ExitStack() as stack:
        running = {
            name: stack.enter_context(
                clients.start(name, namesrv=cluster.namesrv, client_version=version)
            )
            for name in names
        }
        received = {
            name: received_messages(
                wait_until(
                    consumer,
                    lambda text: keys(received_messages(text)) >= keys(sent),
                    timeout=SECONDS,
                )
            )
            for name, consumer in running.items()
        }
    for name, messages in received.items():
        assert keys(messages) == keys(sent), name
    for queue_id, offsets in by_queue(received["ordermessage.Consumer"]).items():
        first_seen = list(dict.fromkeys(offsets))  # the example asks for some messages again
        assert first_seen == sorted(first_seen), f"queue {queue_id} came out of order"


@each_client
def test_two_broadcast_consumers_each_receive_everything(
    clients: Clients, cluster: Cluster, version: str
) -> None:
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
            consumer.wait_for_line("Consumer Started", timeout=SECONDS)
        sent = produce(clients, cluster, "simple.Producer", version)
        assert len(sent) == 128
        outputs = [
            wait_until(
                consumer, lambda text: keys(received_messages(text)) >= keys(sent), timeout=SECONDS
            )
            for consumer in pair
        ]
    assert [keys(received_messages(output)) for output in outputs] == [keys(sent)] * 2


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


def send_one_batch(clients: Clients, cluster: Cluster, version: str) -> list[Message]:
    """Run the batch example, which prints one line without an end and then never ends.

    So the topic is watched instead of the output. A first send that takes longer than the client's
    3 s, as on a machine short of cores, makes the example give up: then it is started again.
    """
    for _ in range(3):
        with clients.start(
            "batch.SimpleBatchProducer", namesrv=cluster.namesrv, client_version=version
        ) as producer:
            while "Exception" not in producer.output():
                if consume_with_mqadmin(clients, cluster, "BatchTest", 100):
                    break
            producer.stop()
            sent = sent_messages(producer.output())
        if sent:
            return sent
    return []


@each_client
def test_batch_is_stored_as_single_messages_in_one_queue(
    clients: Clients, cluster: Cluster, version: str
) -> None:
    sent = send_one_batch(clients, cluster, version)
    assert len(sent) == 3
    received = consume_with_mqadmin(clients, cluster, "BatchTest", 100)
    assert {m for m in received if m.key in keys(sent)} == set(sent)


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
