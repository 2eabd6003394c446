"""The operations port: metrics, health, readiness and reset over HTTP."""

import json

import pytest
import trio

from integration.test_transactions import until
from integration.wire import pull, send
from pyritemq.protocol.codes import ResponseCode
from pyritemq.server.http import serve_http
from pyritemq.server.listener import bind
from pyritemq.server.operations import Operations


async def ask(port, method, path, *headers):
    """Status and body."""
    async with await trio.open_tcp_stream("127.0.0.1", port) as stream:
        lines = [f"{method} {path} HTTP/1.1", "Host: x", *headers, "", ""]
        await stream.send_all("\r\n".join(lines).encode())
        answer = b""
        while data := await stream.receive_some(65536):
            answer += data
    head, _, body = answer.decode().partition("\r\n\r\n")
    return int(head.split(" ")[1]), body


async def scrape(port):
    """Samples by name and labels."""
    status, text = await ask(port, "GET", "/metrics")
    assert status == 200
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return {name: float(value) for name, value in (line.rsplit(" ", 1) for line in lines)}


@pytest.fixture
async def port(server, nursery):
    """The operations port of `server`, with resets allowed."""
    sock = bind("127.0.0.1", 0)
    operations = Operations(namesrv=server.namesrv, broker=server.broker, allow_reset=True)
    nursery.start_soon(serve_http, sock, operations.answer)
    yield sock.getsockname()[1]
    nursery.cancel_scope.cancel()


async def test_lanes_show_depth_waiting_and_serving(server, port):
    wire = await server.connect()
    for _ in range(3):
        await send(wire, "Topic", b"x")
    of_send = '{lane="send",service="broker"}'

    async def sends():  # the lane counts after it has answered
        return (await scrape(port))["pyritemq_lane_requests_total" + of_send]

    await until(sends, 3)
    metrics = await scrape(port)
    assert metrics["pyritemq_lane_serve_seconds_total" + of_send] > 0
    assert "pyritemq_lane_queue_depth" + of_send in metrics
    assert "pyritemq_lane_wait_seconds_total" + of_send in metrics


async def test_a_server_is_healthy_and_ready_and_says_why_when_it_is_not(server, port, monkeypatch):
    assert await ask(port, "GET", "/healthz") == (200, "ok\n")
    assert await ask(port, "GET", "/readyz") == (200, "ready\n")
    assert await ask(port, "HEAD", "/readyz") == (200, "")
    monkeypatch.setattr(server.broker.broker.store.expiry, "is_disk_full", True)
    status, text = await ask(port, "GET", "/readyz")
    assert (status, text) == (503, "the store takes no messages: its disk is full or has failed\n")
    assert (await ask(port, "GET", "/healthz"))[0] == 200


async def test_reset_empties_the_server(server, port):
    wire = await server.connect()
    await send(wire, "Topic", b"x")
    status, text = await ask(port, "POST", "/reset")
    assert status == 200
    assert json.loads(text)["reset"] is True
    assert (await pull(wire, "Topic")).code == ResponseCode.TOPIC_NOT_EXIST
    assert (await ask(port, "GET", "/readyz"))[0] == 200


async def test_reset_is_only_for_those_who_allowed_it_and_not_for_web_pages(server, port, nursery):
    wire = await server.connect()
    await send(wire, "Topic", b"x")
    sock = bind("127.0.0.1", 0)
    plain = Operations(namesrv=server.namesrv, broker=server.broker)
    nursery.start_soon(serve_http, sock, plain.answer)
    status, text = await ask(sock.getsockname()[1], "POST", "/reset")
    assert (status, json.loads(text)["reset"]) == (403, False)
    assert "--allow-reset" in text
    assert (await ask(port, "POST", "/reset", "Origin: http://example.org"))[0] == 403
    assert (await ask(port, "GET", "/reset"))[0] == 405
    assert (await pull(wire, "Topic")).code == ResponseCode.SUCCESS


@pytest.mark.parametrize(
    "request_bytes",
    [b"\x00\x01\r\n\r\n", b"GET\r\n\r\n", b"GET / HTTP/1.1\r\nnocolon\r\n\r\n", b"x" * 9000],
)
async def test_what_is_not_http_gets_400(port, request_bytes):
    async with await trio.open_tcp_stream("127.0.0.1", port) as stream:
        await stream.send_all(request_bytes)
        assert (await stream.receive_some(65536)).startswith(b"HTTP/1.1 400 ")
    status, text = await ask(port, "GET", "/nowhere")
    assert status == 404
    assert "/readyz" in text
