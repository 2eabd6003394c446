"""Timers with the official examples, and the wheel of a Java broker that was killed.

How the brokers take turns on one wheel by clean stops: test_turns.py.
"""

from __future__ import annotations

import re
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import trio

from integration.conftest import SMALL_STORE
from integration.wire import Wire, pull, send
from pyritemq.conformance.clients import Clients, wait_until
from pyritemq.conformance.processes import free_broker_port
from pyritemq.conformance.servers.java import BROKER_READY, READY_SECONDS, start_broker
from pyritemq.conformance.traffic import sent_messages
from pyritemq.protocol.codes import RequestCode, ResponseCode
from pyritemq.protocol.record import decode_records

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyritemq.conformance.servers.cluster import Cluster

SECONDS = 120.0
TIMERS = 20
DELAY_MS = 25_000
"""Longer than a Java broker takes to start, so that the other side has to deliver."""


def test_timer_examples_deliver_ten_seconds_later(clients: Clients, cluster: Cluster) -> None:
    """The producer goes first, so that the consumer finds the topic."""
    with clients.start("schedule.TimerMessageProducer", namesrv=cluster.namesrv) as producer:
        producer.wait(timeout=SECONDS)
        wanted = {message.key for message in sent_messages(producer.output())}
    assert len(wanted) == 10

    def received(text: str) -> dict[str, int]:
        lines = re.findall(r"Receive message\[msgId=(\w+) (\d+) +ms later", text)
        return {key: int(late_ms) for key, late_ms in lines}

    with clients.start("schedule.TimerMessageConsumer", namesrv=cluster.namesrv) as consumer:
        output = wait_until(consumer, lambda text: received(text).keys() >= wanted, timeout=SECONDS)
    assert received(output).keys() == wanted
    assert min(received(output).values()) >= 9_900  # the clocks of a container and ours


@contextmanager
def java_broker(folder: Path) -> Iterator[str]:
    """The real broker on the folder that our server uses; its address."""
    port = free_broker_port()
    properties = {
        "listenPort": port,
        "brokerIP1": "127.0.0.1",
        "brokerName": "broker-a",
        **SMALL_STORE,
    }
    child = start_broker(folder, properties=properties)
    try:
        child.wait_for_line(BROKER_READY, timeout=READY_SECONDS)
        yield f"127.0.0.1:{port}"
    finally:
        child.kill()


async def send_timers(wire: Wire) -> list[bytes]:
    bodies = [b"m%d" % number for number in range(TIMERS)]
    for body in bodies:
        reply = await send(wire, "Topic", body, properties=f"TIMER_DELAY_MS\x01{DELAY_MS}\x02")
        assert reply.code == 0, reply.remark
    return bodies


async def until_taken_in(wire: Wire, count: int) -> None:
    """Until the broker has saved that so many messages are in its wheel."""
    with trio.fail_after(20):
        while True:
            reply = await wire.call(RequestCode.GET_TIMER_CHECK_POINT)
            if int.from_bytes(bytes(reply.body)[16:24], "big") == count:
                return
            await trio.sleep(0.2)


async def delivered(wire: Wire) -> list[bytes]:
    bodies: list[bytes] = []
    with trio.fail_after(90):
        while len(bodies) < TIMERS:
            reply = await pull(wire, "Topic", offset=len(bodies), wait_ms=5000)
            if reply.code == ResponseCode.SUCCESS:
                bodies += [record.body for record in decode_records(bytes(reply.body))]
            else:
                assert reply.code == ResponseCode.PULL_NOT_FOUND, reply.remark
    return bodies


async def test_we_go_on_with_the_wheel_of_a_java_broker_that_was_killed(
    start_server: Any, stop_server: Any, tmp_path: Path
) -> None:
    with java_broker(tmp_path) as address:
        java = await Wire.connect(address)
        bodies = await send_timers(java)
        await until_taken_in(java, TIMERS)
        await java.aclose()
    server = await start_server()
    wire = await server.connect()
    assert await delivered(wire) == bodies
    await stop_server(server)
