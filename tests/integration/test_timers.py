"""Arbitrary timers through a whole server: real time, real threads, restarts, recalls."""

import json
import signal
import struct

import pytest
import trio

from integration.server_process import ServerProcess
from integration.test_delay import count, read
from integration.wire import Wire, send
from pyritemq.protocol.codes import RequestCode, ResponseCode
from pyritemq.protocol.record import decode_properties
from pyritemq.server.broker.timers.rewriting import RecallHandle

QUICK = {"timerPrecisionMs": "100"}
TIMER_TOPIC = "rmq_sys_wheel_timer"


async def test_a_timer_wakes_a_waiting_consumer_when_its_time_has_come(start_server, stop_server):
    server = await start_server(**QUICK)
    wire, sender = await server.connect(), await server.connect()
    await send(sender, "Topic", b"at once")
    asked = "TIMER_DELAY_MS\x01700\x02TAGS\x01A\x02"
    sent = await send(sender, "Topic", b"later", properties=asked)
    assert (sent.code, sent.ext_fields["queueId"]) == (ResponseCode.SUCCESS, "0")
    [record] = await read(wire, offset=1)
    [waiting] = await read(wire, TIMER_TOPIC)
    assert record.body == b"later"
    assert record.store_timestamp - waiting.store_timestamp >= 600
    properties = decode_properties(record.properties)
    handle = RecallHandle.decode(sent.ext_fields["recallHandle"])
    assert handle.topic == "Topic"
    assert handle.message_id == properties["UNIQ_KEY"]
    await stop_server(server)


async def test_a_recall_takes_a_message_back(start_server, stop_server):
    server = await start_server(recallMessageEnable="true", **QUICK)
    wire = await server.connect()
    gone = await send(wire, "Topic", b"gone", properties="TIMER_DELAY_MS\x011500\x02")
    stays = await send(wire, "Topic", b"stays", properties="TIMER_DELAY_MS\x011500\x02")
    handle = gone.ext_fields["recallHandle"]
    fields = {"topic": "Topic", "recallHandle": handle, "producerGroup": "p"}
    reply = await wire.call(RequestCode.RECALL_MESSAGE, fields)
    assert reply.code == ResponseCode.SUCCESS, reply.remark
    assert reply.ext_fields["msgId"] == RecallHandle.decode(handle).message_id
    assert reply.ext_fields["MSG_REGION"] == "DefaultRegion"
    [record] = await read(wire)
    assert record.body == b"stays"
    fields["recallHandle"] = stays.ext_fields["recallHandle"]
    reply = await wire.call(RequestCode.RECALL_MESSAGE, fields)
    assert (reply.code, reply.remark) == (604, "recall failed, timestamp invalid")
    assert await count(wire, "Topic") == 1
    await stop_server(server)


async def test_recalls_that_java_refuses(start_server, stop_server):
    server = await start_server(recallMessageEnable="true")
    wire = await server.connect()
    await send(wire, "Topic", b"x")
    good = RecallHandle("Topic", "broker-a", "1", "ID")
    cases = [
        ("Nowhere", good, 17, "recall failed, the topic[Nowhere] not exist"),
        ("Topic", good, 604, "recall failed, timestamp invalid"),
        ("Topic", good._replace(topic="T"), 604, "recall failed, topic not match"),
        (
            "Topic",
            good._replace(broker_name="b"),
            604,
            "recall failed, broker service not available",
        ),
    ]
    for topic, handle, code, remark in cases:
        fields = {"topic": topic, "recallHandle": handle.encode()}
        reply = await wire.call(RequestCode.RECALL_MESSAGE, fields)
        assert (reply.code, reply.remark) == (code, remark)
    fields = {"topic": "Topic", "recallHandle": "??"}
    reply = await wire.call(RequestCode.RECALL_MESSAGE, fields)
    assert (reply.code, reply.remark) == (604, "recall handle is invalid")
    await stop_server(server)


async def test_recalls_are_forbidden_unless_enabled(server):
    wire = await server.connect()
    fields = {"topic": "Topic", "recallHandle": "x"}
    reply = await wire.call(RequestCode.RECALL_MESSAGE, fields)
    assert reply.code == ResponseCode.NO_PERMISSION
    assert reply.remark == "recall failed, operation is forbidden"


async def test_a_restart_delivers_what_waited_once(start_server, stop_server):
    server = await start_server(**QUICK)
    wire = await server.connect()
    await send(wire, "Topic", b"before", properties="TIMER_DELAY_MS\x01300\x02")
    await read(wire)
    await send(wire, "Topic", b"waits", properties="TIMER_DELAY_MS\x011500\x02")
    await stop_server(server)
    server = await start_server(**QUICK)
    wire = await server.connect()
    assert [record.body for record in await read(wire, count=2)] == [b"before", b"waits"]
    await stop_server(server)
    server = await start_server(**QUICK)
    wire = await server.connect()
    assert await count(wire, "Topic") == 2
    await stop_server(server)


async def test_tools_see_checkpoint_and_metrics(start_server, stop_server):
    server = await start_server(timerFlushIntervalMs="20", **QUICK)
    wire = await server.connect()
    await send(wire, "Topic", b"x", properties="TIMER_DELAY_SEC\x01100\x02")
    with trio.fail_after(10):
        while True:
            reply = await wire.call(RequestCode.GET_TIMER_CHECK_POINT)
            read_ms, _, queue_offset, master_offset, *_ = struct.unpack(">7q", reply.body)
            if queue_offset:
                break
    assert (queue_offset, master_offset) == (1, 1)
    assert read_ms > 1_700_000_000_000
    metrics = await wire.call(RequestCode.GET_TIMER_METRICS)
    assert json.loads(bytes(metrics.body))["timingCount"]["Topic"]["count"] == 1
    info = await wire.call(RequestCode.GET_BROKER_RUNTIME_INFO)
    assert json.loads(bytes(info.body))["table"]["timerCongestNum"] == "1"
    for engine, code in (("F", 0), ("R", ResponseCode.INVALID_PARAMETER)):
        reply = await wire.call(RequestCode.SWITCH_TIMER_ENGINE, {"E_T": engine})
        assert reply.code == code
    await stop_server(server)


async def test_a_broker_without_a_wheel_refuses_timers(start_server, stop_server, tmp_path):
    server = await start_server(timerWheelEnable="false")
    wire = await server.connect()
    reply = await send(wire, "Topic", b"x", properties="TIMER_DELAY_SEC\x011\x02")
    assert reply.code == ResponseCode.SYSTEM_ERROR
    assert "timerWheelEnable is false" in reply.remark
    for code in (RequestCode.GET_TIMER_CHECK_POINT, RequestCode.GET_TIMER_METRICS):
        assert (await wire.call(code)).code == ResponseCode.SYSTEM_ERROR
    await stop_server(server)
    assert not (tmp_path / "store" / "timerwheel").exists()


@pytest.mark.slow
async def test_kill_9_loses_no_timer(tmp_path):
    """Sent before the kill, due before and after it; what was delivered may come a second time."""
    bodies = {b"m%d" % index for index in range(200)}
    with ServerProcess(tmp_path, QUICK) as server:
        async with (await Wire.connect(server.address)).stream as stream:
            wire = Wire(stream)
            for body in bodies:
                delay_ms = (500, 4000)[int(body[1:]) % 2]
                await send(wire, "Topic", body, properties=f"TIMER_DELAY_MS\x01{delay_ms}\x02")
            await read(wire)  # the first have been delivered
            server.end(signal.SIGKILL)
    with ServerProcess(tmp_path, QUICK) as server:
        async with (await Wire.connect(server.address)).stream as stream:
            wire, found = Wire(stream), []
            with trio.fail_after(30):
                while {record.body for record in found} != bodies:
                    found += await read(wire, offset=len(found))
        assert server.end(signal.SIGTERM) == 0
    assert len(found) <= 300, "only the first half may come twice"
    print(f"timers: {len(found) - len(bodies)} of {len(bodies)} came twice")
