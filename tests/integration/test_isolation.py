"""A lane that is slow or full slows nobody else."""

import threading

import trio

from integration.wire import pull_fields, send, send_fields
from pyritemq.protocol.codes import RequestCode, ResponseCode
from pyritemq.server.lanes import Lane

HEARTBEAT = b'{"clientID":"c","consumerDataSet":[],"producerDataSet":[{"groupName":"p"}]}'


class Parked:
    """Replaces a function by one that waits until it is let go."""

    def __init__(self, function):
        self._function = function
        self.entered = threading.Event()
        self.let_go = threading.Event()

    def __call__(self, *args, **kwargs):
        self.entered.set()
        assert self.let_go.wait(30)
        return self._function(*args, **kwargs)


async def test_a_pull_lane_parked_on_a_slow_read_delays_neither_heartbeats_nor_sends(
    server, monkeypatch
):
    store = server.broker.broker.store
    wire = await server.connect()
    await send(wire, "Topic", b"first")
    slow = Parked(store.get)
    monkeypatch.setattr(store, "get", slow)
    opaques = [
        await wire.ask(RequestCode.PULL_MESSAGE, pull_fields("Topic", 0, 0)) for _ in range(20)
    ]
    await trio.to_thread.run_sync(slow.entered.wait)
    for _ in range(10):
        heartbeat = await wire.call(RequestCode.HEART_BEAT, {}, HEARTBEAT)
        assert heartbeat.code == ResponseCode.SUCCESS
        assert (await send(wire, "Topic", b"more")).code == ResponseCode.SUCCESS
    slow.let_go.set()
    assert [(await wire.reply(opaque)).code for opaque in opaques] == [0] * 20


async def test_a_flooded_send_lane_answers_busy_and_heartbeats_still_pass(
    start_server, stop_server, monkeypatch
):
    server = await start_server(sendThreadPoolQueueCapacity="50")
    store = server.broker.broker.store
    slow = Parked(store.put_batch)
    monkeypatch.setattr(store, "put_batch", slow)
    wire = await server.connect()
    fields = send_fields("Topic")
    opaques = [await wire.ask(RequestCode.SEND_MESSAGE_V2, fields, b"x") for _ in range(200)]
    heartbeat = await wire.call(RequestCode.HEART_BEAT, {}, HEARTBEAT)
    assert heartbeat.code == ResponseCode.SUCCESS
    slow.let_go.set()
    replies = [await wire.reply(opaque) for opaque in opaques]
    busy = [reply for reply in replies if reply.code == ResponseCode.SYSTEM_BUSY]
    assert len(busy) == 150
    assert {reply.remark for reply in busy} == {
        "[OVERLOAD]system busy, start flow control for a while"
    }
    assert sum(reply.code == ResponseCode.SUCCESS for reply in replies) == 50
    statistics = server.broker.server.lanes[Lane.SEND].statistics()
    assert statistics.refused == 150
    await stop_server(server)


async def test_a_handler_that_fails_answers_and_its_lane_goes_on(server, monkeypatch, caplog):
    store = server.broker.broker.store
    wire = await server.connect()
    await send(wire, "Topic", b"x")

    def broken(*args, **kwargs):
        raise RuntimeError("the disk has gone mad")

    with monkeypatch.context() as patch:
        patch.setattr(store, "put_batch", broken)
        reply = await send(wire, "Topic", b"x")
    assert reply.code == ResponseCode.SYSTEM_ERROR
    assert "the disk has gone mad" in reply.remark
    assert (await send(wire, "Topic", b"x")).code == ResponseCode.SUCCESS
    assert any("handler failed" in record.message for record in caplog.records)
