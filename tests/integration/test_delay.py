"""Delay levels through a whole server: real time, real threads, restarts."""

import signal

import pytest
import trio

from integration.server_process import ServerProcess
from integration.wire import Wire, pull, send
from pyritemq.protocol.codes import RequestCode, ResponseCode
from pyritemq.protocol.record import decode_properties, decode_records
from pyritemq.server.broker.delays.offsets import decode_snapshot

SCHEDULE = "SCHEDULE_TOPIC_XXXX"


async def read(wire, topic="Topic", offset=0, count=1):
    """So many records from an offset on, waited for."""
    records = []
    while len(records) < count:
        reply = await pull(wire, topic, 0, offset + len(records), wait_ms=10_000)
        assert reply.code == ResponseCode.SUCCESS, reply.remark
        records += decode_records(bytes(reply.body))
    return records


async def count(wire, topic, queue_id=0):
    reply = await wire.call(RequestCode.GET_MAX_OFFSET, {"topic": topic, "queueId": queue_id})
    return int(reply.ext_fields["offset"])


async def test_a_delayed_message_wakes_a_waiting_consumer_when_it_is_due(start_server, stop_server):
    server = await start_server(messageDelayLevel="1s")
    wire, sender = await server.connect(), await server.connect()
    await send(sender, "Topic", b"at once")
    sent = await send(sender, "Topic", b"later", properties="DELAY\x011\x02TAGS\x01A\x02")
    assert (sent.code, sent.ext_fields["queueId"]) == (ResponseCode.SUCCESS, "0")
    [record] = await read(wire, offset=1)
    assert record.body == b"later"
    [waiting] = await read(wire, SCHEDULE)
    late_ms = record.store_timestamp - waiting.store_timestamp - 1000
    assert 0 <= late_ms < 1000  # 100 when the machine has nothing else to do
    properties = decode_properties(record.properties)
    assert (properties["REAL_TOPIC"], properties["REAL_QID"]) == ("Topic", "0")
    assert (await pull(wire, "Topic", offset=1, tags="A")).code == ResponseCode.SUCCESS
    await stop_server(server)


async def test_levels_keep_their_order_under_a_backlog(start_server, stop_server):
    server = await start_server(messageDelayLevel="0s")
    wire = await server.connect()
    sent = [b"m%d" % index for index in range(1000)]
    opaques = []
    for body in sent:
        fields = {"a": "p", "b": "Topic", "c": "TBW102", "d": 4, "e": 0, "f": 0, "h": 0}
        fields |= {"g": 1_700_000_000_000, "i": "DELAY\x011\x02"}
        opaques.append(await wire.ask(RequestCode.SEND_MESSAGE_V2, fields, body))
    for opaque in opaques:
        assert (await wire.reply(opaque)).code == ResponseCode.SUCCESS
    assert [record.body for record in await read(wire, count=1000)] == sent
    await stop_server(server)


async def test_a_restart_delivers_what_waited_once(start_server, stop_server, tmp_path):
    server = await start_server(messageDelayLevel="0s 1h")
    wire = await server.connect()
    await send(wire, "Topic", b"before", properties="DELAY\x011\x02")
    await read(wire)
    await send(wire, "Topic", b"waits", properties="DELAY\x012\x02")
    await stop_server(server)
    saved = decode_snapshot((tmp_path / "store/config/delayOffset.json").read_bytes())
    assert saved.offsets[1] == 1
    # The same level is shorter now: what was due in an hour is further away than that, so due.
    server = await start_server(messageDelayLevel="0s 0s")
    wire = await server.connect()
    assert [record.body for record in await read(wire, count=2)] == [b"before", b"waits"]
    await stop_server(server)
    server = await start_server(messageDelayLevel="0s 0s")
    wire = await server.connect()
    assert await count(wire, "Topic") == 2
    await stop_server(server)


async def test_a_level_that_is_no_number_fails_the_send(server):
    wire = await server.connect()
    reply = await send(wire, "Topic", b"x", properties="DELAY\x01soon\x02")
    assert reply.code == ResponseCode.SYSTEM_ERROR
    assert reply.remark == 'java.lang.NumberFormatException: For input string: "soon"'


async def test_clients_may_not_send_to_the_schedule_topic(server):
    wire = await server.connect()
    reply = await send(wire, SCHEDULE, b"x")
    assert reply.code == ResponseCode.NO_PERMISSION
    assert reply.remark == f"Sending message to topic[{SCHEDULE}] is forbidden."


@pytest.mark.slow
async def test_kill_9_loses_no_delayed_message(tmp_path):
    """Sent before the kill, due after it; what was delivered before may come a second time."""
    properties = {"messageDelayLevel": "1s 4s"}
    bodies = {b"m%d" % index for index in range(200)}
    with ServerProcess(tmp_path, properties) as server:
        async with (await Wire.connect(server.address)).stream as stream:
            wire = Wire(stream)
            for body in bodies:
                level = 1 + int(body[1:]) % 2
                await send(wire, "Topic", body, properties=f"DELAY\x01{level}\x02")
            await read(wire)  # level 1 has begun
            server.end(signal.SIGKILL)
    with ServerProcess(tmp_path, properties) as server:
        async with (await Wire.connect(server.address)).stream as stream:
            wire, found = Wire(stream), []
            with trio.fail_after(30):
                while {record.body for record in found} != bodies:
                    found += await read(wire, offset=len(found))
        assert server.end(signal.SIGTERM) == 0
    assert len(found) <= 300, "only level 1 was delivered before the kill, so at most twice"
    print(f"delays: {len(found) - len(bodies)} of {len(bodies)} came twice")
