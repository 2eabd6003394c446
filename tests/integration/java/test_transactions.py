"""Transactions with the official client, whose example leaves every decision to the check."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

import pytest

from pyritemq.conformance.clients import MQADMIN, Clients
from pyritemq.conformance.servers.cluster import CLUSTERS, Cluster

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SECONDS = 120.0
TOPIC = "TopicTest1234"
GIVEN_UP = "TRANS_CHECK_MAX_TIME_TOPIC"
LOOKS_MAX = 30
_KEYS = re.compile(r"\bKEYS=(KEY\d+)")


@pytest.fixture
def curious_cluster(tmp_path: Path, clients: Clients) -> Iterator[Cluster]:
    """A server that asks early and gives up soon.

    It notes decisions at once: with the usual 3 s the Java broker asks again about what it has just
    delivered, and delivers some of it twice.
    """
    kind = os.environ.get("PYRITEMQ_SERVER_UNDER_TEST", "pyritemq")
    properties = {
        "transactionCheckInterval": "2000",
        "transactionTimeOut": "1000",
        "transactionCheckMax": "2",
        "transactionOpBatchInterval": "100",
    }
    with CLUSTERS[kind](tmp_path, host=clients.server_host, properties=properties) as running:
        yield running


def keys(clients: Clients, cluster: Cluster, topic: str) -> list[str]:
    """The keys of all that a topic holds, read by mqadmin's pull consumer."""
    arguments = ["consumeMessage", "-n", cluster.namesrv, "-t", topic, "-c", "10000"]
    with clients.start(MQADMIN, namesrv=cluster.namesrv, arguments=arguments) as admin:
        admin.wait(timeout=SECONDS)
        return sorted(_KEYS.findall(admin.output()))


def test_the_example_commits_rolls_back_and_leaves_open_by_check_alone(
    clients: Clients, curious_cluster: Cluster
) -> None:
    """Of ten messages every third is committed, every third rolled back, the rest never decided."""
    cluster = curious_cluster
    with clients.start("transaction.TransactionProducer", namesrv=cluster.namesrv) as producer:
        given_up: list[str] = []
        for _ in range(LOOKS_MAX):
            given_up = keys(clients, cluster, GIVEN_UP)
            if len(given_up) >= 4:
                break
        assert producer.output().count("sendStatus=SEND_OK") == 10
    assert given_up == ["KEY0", "KEY3", "KEY6", "KEY9"]
    assert keys(clients, cluster, TOPIC) == ["KEY1", "KEY4", "KEY7"]
