"""POST /reset: an empty broker in the old one's place, whatever was going on."""

import json
import threading

import pytest
import trio

from integration.test_delay import count
from integration.test_transactions import COMMIT as COMMIT_HALF
from integration.test_transactions import end, prepare, until
from integration.wire import pull, pull_fields, send
from pyritemq.protocol.codes import RequestCode, ResponseCode
from pyritemq.protocol.record import decode_records
from pyritemq.server.lanes import Lane
from pyritemq.server.reset import ResetRefused

COMMIT = {"consumerGroup": "consumers", "topic": "Topic", "queueId": 0}


def reset(server):
    return server.broker.reset(look_ups=server.namesrv.server.lanes[Lane.CLIENT])


async def bodies(wire, topic="Topic"):
    reply = await pull(wire, topic)
    assert reply.code == ResponseCode.SUCCESS, reply.remark
    return [record.body for record in decode_records(bytes(reply.body))]


async def join(wire, group="consumers", topic="Topic"):
    """Be a push consumer of a topic, as its heartbeat says."""
    subscription = {"topic": topic, "subString": "*", "tagsSet": [], "codeSet": [], "subVersion": 1}
    consumer = {"groupName": group, "consumeType": "CONSUME_PASSIVELY", "unitMode": False}
    consumer |= {"messageModel": "CLUSTERING", "consumeFromWhere": "CONSUME_FROM_FIRST_OFFSET"}
    consumer["subscriptionDataSet"] = [subscription]
    beat = {"clientID": "c", "consumerDataSet": [consumer], "producerDataSet": []}
    reply = await wire.call(RequestCode.HEART_BEAT, {}, json.dumps(beat).encode())
    assert reply.code == ResponseCode.SUCCESS


async def held(server, wanted):
    async def count_held():
        await trio.sleep(0.01)
        return server.broker.broker.long_polling.held_count

    await until(count_held, wanted)


def names_in(folder):
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


async def test_everything_is_gone_and_the_next_message_is_the_first(server):
    wire = await server.connect()
    for number in range(3):
        await send(wire, "Topic", b"old %d" % number)
    await wire.call(RequestCode.UPDATE_CONSUMER_OFFSET, COMMIT | {"commitOffset": 3})
    await reset(server)
    assert (await pull(wire, "Topic", group="others")).code == ResponseCode.TOPIC_NOT_EXIST
    config = json.loads((await wire.call(RequestCode.GET_ALL_TOPIC_CONFIG)).body)
    assert "Topic" not in config["topicConfigTable"]
    assert "TBW102" in config["topicConfigTable"]
    groups = json.loads((await wire.call(RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG)).body)
    assert "consumers" not in groups["subscriptionGroupTable"]
    reply = await wire.call(RequestCode.QUERY_CONSUMER_OFFSET, COMMIT)
    assert reply.code == ResponseCode.QUERY_NOT_FOUND
    sent = await send(wire, "Topic", b"new")
    assert (sent.code, sent.ext_fields["queueOffset"]) == (ResponseCode.SUCCESS, "0")
    assert await bodies(wire) == [b"new"]


async def test_nothing_comes_back_with_a_restart(start_server, stop_server):
    server = await start_server()
    root = server.broker.broker.store.config.root
    fresh = names_in(root)
    wire = await server.connect()
    await send(wire, "Topic", b"old")
    await reset(server)
    assert names_in(root) <= fresh
    await send(wire, "Other", b"new")
    await stop_server(server)
    server = await start_server()
    wire = await server.connect()
    assert (await pull(wire, "Topic")).code == ResponseCode.TOPIC_NOT_EXIST
    assert await bodies(wire, "Other") == [b"new"]
    await stop_server(server)


async def test_routes_know_the_new_world_only(server):
    wire, names = await server.connect(), await server.connect(server.namesrv_address)

    async def route(topic):
        return await names.call(RequestCode.GET_ROUTEINFO_BY_TOPIC, {"topic": topic})

    async def is_known():
        return (await route("Topic")).code == ResponseCode.SUCCESS

    await send(wire, "Topic", b"old")
    await until(is_known, True)
    await reset(server)
    assert (await route("Topic")).code == ResponseCode.TOPIC_NOT_EXIST
    assert (await route("TBW102")).code == ResponseCode.SUCCESS
    await send(wire, "Topic", b"new")
    await until(is_known, True)


async def test_sends_and_pulls_under_way_all_get_an_answer(server, nursery):
    """None may be lost, and none may find half of the old broker and half of the new one."""
    codes = set()
    stop = trio.Event()

    async def keep_sending(number):
        wire = await server.connect()
        while not stop.is_set():
            sent = await send(wire, f"Topic{number}", b"x" * 100)
            codes.add(sent.code)
            reply = await pull(wire, f"Topic{number}", offset=int(sent.ext_fields["queueOffset"]))
            codes.add(reply.code)
        answered[number] = True

    answered = {}
    async with trio.open_nursery() as clients:
        for number in range(4):
            clients.start_soon(keep_sending, number)
        for _ in range(8):
            await trio.sleep(0.02)
            await reset(server)
        stop.set()
    assert len(answered) == 4
    # A pull may come just after the reset that its message came before.
    assert codes <= {
        ResponseCode.SUCCESS,
        ResponseCode.TOPIC_NOT_EXIST,
        ResponseCode.PULL_OFFSET_MOVED,
        ResponseCode.PULL_NOT_FOUND,
    }
    assert ResponseCode.SUCCESS in codes
    wire = await server.connect()
    await reset(server)
    assert (await send(wire, "Topic0", b"x")).ext_fields["queueOffset"] == "0"


async def test_delayed_messages_timers_and_halves_are_forgotten(start_server, stop_server):
    server = await start_server(
        messageDelayLevel="1s",
        timerPrecisionMs="100",
        transactionTimeOut="0",
        transactionCheckInterval="100",
    )
    wire = await server.connect()
    await send(wire, "Topic", b"delayed", properties="DELAY\x011\x02")
    await send(wire, "Topic", b"timed", properties="TIMER_DELAY_MS\x01800\x02")
    half = await prepare(wire, b"half")
    await reset(server)
    # Sent later with the same delays: when these are there, the others would have been as well.
    await send(wire, "Topic", b"new delayed", properties="DELAY\x011\x02")
    await send(wire, "Topic", b"new timed", properties="TIMER_DELAY_MS\x01800\x02")
    assert (await end(wire, half, COMMIT_HALF)).code == ResponseCode.SYSTEM_ERROR
    await until(lambda: count(wire, "Topic"), 2)
    assert sorted(await bodies(wire)) == [b"new delayed", b"new timed"]
    assert wire.pushed == []  # nobody was asked about the half
    await stop_server(server)


async def test_a_pull_that_waits_is_answered_by_the_new_broker(server):
    wire = await server.connect()
    await send(wire, "Topic", b"old")
    asked = await wire.ask(RequestCode.PULL_MESSAGE, pull_fields("Topic", 0, 1, wait_ms=60_000))
    await held(server, 1)
    await reset(server)
    reply = await wire.reply(asked)
    assert reply.code == ResponseCode.TOPIC_NOT_EXIST


async def test_a_consumer_stays_known_and_its_retry_topic_is_there(server):
    wire = await server.connect()
    await join(wire)
    await reset(server)
    listed = await wire.call(RequestCode.GET_CONSUMER_LIST_BY_GROUP, {"consumerGroup": "consumers"})
    assert json.loads(listed.body)["consumerIdList"] == ["c"]
    topics = json.loads((await wire.call(RequestCode.GET_ALL_TOPIC_CONFIG)).body)
    assert "%RETRY%consumers" in topics["topicConfigTable"]


async def test_a_request_that_takes_too_long_refuses_the_reset_and_changes_nothing(
    server, monkeypatch
):
    monkeypatch.setattr("pyritemq.server.reset.PAUSE_SECONDS", 0.05)
    wire, other = await server.connect(), await server.connect()
    await send(wire, "Topic", b"kept")
    entered, leave = threading.Event(), threading.Event()

    def slow(*args):
        entered.set()
        assert leave.wait(10)
        return -1

    monkeypatch.setattr(server.broker.broker.store, "offset_by_time", slow)
    fields = {"topic": "Topic", "queueId": 0, "timestamp": 0}
    asked = await other.ask(RequestCode.SEARCH_OFFSET_BY_TIMESTAMP, fields)
    assert await trio.to_thread.run_sync(entered.wait, 10)
    with pytest.raises(ResetRefused, match="has been under way"):
        await reset(server)
    leave.set()
    await other.reply(asked)
    assert await bodies(wire) == [b"kept"]
    assert server.broker.is_ready


async def test_a_send_lane_that_is_stuck_refuses_the_reset_while_nothing_has_changed(
    server, monkeypatch
):
    monkeypatch.setattr("pyritemq.server.reset.PUT_SECONDS", 0.05)
    wire = await server.connect()
    await send(wire, "Topic", b"kept")
    lane = server.broker.server.lanes[Lane.SEND]
    assert await trio.to_thread.run_sync(lambda: lane.pause(timeout_s=10))
    with pytest.raises(ResetRefused, match="send lane"):
        await reset(server)
    lane.resume()
    assert await bodies(wire) == [b"kept"]
    assert server.broker.is_ready
