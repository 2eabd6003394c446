"""Retries, dead letters and delay levels with the official client; the server is a fresh one.

The benchmark's consumer fails as often as it is told to. Its classes, and the schedule examples,
are in the jars of 5.5.0 only.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

import pytest

from pyritemq.conformance.clients import MQADMIN, Clients, wait_until
from pyritemq.conformance.servers.cluster import CLUSTERS, Cluster
from pyritemq.conformance.traffic import Message, sent_messages

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

SECONDS = 120.0
"""For any one step; a consumer looks for its new retry topic only every 30 s."""

RETRIES_MAX = 16
LEVEL_3_MS = 10_000

_FACTS = re.compile(
    r"MessageExt \[.*?storeTimestamp=(?P<stored>\d+).*?reconsumeTimes=(?P<times>\d+).*?"
    r"properties=\{(?P<properties>[^}]*)\}"
)


@pytest.fixture
def impatient_cluster(tmp_path: Path, clients: Clients) -> Iterator[Cluster]:
    """A server whose delay levels take no time."""
    kind = os.environ.get("PYRITEMQ_SERVER_UNDER_TEST", "pyritemq")
    properties = {"messageDelayLevel": "0s 0s 0s 0s"}
    with CLUSTERS[kind](tmp_path, host=clients.server_host, properties=properties) as running:
        yield running


class Stored:
    """A message as mqadmin prints it."""

    def __init__(self, match: re.Match[str]) -> None:
        pairs = (pair.partition("=") for pair in match["properties"].split(", "))
        self.properties = {name: value for name, _, value in pairs}
        self.key = self.properties["UNIQ_KEY"]
        self.reconsume_times = int(match["times"])
        self.stored_ms = int(match["stored"])


def stored_messages(clients: Clients, cluster: Cluster, topic: str) -> list[Stored]:
    """All that a topic holds."""
    arguments = ["consumeMessage", "-n", cluster.namesrv, "-t", topic, "-c", "10000"]
    with clients.start(MQADMIN, namesrv=cluster.namesrv, arguments=arguments) as admin:
        admin.wait(timeout=SECONDS)
        return [Stored(match) for match in _FACTS.finditer(admin.output())]


def produce(clients: Clients, cluster: Cluster, name: str) -> list[Message]:
    with clients.start(name, namesrv=cluster.namesrv) as producer:
        producer.wait(timeout=SECONDS)
        return sent_messages(producer.output())


def look_until(look: Callable[[], list[Stored]], count: int, looks: int = 30) -> list[Stored]:
    """Look again and again until there are so many."""
    found: list[Stored] = []
    for _ in range(looks):
        found = look()
        if len(found) >= count:
            break
    return found


def test_what_a_push_consumer_never_consumes_is_buried_after_its_last_attempt(
    clients: Clients, impatient_cluster: Cluster
) -> None:
    cluster = impatient_cluster
    sent = produce(clients, cluster, "simple.Producer")
    assert len(sent) == 128
    arguments = ["-t", "TopicTest", "-g", "failing", "-p", "false", "-r", "1.0"]
    with clients.start("benchmark.Consumer", namesrv=cluster.namesrv, arguments=arguments):
        dead = look_until(lambda: stored_messages(clients, cluster, "%DLQ%failing"), len(sent))
    ids = {message.key: message.message_id for message in sent}
    assert sorted(message.key for message in dead) == sorted(ids)
    assert {message.reconsume_times for message in dead} == {RETRIES_MAX + 1}
    assert {message.properties["RETRY_TOPIC"] for message in dead} == {"TopicTest"}
    assert {message.key: message.properties["ORIGIN_MESSAGE_ID"] for message in dead} == ids
    retried = stored_messages(clients, cluster, "%RETRY%failing")
    assert len(retried) == len(sent) * RETRIES_MAX


def test_a_push_consumer_that_fails_at_times_gets_again_only_what_failed(
    clients: Clients, impatient_cluster: Cluster
) -> None:
    """No dead letters: 17 failures in a row at this rate take a million runs."""
    cluster = impatient_cluster
    sent = produce(clients, cluster, "simple.Producer")
    arguments = ["-t", "TopicTest", "-g", "moody", "-p", "false", "-r", "0.3"]
    with clients.start("benchmark.Consumer", namesrv=cluster.namesrv, arguments=arguments):
        retried = look_until(lambda: stored_messages(clients, cluster, "%RETRY%moody"), 20)
    assert {message.key for message in retried} < {message.key for message in sent}
    assert stored_messages(clients, cluster, "%DLQ%moody") == []


def test_scheduled_examples_deliver_ten_seconds_later(clients: Clients, cluster: Cluster) -> None:
    """The producer goes first, so that the consumer finds the topic."""
    sent = produce(clients, cluster, "schedule.ScheduledMessageProducer")
    assert len(sent) == 100
    wanted = {message.key for message in sent}

    def received(text: str) -> set[str]:
        return set(re.findall(r"Receive message\[msgId=(\w+)", text))

    with clients.start("schedule.ScheduledMessageConsumer", namesrv=cluster.namesrv) as consumer:
        output = wait_until(consumer, lambda text: received(text) >= wanted, timeout=SECONDS)
    assert received(output) == wanted
    delivered = {m.key: m.stored_ms for m in stored_messages(clients, cluster, "TestTopic")}
    waiting = stored_messages(clients, cluster, "SCHEDULE_TOPIC_XXXX")
    delays = [delivered[message.key] - message.stored_ms for message in waiting]
    assert len(delays) == 100
    assert min(delays) >= LEVEL_3_MS
    assert max(delays) < LEVEL_3_MS + 1000  # 100 where nothing else runs
