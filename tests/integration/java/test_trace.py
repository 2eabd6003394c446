"""Message traces of the official clients: kept in the trace topic and found by message id."""

from __future__ import annotations

import os
import re
import time
from typing import TYPE_CHECKING

import pytest

from integration.java.mqadmin import Mqadmin
from pyritemq.conformance.clients import POLL_SECONDS, Clients, wait_until
from pyritemq.conformance.jars import CLIENT_VERSIONS
from pyritemq.conformance.servers.cluster import CLUSTERS, Cluster
from pyritemq.conformance.traffic import received_messages, sent_messages

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyritemq.conformance.clients import RunningClient

SECONDS = 90.0
TRACE_TOPIC = "RMQ_SYS_TRACE_TOPIC"
# The 5.x example names the consumer's group like the producer's.
PUBLISHED = re.compile(r"^Pub +ProducerGroupName +\S+ +\S+ \S+ +\d+ms +success", re.MULTILINE)
CONSUMED = re.compile(
    r"^Sub +(?:ProducerGroupName|CID_JODIE_1) +\S+ +\S+ \S+ +\d+ms +success", re.MULTILINE
)


@pytest.fixture
def traced_cluster(tmp_path: Path, clients: Clients) -> Iterator[Cluster]:
    kind = os.environ.get("PYRITEMQ_SERVER_UNDER_TEST", "pyritemq")
    properties = {"traceTopicEnable": "true"}
    with CLUSTERS[kind](tmp_path, host=clients.server_host, properties=properties) as running:
        yield running


def trace_of(mqadmin: Mqadmin, namesrv: str, message_id: str) -> str:
    """The trace of one message, looked for until both sides are in it: clients send it in bulk."""
    deadline = time.monotonic() + SECONDS
    while True:
        shown = mqadmin("queryMsgTraceById", "-n", namesrv, "-i", message_id)
        if (PUBLISHED.search(shown) and CONSUMED.search(shown)) or time.monotonic() > deadline:
            return shown
        time.sleep(POLL_SECONDS)


@pytest.mark.parametrize("version", CLIENT_VERSIONS)
def test_what_is_sent_and_consumed_is_traced_and_the_trace_is_found_by_message_id(
    clients: Clients, traced_cluster: Cluster, tmp_path: Path, version: str
) -> None:
    namesrv = traced_cluster.namesrv

    def start(name: str) -> RunningClient:
        return clients.start(name, namesrv=namesrv, client_version=version)

    with Mqadmin(tmp_path / "mqadmin") as mqadmin:
        assert TRACE_TOPIC in mqadmin("topicList", "-n", namesrv).split()
        with start("tracemessage.TraceProducer") as producer:
            producer.wait(timeout=SECONDS)
            sent = sent_messages(producer.output())
        assert len(sent) == 128
        wanted = {message.key for message in sent}

        def has_all(text: str) -> bool:
            return {message.key for message in received_messages(text)} >= wanted

        with start("tracemessage.TracePushConsumer") as consumer:
            assert has_all(wait_until(consumer, has_all, timeout=SECONDS))
            traces = [trace_of(mqadmin, namesrv, message.key) for message in (sent[0], sent[-1])]
    for trace in traces:
        assert len(PUBLISHED.findall(trace)) == 1, trace
        assert len(CONSUMED.findall(trace)) == 1, trace
