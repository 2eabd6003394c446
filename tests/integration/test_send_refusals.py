"""Sends that are refused, with Java's code and remark, and the odd ones that are taken."""

import threading
import time

import pytest
import trio

from integration.wire import send, send_fields
from pyritemq.compat.register_body import TopicConfig
from pyritemq.protocol.codes import RequestCode, ResponseCode
from pyritemq.protocol.record import BatchEntry, encode_batch

ILLEGAL = (
    "the message is illegal, maybe msg body or properties length not matched. msg body length "
    "limit 4194304B, msg properties length limit 32KB."
)


@pytest.fixture
async def wire(server):
    return await server.connect()


async def send_with(wire, topic="Topic", body=b"x", code=RequestCode.SEND_MESSAGE_V2, **letters):
    return await wire.call(code, send_fields(topic) | letters, body)


async def test_a_message_without_a_body(wire):
    reply = await send(wire, "Topic", b"")
    assert (reply.code, reply.remark) == (ResponseCode.SYSTEM_ERROR, "the message body is empty")


@pytest.mark.parametrize("topic", ["TRANS_CHECK_MAX_TIME_TOPIC", "SELF_TEST_TOPIC"])
async def test_a_topic_of_the_broker_whether_it_exists_or_not(wire, topic):
    reply = await send(wire, topic, b"x")
    assert reply.code == ResponseCode.NO_PERMISSION
    assert reply.remark == f"Sending message to topic[{topic}] is forbidden."
    assert reply.ext_fields == {"MSG_REGION": "DefaultRegion", "TRACE_ON": "true"}


@pytest.mark.parametrize("letters", [{"i": "INNER_NUM\x013\x02"}, {"f": 128}])
async def test_an_inner_batch(wire, letters):
    reply = await send_with(wire, **letters)
    assert (reply.code, reply.remark) == (ResponseCode.MESSAGE_ILLEGAL, ILLEGAL)


async def test_a_dead_letter_topic_with_a_name_too_long_for_a_record(wire):
    for _ in range(2):  # when it is made and when it is there
        reply = await send(wire, "%DLQ%" + "t" * 125, b"x")
        assert (reply.code, reply.remark) == (ResponseCode.MESSAGE_ILLEGAL, ILLEGAL)
    assert (await send(wire, "%RETRY%" + "t" * 120, b"x")).code == ResponseCode.SUCCESS


@pytest.mark.parametrize("letters", [{"i": "DELAY\x011\x02"}, {"f": 4}])
async def test_a_batch_that_is_delayed_or_part_of_a_transaction(wire, letters):
    body = encode_batch([BatchEntry(0, b"x", b"")])
    reply = await send_with(wire, "T", body, RequestCode.SEND_BATCH_MESSAGE, m="true", **letters)
    assert (reply.code, reply.remark) == (ResponseCode.MESSAGE_ILLEGAL, ILLEGAL)


async def test_a_transaction_where_they_are_forbidden(start_server, stop_server):
    server = await start_server(rejectTransactionMessage="true")
    wire = await server.connect()
    reply = await send_with(wire, i="TRAN_MSG\x01true\x02", f=4)
    assert reply.code == ResponseCode.NO_PERMISSION
    assert reply.remark == "the broker[127.0.0.1] sending transaction message is forbidden"
    assert (await send_with(wire, i="TRAN_MSG\x01false\x02")).code == ResponseCode.SUCCESS
    await stop_server(server)


async def test_a_message_without_key_for_a_compaction_topic(server, wire):
    topic = TopicConfig("Compacted", attributes={"+cleanup.policy": "COMPACTION"})
    server.broker.broker.topics.update(topic)
    reply = await send(wire, "Compacted", b"x")
    assert reply.code == ResponseCode.MESSAGE_ILLEGAL
    assert reply.remark == "Required message key is missing"
    reply = await send(wire, "Compacted", b"x", properties="KEYS\x01k\x02")
    assert reply.code == ResponseCode.SUCCESS


async def test_a_broker_that_does_not_accept_sends_yet(start_server, stop_server):
    opens_at = time.time_ns() // 1_000_000 + 3_600_000
    server = await start_server(startAcceptSendRequestTimeStamp=str(opens_at))
    wire = await server.connect()
    reply = await send(wire, "Topic", b"x")
    assert reply.code == ResponseCode.SYSTEM_ERROR
    assert reply.remark.startswith("broker unable to service, until 20")
    assert reply.remark.endswith(f",{opens_at % 1000:03d}")
    await stop_server(server)


async def test_a_send_that_waited_too_long(start_server, stop_server):
    server = await start_server(waitTimeMillsInSendQueue="0")
    wire = await server.connect()
    reply = await send(wire, "Topic", b"x")
    assert reply.code == ResponseCode.SYSTEM_BUSY
    assert reply.remark.startswith(
        "[TIMEOUT_CLEAN_QUEUE]broker busy, start flow control for a while, period in queue: "
    )
    assert reply.remark.endswith("ms, size of queue: 0")
    await stop_server(server)


async def test_sends_behind_an_append_that_hangs_are_refused_while_it_hangs(
    start_server, stop_server, monkeypatch
):
    """In Java's two remarks: what waited before counts as cleaned, what comes then as rejected."""
    server = await start_server(osPageCacheBusyTimeOutMills="300")
    store = server.broker.broker.store
    hangs, goes_on, put = threading.Event(), threading.Event(), store.put_batch

    def hang(messages):
        hangs.set()
        goes_on.wait(20)
        return put(messages)

    monkeypatch.setattr(store, "put_batch", hang)
    wires = [await server.connect() for _ in range(3)]
    first = await wires[0].ask(RequestCode.SEND_MESSAGE_V2, send_fields("Topic"), b"first")
    await trio.to_thread.run_sync(hangs.wait)
    waiting = await wires[1].ask(RequestCode.SEND_MESSAGE_V2, send_fields("Topic"), b"second")
    reply = await wires[1].reply(waiting)
    assert reply.code == ResponseCode.SYSTEM_BUSY
    cleaned = "[PCBUSY_CLEAN_QUEUE]broker busy, start flow control for a while, period in queue: "
    assert reply.remark.startswith(cleaned)
    assert reply.remark.endswith("ms, size of queue: 0")
    reply = await send(wires[2], "Topic", b"third")
    assert reply.code == ResponseCode.SYSTEM_BUSY
    assert reply.remark == "[REJECTREQUEST]system busy, start flow control for a while"
    goes_on.set()
    assert (await wires[0].reply(first)).code == ResponseCode.SUCCESS
    assert (await send(wires[2], "Topic", b"fourth")).code == ResponseCode.SUCCESS
    assert store.max_offset("Topic", 0) == 2
    await stop_server(server)


async def test_sends_that_wait_too_long_behind_an_append_are_refused_before_it_ends(
    start_server, stop_server, monkeypatch
):
    server = await start_server(osPageCacheBusyTimeOutMills="60000")
    store = server.broker.broker.store
    hangs, goes_on, put = threading.Event(), threading.Event(), store.put_batch

    def hang(messages):
        hangs.set()
        goes_on.wait(20)
        return put(messages)

    wires = [await server.connect() for _ in range(2)]
    monkeypatch.setattr(store, "put_batch", hang)
    first = await wires[0].ask(RequestCode.SEND_MESSAGE_V2, send_fields("Topic"), b"first")
    await trio.to_thread.run_sync(hangs.wait)
    server.broker.broker.config.wait_time_mills_in_send_queue = 100
    reply = await send(wires[1], "Topic", b"second")
    assert reply.code == ResponseCode.SYSTEM_BUSY
    assert reply.remark.startswith("[TIMEOUT_CLEAN_QUEUE]broker busy, start flow control")
    goes_on.set()
    assert (await wires[0].reply(first)).code == ResponseCode.SUCCESS
    await stop_server(server)


async def test_waiting_is_allowed_where_fast_failure_is_off(start_server, stop_server):
    server = await start_server(waitTimeMillsInSendQueue="0", brokerFastFailureEnable="false")
    wire = await server.connect()
    assert (await send(wire, "Topic", b"x")).code == ResponseCode.SUCCESS
    await stop_server(server)


async def test_a_full_disk_with_its_numbers(server, wire, monkeypatch):
    await send(wire, "Topic", b"x")
    monkeypatch.setattr(server.broker.broker.store, "_failure", Exception("disk"))
    reply = await send(wire, "Topic", b"x")
    monkeypatch.undo()
    assert reply.code == ResponseCode.SERVICE_NOT_AVAILABLE
    assert "the broker's disk is full [CL: " in reply.remark
    assert "INDEX: -1.00], messages are put to the slave" in reply.remark


@pytest.mark.parametrize(
    ("properties", "queue_id"),
    [
        ("_SYS_MSG_PRIORITY_\x012\x02", "2"),
        ("_SYS_MSG_PRIORITY_\x019\x02", "3"),
        ("_SYS_MSG_PRIORITY_\x01x\x02", "1"),
        ("_SYS_MSG_PRIORITY_\x012\x02__SHARDINGKEY\x01s\x02", "1"),
    ],
)
async def test_a_priority_chooses_the_queue(wire, properties, queue_id):
    reply = await send(wire, "Topic", b"x", 1, properties=properties)
    assert (reply.code, reply.ext_fields["queueId"]) == (ResponseCode.SUCCESS, queue_id)
