"""POP in order, batch acks, notifications, peeks, assignments and request modes, over the wire."""

import base64
import json

import pytest
import trio

from integration.popwire import ack, change_invisible, pop, pop_fields, pop_reply, popped_of
from integration.wire import send
from pyritemq.protocol.codes import RequestCode, ResponseCode
from pyritemq.protocol.record import decode_records

ORDER = {"order": "true", "queue_id": 0, "count": 2}


@pytest.fixture
async def wire(server):
    return await server.connect()


async def bodies(wire, **options):
    return [message.body for message in await pop(wire, **(ORDER | options))]


async def send_all(wire, *bodies):
    for body in bodies:
        await send(wire, "Topic", body)


async def test_a_queue_popped_in_order_is_blocked_until_everything_is_acked(server, wire):
    await send_all(wire, b"a", b"b", b"c")
    reply = await pop_reply(wire, **ORDER)
    assert reply.ext_fields["reviveQid"] == "999"
    assert reply.ext_fields["orderCountInfo"] == "0 0 0"
    first, second = popped_of(reply)
    assert await bodies(wire) == []
    assert (await ack(wire, second)).code == ResponseCode.SUCCESS
    assert await bodies(wire) == []
    assert server.broker.broker.offsets.query("G", "Topic", 0) == 0
    assert (await ack(wire, first)).code == ResponseCode.SUCCESS
    assert server.broker.broker.offsets.query("G", "Topic", 0) == 2
    assert await bodies(wire) == [b"c"]
    illegal = first.fields | {"offset": 3, "extraInfo": first.handle}
    assert (await wire.call(RequestCode.ACK_MESSAGE, illegal)).code == ResponseCode.SUCCESS


async def test_what_is_not_acked_is_popped_again_in_order_and_counted(wire):
    await send_all(wire, b"a", b"b")
    assert await bodies(wire, invisible_ms=1) == [b"a", b"b"]
    await trio.sleep(0.01)  # the invisible time itself
    reply = await pop_reply(wire, **ORDER, attemptId="x")
    assert reply.ext_fields["orderCountInfo"] == "0 qo0%0 1;0 qo0%1 1;0 0 1"
    # The same attempt again: its reply was lost.
    again = await pop_reply(wire, **ORDER, attemptId="x")
    assert [message.body for message in popped_of(again)] == [b"a", b"b"]
    assert again.ext_fields["orderCountInfo"] == "0 qo0%0 1;0 qo0%1 1;0 0 1"


async def test_an_ordered_message_can_be_put_off_and_its_consumer_waits_for_it(wire):
    await send_all(wire, b"a", b"b")
    [message] = await pop(wire, **(ORDER | {"count": 1}))
    reply = await change_invisible(wire, message, 200)
    assert reply.code == ResponseCode.SUCCESS
    assert reply.ext_fields["popTime"] == message.handle.split(" ")[1]
    assert await bodies(wire) == []
    assert await bodies(wire, pollTime=10_000) == [b"a", b"b"]


async def test_the_last_ack_wakes_who_waits_for_the_queue(server, wire):
    await send_all(wire, b"a", b"b")
    [message] = await pop(wire, **(ORDER | {"count": 1}))
    other = await server.connect()
    opaque = await other.ask(RequestCode.POP_MESSAGE, pop_fields(**ORDER, pollTime=15_000))
    with trio.fail_after(20):
        while not server.broker.broker.pop.long_polling.count:
            await pop(wire, **ORDER)  # a round trip
    await ack(wire, message)
    assert [m.body for m in popped_of(await other.reply(opaque))] == [b"b"]


async def test_blocks_survive_a_restart(start_server, stop_server):
    server = await start_server()
    wire = await server.connect()
    await send_all(wire, b"a", b"b")
    [message] = await pop(wire, **(ORDER | {"count": 1}))
    await stop_server(server)
    server = await start_server()
    wire = await server.connect()
    assert await bodies(wire) == []
    await ack(wire, message)
    assert await bodies(wire) == [b"b"]
    await stop_server(server)


async def test_a_batch_ack_acks_what_its_bits_say(server, wire):
    await send_all(wire, b"a", b"b", b"c")
    popped = await pop(wire, queue_id=0)
    start, pop_time, invisible_time, revive_queue_id = popped[0].handle.split(" ")[:4]
    item = {
        "c": "G",
        "t": "Topic",
        "r": "0",
        "so": int(start),
        "q": 0,
        "rq": int(revive_queue_id),
        "pt": int(pop_time),
        "it": int(invisible_time),
        "b": base64.b64encode(b"\x05").decode(),
    }
    body = {"brokerName": "broker-a", "acks": [item]}

    async def batch_ack(body):
        return (await wire.call(RequestCode.BATCH_ACK_MESSAGE, {}, json.dumps(body).encode())).code

    assert await batch_ack(body) == ResponseCode.SUCCESS
    store = server.broker.broker.store
    last = store.max_offset("rmq_sys_wheel_timer", 0) - 1
    [record] = decode_records(store.get("rmq_sys_wheel_timer", 0, last, count_max=1).slices[0])
    assert json.loads(record.body)["aol"] == [0, 2]
    assert b"TAGS\x01bAck\x02" in record.properties
    assert await batch_ack({"brokerName": "broker-a"}) == ResponseCode.NO_MESSAGE
    for bad in ({"b": "?"}, {"r": "7"}, {"so": "x"}):
        assert await batch_ack({"acks": [item | bad]}) == ResponseCode.SYSTEM_ERROR
    assert await batch_ack({"acks": [item | {"rq": 77}]}) == ResponseCode.MESSAGE_ILLEGAL


async def test_a_notification_tells_of_messages_and_a_peek_shows_them(server, wire):
    await send_all(wire, b"a")
    fields = {"consumerGroup": "G", "topic": "Topic", "queueId": -1, "bornTime": 0}

    async def has_message(poll_ms=0, **more):
        asked = fields | {"pollTime": poll_ms} | more
        reply = await wire.call(RequestCode.NOTIFICATION, asked)
        assert (reply.code, reply.remark) == (ResponseCode.SUCCESS, "not set any response code")
        return reply.ext_fields["hasMsg"] == "true"

    peek = fields | {"maxMsgNums": 8}
    reply = await wire.call(RequestCode.PEEK_MESSAGE, peek)
    assert (reply.code, reply.ext_fields["restNum"]) == (ResponseCode.SUCCESS, "1")
    assert [record.body for record in decode_records(bytes(reply.body))] == [b"a"]
    assert await has_message()
    assert not await has_message(exp="B", expType="TAG")
    await pop(wire)
    assert (await wire.call(RequestCode.PEEK_MESSAGE, peek)).code == ResponseCode.PULL_NOT_FOUND
    assert not await has_message()
    other = await server.connect()
    opaque = await other.ask(RequestCode.NOTIFICATION, fields | {"pollTime": 15_000})
    with trio.fail_after(20):
        while not server.broker.broker.pop.notifications.count:
            await has_message()
    await send_all(wire, b"b")
    assert (await other.reply(opaque)).ext_fields["hasMsg"] == "true"


async def heartbeat(wire, client_id, group="G"):
    consumer = {
        "groupName": group,
        "consumeType": "CONSUME_PASSIVELY",
        "messageModel": "CLUSTERING",
        "consumeFromWhere": "CONSUME_FROM_FIRST_OFFSET",
        "subscriptionDataSet": [],
        "unitMode": False,
    }
    body = {"clientID": client_id, "producerDataSet": [], "consumerDataSet": [consumer]}
    assert (await wire.call(RequestCode.HEART_BEAT, {}, json.dumps(body).encode())).code == 0


async def assignments(wire, client_id, **more):
    question = {
        "topic": "Topic",
        "consumerGroup": "G",
        "clientId": client_id,
        "strategyName": "AVG",
        "messageModel": "CLUSTERING",
    } | more
    reply = await wire.call(RequestCode.QUERY_ASSIGNMENT, {}, json.dumps(question).encode())
    assert reply.code == ResponseCode.SUCCESS, reply.remark
    found = json.loads(bytes(reply.body)).get("messageQueueAssignments")
    return found and [(item["messageQueue"]["queueId"], item["mode"]) for item in found]


async def set_mode(wire, **fields):
    body = {"topic": "Topic", "consumerGroup": "G", "mode": "POP", "popShareQueueNum": 0} | fields
    return await wire.call(RequestCode.SET_MESSAGE_REQUEST_MODE, {}, json.dumps(body).encode())


async def test_the_broker_shares_out_queues_to_pull_or_to_pop(server, wire, tmp_path):
    await send_all(wire, b"a")
    other = await server.connect()
    await heartbeat(wire, "c1")
    await heartbeat(other, "c2")
    await trio.to_thread.run_sync(server.broker.broker.registration.settle)
    assert await assignments(wire, "c1") == [(0, "PULL"), (1, "PULL")]
    assert await assignments(wire, "c2", strategyName="AVG_BY_CIRCLE") == [(1, "PULL"), (3, "PULL")]
    assert len(await assignments(wire, "x", messageModel="BROADCASTING")) == 4
    assert await assignments(wire, "c1", strategyName="MINE") is None
    assert await assignments(wire, "c1", topic="Nowhere") is None
    assert await assignments(wire, "stranger") == []
    assert (await set_mode(wire)).code == ResponseCode.SUCCESS
    assert await assignments(wire, "c1") == [(-1, "POP")]
    saved = json.loads((tmp_path / "store/config/messageRequestMode.json").read_bytes())
    assert saved["messageRequestModeMap"]["Topic"]["G"]["mode"] == "POP"
    everything = await wire.call(RequestCode.GET_ALL_MESSAGE_REQUEST_MODE)
    assert json.loads(bytes(everything.body)) == saved
    assert (await set_mode(wire, topic="%RETRY%G")).code == ResponseCode.NO_PERMISSION
    assert (await set_mode(wire, topic="Nowhere")).code == ResponseCode.TOPIC_NOT_EXIST
    assert (await set_mode(wire, mode="PUSH")).code == ResponseCode.SYSTEM_ERROR
