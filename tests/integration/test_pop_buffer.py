"""POP with `enablePopBufferMerge`: check points in memory, written only when acks are late."""

import pytest
import trio

from integration.popwire import ack, change_invisible, pop
from integration.test_pop import QUICK, later, pop_until, until  # noqa: F401 - later is a fixture
from integration.wire import send
from pyritemq.protocol.codes import ResponseCode
from pyritemq.server.broker.pop.revive_records import Ack

TIMER_TOPIC = "rmq_sys_wheel_timer"
MERGING = QUICK | {"enablePopBufferMerge": "true"}


@pytest.fixture
async def merging(later, start_server, stop_server):  # noqa: F811
    server = await start_server(**MERGING)
    yield server
    with trio.CancelScope(shield=True):
        await stop_server(server)


def written(server):
    """How many check points and acks were put."""
    return server.broker.broker.store.max_offset(TIMER_TOPIC, 0)


def committed(server):
    return server.broker.broker.offsets.query("G", "Topic", 0)


async def test_what_is_acked_in_time_costs_no_record_and_is_committed_by_its_last_ack(merging):
    wire = await merging.connect()
    for body in (b"a", b"b", b"c"):
        await send(wire, "Topic", body)
    first = await pop(wire, queue_id=0, count=2)
    second = await pop(wire, queue_id=0)
    assert [message.body for message in first + second] == [b"a", b"b", b"c"]
    assert committed(merging) == 0
    assert (await ack(wire, second[0])).code == ResponseCode.SUCCESS
    assert committed(merging) == 0  # the gap before it is open
    for message in first:
        assert (await ack(wire, message)).code == ResponseCode.SUCCESS
    assert committed(merging) == 3
    assert written(merging) == 0
    assert await pop(wire) == []


async def test_what_is_late_is_written_and_only_what_was_not_acked_comes_back(merging, later):  # noqa: F811
    wire = await merging.connect()
    for body in (b"acked", b"lost"):
        await send(wire, "Topic", body)
    acked, _ = await pop(wire, queue_id=0)
    await ack(wire, acked)
    later(11)  # longer than popCkStayBufferTime
    await until(lambda: committed(merging) == 2)
    assert written(merging) == 2  # the check point, and what was acked of it
    later(60)
    [back] = await pop_until(wire, 1)
    assert (back.body, back.record.reconsume_times) == (b"lost", 1)


async def test_an_ack_that_comes_after_the_check_point_was_written_counts_too(merging, later):  # noqa: F811
    wire = await merging.connect()
    for body in (b"late", b"lost"):
        await send(wire, "Topic", body)
    late, _ = await pop(wire, queue_id=0)
    later(11)
    await until(lambda: committed(merging) == 2)
    assert (await ack(wire, late)).code == ResponseCode.SUCCESS
    assert written(merging) == 2
    later(60)
    [back] = await pop_until(wire, 1)
    assert back.body == b"lost"


async def test_a_short_invisible_time_is_written_at_once(merging):
    wire = await merging.connect()
    await send(wire, "Topic", b"m")
    await pop(wire, queue_id=0, invisible_ms=4000)
    assert (committed(merging), written(merging)) == (1, 1)


async def test_a_changed_invisible_time_counts_for_one_message_only(merging, later):  # noqa: F811
    wire = await merging.connect()
    for body in (b"put off", b"acked"):
        await send(wire, "Topic", body)
    put_off, acked = await pop(wire, queue_id=0)
    assert (await change_invisible(wire, put_off, 200_000)).code == ResponseCode.SUCCESS
    assert (await ack(wire, acked)).code == ResponseCode.SUCCESS
    assert committed(merging) == 2
    later(100)
    assert await pop(wire) == []
    later(110)
    [back] = await pop_until(wire, 1)
    assert back.body == b"put off"


async def test_a_clean_stop_writes_what_was_held(later, start_server, stop_server):  # noqa: F811
    server = await start_server(**MERGING)
    wire = await server.connect()
    for body in (b"acked", b"lost"):
        await send(wire, "Topic", body)
    acked, _ = await pop(wire, queue_id=0)
    await ack(wire, acked)
    await stop_server(server)
    server = await start_server(**MERGING)
    wire = await server.connect()
    assert await pop(wire) == []
    later(70)
    [back] = await pop_until(wire, 1)
    assert back.body == b"lost"
    await stop_server(server)


async def test_switching_it_off_writes_what_is_held(merging):
    wire = await merging.connect()
    await send(wire, "Topic", b"m")
    await pop(wire, queue_id=0)
    assert written(merging) == 0
    merging.broker.broker.config.enable_pop_buffer_merge = False
    await until(lambda: committed(merging) == 1)
    assert written(merging) == 1


async def test_no_more_check_points_are_held_than_the_settings_allow(merging):
    config = merging.broker.broker.config
    wire = await merging.connect()
    for _ in range(3):
        await send(wire, "Topic", b"m")
    config.pop_ck_offset_max_queue_size = 1
    await pop(wire, queue_id=0, count=1)
    await pop(wire, queue_id=0, count=1)
    assert len(merging.broker.broker.pop.buffer) == 1
    config.pop_ck_offset_max_queue_size = 100
    config.pop_ck_max_buffer_size = 0
    await pop(wire, queue_id=0, count=1)
    assert len(merging.broker.broker.pop.buffer) == 1
    await until(lambda: written(merging) == 2)
    buffered = merging.broker.broker.pop.buffer
    assert not buffered.ack(Ack("Topic", "G", 0, 7, 7, "broker-a", (7,)).key, (7,))
