"""Fixtures of the java lane: the server under test, and the official clients that meet it.

PYRITEMQ_SERVER_UNDER_TEST=rocketmq runs the same tests against the real RocketMQ 5.5.0: what fails
there is a wrong test. PYRITEMQ_JAVA_CLIENTS=process runs the clients as plain processes, which is
quicker and needs no Docker.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from pyritemq.conformance.clients import Clients, ProcessClients
from pyritemq.conformance.servers.cluster import CLUSTERS, Cluster

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Everything in this folder needs Java."""
    here = os.path.dirname(__file__)
    for item in items:
        if str(item.path).startswith(here):
            item.add_marker(pytest.mark.java)


@pytest.fixture(scope="session")
def clients(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Clients]:
    """Official clients in containers; as processes when the environment asks for it."""
    if os.environ.get("PYRITEMQ_JAVA_CLIENTS") == "process":
        starter: Clients = ProcessClients(tmp_path_factory.mktemp("clients"))
    else:
        from pyritemq.conformance.containers import ContainerClients

        starter = ContainerClients()
    yield starter
    starter.close()


@pytest.fixture
def cluster(tmp_path: Path, clients: Clients) -> Iterator[Cluster]:
    """A fresh server: the examples have their topic names written into them."""
    kind = os.environ.get("PYRITEMQ_SERVER_UNDER_TEST", "pyritemq")
    with CLUSTERS[kind](tmp_path, host=clients.server_host) as running:
        yield running
