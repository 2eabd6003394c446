"""The official filter examples, unmodified: each consumer receives what it asked for, no more."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from pyritemq.conformance.clients import Clients, RunningClient, wait_until
from pyritemq.conformance.jars import CLIENT_VERSIONS
from pyritemq.conformance.servers.cluster import CLUSTERS
from pyritemq.conformance.traffic import Message, received_messages, sent_messages

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyritemq.conformance.servers.cluster import Cluster

SECONDS = 90.0

each_client = pytest.mark.parametrize("version", CLIENT_VERSIONS)


@pytest.fixture
def sql_cluster(tmp_path: Path, clients: Clients) -> Iterator[Cluster]:
    """The server under test with SQL filters allowed, which RocketMQ does not do by itself."""
    kind = os.environ.get("PYRITEMQ_SERVER_UNDER_TEST", "pyritemq")
    properties = {"enablePropertyFilter": "true"}
    with CLUSTERS[kind](tmp_path, host=clients.server_host, properties=properties) as running:
        yield running


def produce(clients: Clients, cluster: Cluster, name: str, version: str) -> list[Message]:
    with clients.start(name, namesrv=cluster.namesrv, client_version=version) as producer:
        producer.wait(timeout=SECONDS)
        return sent_messages(producer.output())


def keys(messages: list[Message]) -> list[str]:
    return sorted(message.key for message in messages)


def receive(consumer: RunningClient, wanted: list[Message]) -> list[str]:
    """The keys that have come once all wanted ones have; each as often as it came."""
    output = wait_until(
        consumer,
        lambda text: {*keys(received_messages(text))} >= {*keys(wanted)},
        timeout=SECONDS,
    )
    return keys(received_messages(output))


def sql_matches(sent: list[Message]) -> list[Message]:
    """The example: tags A, B, C in turn, a from 0 to 9; wanted are tags A and B with a up to 3."""
    assert len(sent) == 10
    return [sent[0], sent[1], sent[3]]


@each_client
def test_sql_consumer_receives_what_its_expression_selects(
    clients: Clients, sql_cluster: Cluster, version: str
) -> None:
    """First from a backlog, then as it arrives."""
    wanted = sql_matches(produce(clients, sql_cluster, "filter.SqlFilterProducer", version))
    with clients.start(
        "filter.SqlFilterConsumer", namesrv=sql_cluster.namesrv, client_version=version
    ) as consumer:
        assert receive(consumer, wanted) == keys(wanted)
        wanted += sql_matches(produce(clients, sql_cluster, "filter.SqlFilterProducer", version))
        assert receive(consumer, wanted) == keys(wanted)


@each_client
def test_sql_consumer_is_told_when_the_broker_does_not_filter_by_sql(
    clients: Clients, cluster: Cluster, version: str
) -> None:
    produce(clients, cluster, "filter.SqlFilterProducer", version)
    with clients.start(
        "filter.SqlFilterConsumer", namesrv=cluster.namesrv, client_version=version
    ) as consumer:
        consumer.wait_for_line(
            "The broker does not support consumer to filter message by SQL92", timeout=SECONDS
        )


@each_client
def test_tag_consumer_receives_the_tags_that_it_asked_for(
    clients: Clients, cluster: Cluster, version: str
) -> None:
    sent = produce(clients, cluster, "filter.TagFilterProducer", version)
    assert len(sent) == 60
    wanted = [message for number, message in enumerate(sent) if number % 3 != 1]
    with clients.start(
        "filter.TagFilterConsumer", namesrv=cluster.namesrv, client_version=version
    ) as consumer:
        assert receive(consumer, wanted) == keys(wanted)
