"""Half of each: our broker behind a Java name server, and a Java broker behind ours."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING

from pyritemq.conformance.clients import Clients, wait_until
from pyritemq.conformance.processes import free_broker_port
from pyritemq.conformance.servers import java
from pyritemq.conformance.servers.cluster import (
    java_broker_settings,
    java_namesrv,
    pyrite_broker,
    pyrite_namesrv,
)
from pyritemq.conformance.traffic import received_messages, sent_messages

if TYPE_CHECKING:
    from pathlib import Path

SECONDS = 90.0
"""As in test_examples."""


def assert_quickstart_passes_through(clients: Clients, namesrv: str) -> None:
    with ExitStack() as stack:
        producer = stack.enter_context(clients.start("quickstart.Producer", namesrv=namesrv))
        consumer = stack.enter_context(clients.start("quickstart.Consumer", namesrv=namesrv))
        producer.wait(timeout=SECONDS)
        sent = {message.key for message in sent_messages(producer.output())}
        assert len(sent) == 1000

        def has_all(text: str) -> bool:
            return {message.key for message in received_messages(text)} >= sent

        output = wait_until(consumer, has_all, timeout=SECONDS)
    assert {message.key for message in received_messages(output)} == sent


def test_our_broker_registers_with_a_java_name_server_and_serves_its_clients(
    clients: Clients, tmp_path: Path
) -> None:
    host = clients.server_host
    with (
        java_namesrv(tmp_path / "java", host=host) as namesrv,
        pyrite_broker(tmp_path / "ours", namesrv=namesrv, host=host),
    ):
        assert_quickstart_passes_through(clients, namesrv)


def test_java_broker_registers_with_our_name_server_and_serves_its_clients(
    clients: Clients, tmp_path: Path
) -> None:
    host = clients.server_host
    with pyrite_namesrv(tmp_path / "ours", host=host) as namesrv:
        settings = java_broker_settings(namesrv, host, free_broker_port())
        with java.start_broker(tmp_path / "java", properties=settings) as broker:
            broker.wait_for_line(java.BROKER_READY, timeout=java.READY_SECONDS)
            assert_quickstart_passes_through(clients, namesrv)
