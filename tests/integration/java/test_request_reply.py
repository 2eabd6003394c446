"""The request-reply examples, unmodified: each request is answered by another process."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from integration.java.socks import flags_to_reach
from pyritemq.conformance.clients import MQADMIN, Clients, wait_until
from pyritemq.conformance.jars import CLIENT_VERSIONS
from pyritemq.conformance.traffic import received_messages

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyritemq.conformance.clients import RunningClient
    from pyritemq.conformance.servers.cluster import Cluster

SECONDS = 90.0
TOPIC = "RequestTopic"
REPLY_TOPIC = "DefaultCluster_REPLY_TOPIC"
ANSWER = re.compile(r"request to <RequestTopic> cost: (\d+) replyMessage: (.*)")
REPLIED = re.compile(r"reply to (\S+) , SendResult \[sendStatus=(\w+)")


@pytest.fixture
def flags(clients: Clients, cluster: Cluster) -> Iterator[list[str]]:
    with flags_to_reach(cluster.namesrv, host=clients.server_host) as found:
        yield found


@pytest.fixture(params=CLIENT_VERSIONS)
def version(request: pytest.FixtureRequest) -> str:
    """4.9.8 leaves the address to the environment and does not know what the flags say."""
    return str(request.param)


@pytest.fixture
def responder(
    clients: Clients, cluster: Cluster, flags: list[str], version: str
) -> Iterator[RunningClient]:
    """A consumer that is there before the first request, with the topic made for it."""
    arguments = ["updateTopic", "-n", cluster.namesrv, "-b", cluster.broker, "-t", TOPIC]
    with clients.start(MQADMIN, namesrv=cluster.namesrv, arguments=arguments) as admin:
        admin.wait(timeout=SECONDS)
    with clients.start(
        "rpc.ResponseConsumer", namesrv=cluster.namesrv, client_version=version, flags=flags
    ) as consumer:
        consumer.wait_for_line("Consumer Started", timeout=SECONDS)
        yield consumer


@pytest.mark.parametrize("requester", ["rpc.RequestProducer", "rpc.AsyncRequestProducer"])
def test_a_request_gets_the_answer_of_the_consumer(
    clients: Clients,
    cluster: Cluster,
    flags: list[str],
    version: str,
    responder: RunningClient,
    requester: str,
) -> None:
    with clients.start(
        requester, namesrv=cluster.namesrv, client_version=version, flags=flags
    ) as producer:
        producer.wait_for_line(r"replyMessage: \w+ \[|Exception|fail", timeout=SECONDS)
        # The client's asynchronous request calls back twice: with null as soon as the request is
        # sent, unless the answer was quicker, and with the answer (DefaultMQProducerImpl.request).
        answers = [found for found in ANSWER.findall(producer.output()) if found[1] != "null "]
    assert answers, producer.output()
    cost_ms, message = answers[-1]
    assert int(cost_ms) < 3000
    assert f"topic='{REPLY_TOPIC}'" in message
    assert "PUSH_REPLY_TIME=" in message
    assert list(b"reply message contents.") == [
        int(number) for number in re.findall(r"body=\[([^\]]*)\]", message)[0].split(",")
    ]
    output = wait_until(responder, lambda text: bool(REPLIED.search(text)), timeout=SECONDS)
    assert [status for _, status in REPLIED.findall(output)] == ["SEND_OK"]
    arguments = ["consumeMessage", "-n", cluster.namesrv, "-t", REPLY_TOPIC, "-c", "10"]
    with clients.start(MQADMIN, namesrv=cluster.namesrv, arguments=arguments) as admin:
        admin.wait(timeout=SECONDS)
        assert len(received_messages(admin.output())) == 1


def test_an_unanswered_request_is_consumed_later_and_its_requester_not_found(
    clients: Clients, cluster: Cluster, flags: list[str]
) -> None:
    """The consumer starts from the last offset, but a group that is new to a topic whose first
    message is still in memory starts from the first (QUERY_CONSUMER_OFFSET answers 0)."""
    with clients.start("rpc.RequestProducer", namesrv=cluster.namesrv, flags=flags) as producer:
        producer.wait_for_line("RequestTimeoutException", timeout=SECONDS)
        producer.wait(timeout=SECONDS)
    with clients.start("rpc.ResponseConsumer", namesrv=cluster.namesrv, flags=flags) as consumer:
        consumer.wait_for_line(r"handle message: MessageExt", timeout=SECONDS)
        refused = r"CODE: 1 +DESC: push reply message fail, channel of <\S+> not found\."
        consumer.wait_for_line(refused, timeout=SECONDS)
