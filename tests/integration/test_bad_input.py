"""Whatever a peer sends, the server answers or closes, and goes on serving everybody else."""

import contextlib
import os
import struct

import pytest
import trio

from integration.wire import pull, send, send_fields
from pyritemq.protocol.codes import RequestCode, ResponseCode
from pyritemq.protocol.command import Command

GOOD = Command(RequestCode.GET_MAX_OFFSET, ext_fields={"topic": "T", "queueId": "0"}).encode()

BROKEN = {
    "negative length": struct.pack(">i", -1),
    "zero length": struct.pack(">i", 0),
    "length above the limit": struct.pack(">i", 17 * 1024 * 1024),
    "header longer than its frame": struct.pack(">ii", 8, 100) + b"abcd",
    "unknown serialisation": struct.pack(">iI", 8, 9 << 24 | 4) + b"abcd",
    "header that is not JSON": struct.pack(">ii", 4 + 5, 5) + b"{code",
    "JSON that is no object": struct.pack(">ii", 4 + 4, 4) + b"1234",
    "JSON with a code of the wrong type": struct.pack(">ii", 4 + 14, 14) + b'{"code":"ten"}',
    "binary header cut short": struct.pack(">iI", 4 + 3, 1 << 24 | 3) + b"\x00\x0b\x00",
    "binary header with a wild remark": struct.pack(">iI", 4 + 21, 1 << 24 | 21)
    + struct.pack(">hbhiiii", 11, 0, 0, 1, 0, 0x7FFFFFFF, 0),
    "an http request": b"GET / HTTP/1.1\r\nHost: broker\r\n\r\n",
    "random bytes": os.urandom(1 << 20),
}


@pytest.mark.parametrize("kind", BROKEN)
async def test_a_broken_frame_closes_its_connection_and_no_other(server, kind):
    healthy = await server.connect()
    broken = await server.connect()
    with contextlib.suppress(trio.BrokenResourceError):  # the server may have seen enough
        await broken.stream.send_all(BROKEN[kind])
    await broken.closed_by_peer()
    assert (await send(healthy, "Topic", b"x")).code == ResponseCode.SUCCESS


async def test_binary_fields_that_do_not_parse_close_their_connection(server):
    """They are only looked at on the lane, long after the frame was taken in."""
    healthy = await server.connect()
    broken = await server.connect()
    fields = b"\x00\x05topic\x00\x00\x00\x7fT"
    header = struct.pack(">hbhiiii", 30, 0, 0, 1, 0, 0, len(fields)) + fields
    await broken.stream.send_all(
        struct.pack(">iI", 4 + len(header), 1 << 24 | len(header)) + header
    )
    await broken.closed_by_peer()
    assert (await send(healthy, "Topic", b"x")).code == ResponseCode.SUCCESS


async def test_a_frame_cut_by_the_peers_end_is_forgotten(server):
    wire = await server.connect()
    await wire.stream.send_all(GOOD[:-3])
    await wire.aclose()
    healthy = await server.connect()
    assert (await send(healthy, "Topic", b"x")).code == ResponseCode.SUCCESS


async def test_frames_arrive_byte_by_byte(server):
    wire = await server.connect()
    request = Command(
        RequestCode.SEND_MESSAGE_V2,
        opaque=77,
        ext_fields={name: str(value) for name, value in send_fields("Topic").items()},
        body=b"slow",
    )
    for byte in request.encode():
        await wire.stream.send_all(bytes([byte]))
    assert (await wire.reply(77)).code == ResponseCode.SUCCESS


async def test_an_unknown_code_is_answered_as_java_answers_it(server):
    wire = await server.connect()
    for address in (server.broker_address, server.namesrv_address):
        wire = await server.connect(address)
        reply = await wire.call(31_000)
        assert reply.code == ResponseCode.REQUEST_CODE_NOT_SUPPORTED
        assert reply.remark == " request type 31000 not supported"


async def test_a_reply_that_nobody_asked_for_is_ignored(server):
    wire = await server.connect()
    await wire.stream.send_all(Command(0, opaque=5, flag=1).encode())
    assert (await send(wire, "Topic", b"x")).code == ResponseCode.SUCCESS


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"topic": "Topic"},
        {"topic": "Topic", "queueId": "many"},
        {"topic": "Topic", "queueId": "99999999999999999999"},
        {"topic": "Topic\x00", "queueId": "-5"},
        {"topic": "../../../etc/passwd", "queueId": "0"},
    ],
)
async def test_bad_fields_get_an_answer(server, fields):
    wire = await server.connect()
    reply = await wire.call(RequestCode.GET_MAX_OFFSET, fields)
    assert reply.is_response
    assert (await send(wire, "Topic", b"x")).code == ResponseCode.SUCCESS


@pytest.mark.parametrize(
    "body",
    [b"", b"\x00", struct.pack(">i", 1 << 30) * 8, os.urandom(64)],
    ids=["empty", "a byte", "long", "random"],
)
async def test_a_batch_body_that_does_not_parse_is_refused(server, body):
    wire = await server.connect()
    fields = send_fields("Topic") | {"m": "true"}
    reply = await wire.call(RequestCode.SEND_BATCH_MESSAGE, fields, body)
    assert reply.code != ResponseCode.SUCCESS
    assert (await send(wire, "Topic", b"x")).ext_fields["queueOffset"] == "0"


@pytest.mark.parametrize("body", [b"", b"null", b"[]", b'{"clientID":5}', b"\xff\xfe", b"{" * 5000])
async def test_a_heartbeat_that_does_not_parse_is_refused(server, body):
    wire = await server.connect()
    reply = await wire.call(RequestCode.HEART_BEAT, {}, body)
    assert reply.is_response
    assert (await send(wire, "Topic", b"x")).code == ResponseCode.SUCCESS


async def test_a_body_above_the_limit_is_illegal_and_one_at_the_limit_is_not(
    start_server, stop_server
):
    server = await start_server(maxMessageSize="1000")
    wire = await server.connect()
    assert (await send(wire, "Topic", bytes(1000))).code == ResponseCode.SUCCESS
    reply = await send(wire, "Topic", bytes(1001))
    assert reply.code == ResponseCode.MESSAGE_ILLEGAL
    assert "msg body length limit 1000B" in reply.remark
    await stop_server(server)


async def test_properties_above_32_kib_are_illegal(server):
    wire = await server.connect()
    reply = await send(wire, "Topic", b"x", properties="K\x01" + "v" * 33_000 + "\x02")
    assert reply.code == ResponseCode.MESSAGE_ILLEGAL
    assert (await send(wire, "Topic", b"x")).ext_fields["queueOffset"] == "0"


async def test_a_client_that_never_reads_is_not_read_from_either(server):
    """It asks for megabytes again and again; what waits for it stays bounded."""
    wire = await server.connect()
    for _ in range(10):
        await send(wire, "Topic", bytes(100_000))
    greedy = await server.connect()
    with trio.move_on_after(0.5):
        for _ in range(3000):
            await greedy.ask(RequestCode.PULL_MESSAGE, _pull_all())
    connections = server.broker.server.listener.connections
    waiting = max(connection.outgoing.backlog_bytes for connection in connections)
    assert 0 < waiting < 300 * 1024 * 1024
    assert (await pull(wire, "Topic")).code == ResponseCode.SUCCESS


def _pull_all():
    return {
        "consumerGroup": "g",
        "topic": "Topic",
        "queueId": 0,
        "queueOffset": 0,
        "maxMsgNums": 32,
        "sysFlag": 4,
        "commitOffset": 0,
        "suspendTimeoutMillis": 0,
        "subscription": "*",
        "subVersion": 0,
    }


async def test_a_thousand_silent_connections_keep_nobody_out(server):
    silent = [await server.connect() for _ in range(400)]
    silent += [await server.connect(server.namesrv_address) for _ in range(400)]
    wire = await server.connect()
    assert (await send(wire, "Topic", b"x")).code == ResponseCode.SUCCESS
    assert server.broker.server.listener.connection_count >= 401
    assert len(silent) == 800
