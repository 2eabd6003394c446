"""Transactions through a whole server: halves, decisions, questions, restarts and kills."""

import json
import signal
import time

import pytest
import trio

from integration.server_process import ServerProcess
from integration.wire import Wire, pull, send_fields
from pyritemq.compat.message_id import make_message_id, parse_message_id
from pyritemq.protocol.codes import RequestCode, ResponseCode
from pyritemq.protocol.record import decode_properties, decode_record, decode_records

HALF = "RMQ_SYS_TRANS_HALF_TOPIC"
OP = "RMQ_SYS_TRANS_OP_HALF_TOPIC"
GIVEN_UP = "TRANS_CHECK_MAX_TIME_TOPIC"
UNKNOWN, COMMIT, ROLLBACK = 0, 8, 12
EAGER = {"transactionCheckInterval": "200", "transactionTimeOut": "0"}


async def prepare(wire, body, *, group="G", **properties):
    """Send a half; returns the fields that name it."""
    pairs = {"TRAN_MSG": "true", "PGROUP": group, "UNIQ_KEY": f"id-{body.decode()}"} | properties
    text = "".join(f"{name}\x01{value}\x02" for name, value in pairs.items())
    fields = send_fields("Topic", properties=text, group=group)
    fields |= {"g": int(time.time() * 1000), "f": 4}
    sent = await wire.call(RequestCode.SEND_MESSAGE_V2, fields, body)
    assert sent.code == ResponseCode.SUCCESS, sent.remark
    assert sent.ext_fields["queueId"] == "0"
    assert sent.ext_fields["transactionId"] == pairs["UNIQ_KEY"]
    return {
        "producerGroup": group,
        "tranStateTableOffset": sent.ext_fields["queueOffset"],
        "commitLogOffset": parse_message_id(sent.ext_fields["msgId"]).phy_offset,
        "msgId": pairs["UNIQ_KEY"],
    }


async def end(wire, half, decision, **fields):
    ext_fields = half | {"commitOrRollback": decision} | fields
    return await wire.call(RequestCode.END_TRANSACTION, ext_fields)


async def answer(wire, question, decision):
    """What a client makes of a question."""
    asked = question.ext_fields
    half = {name: asked[name] for name in ("tranStateTableOffset", "commitLogOffset", "msgId")}
    half["producerGroup"] = "G"
    return await end(wire, half, decision, fromTransactionCheck="true")


async def join(wire, group="G"):
    """Become a member of the producer group."""
    body = {"clientID": "c", "producerDataSet": [{"groupName": group}], "consumerDataSet": []}
    reply = await wire.call(RequestCode.HEART_BEAT, {}, json.dumps(body).encode())
    assert reply.code == ResponseCode.SUCCESS


async def question(wire):
    asked = await wire.push()
    assert asked.code == RequestCode.CHECK_TRANSACTION_STATE
    return asked


async def records(wire, topic="Topic"):
    """All that a topic holds now."""
    found = []
    while (reply := await pull(wire, topic, 0, len(found))).code == ResponseCode.SUCCESS:
        found += decode_records(bytes(reply.body))
    return found


async def bodies(wire, topic="Topic"):
    return [record.body for record in await records(wire, topic)]


async def until(look, wanted):
    """Look again and again."""
    with trio.fail_after(20):
        while (found := await look()) != wanted:
            pass  # each look takes a round trip
    return found


@pytest.fixture
async def wire(server):
    return await server.connect()


async def test_a_half_is_seen_when_it_is_committed_and_not_before(wire):
    half = await prepare(wire, b"m", TAGS="A")
    assert await records(wire) == []
    assert (await end(wire, half, COMMIT)).code == ResponseCode.SUCCESS
    [record] = await records(wire)
    properties = decode_properties(record.properties)
    assert record.body == b"m"
    assert record.sys_flag & 12 == COMMIT
    assert record.prepared_transaction_offset == half["commitLogOffset"]
    assert (properties["UNIQ_KEY"], properties["PGROUP"]) == ("id-m", "G")
    assert (await pull(wire, "Topic", tags="A")).code == ResponseCode.SUCCESS
    assert (await pull(wire, "Topic", tags="B")).code != ResponseCode.SUCCESS


async def test_a_commit_wakes_a_waiting_consumer(server, wire):
    consumer = await server.connect()
    await end(wire, await prepare(wire, b"first"), COMMIT)
    half = await prepare(wire, b"second")
    async with trio.open_nursery() as nursery:

        async def consume():
            reply = await pull(consumer, "Topic", 0, 1, wait_ms=15_000)
            assert decode_record(bytes(reply.body)).body == b"second"

        nursery.start_soon(consume)
        while not server.broker.broker.long_polling.anybody_waits:
            await records(wire)  # a round trip
        await end(wire, half, COMMIT)


async def test_a_rolled_back_half_is_never_seen(wire):
    half = await prepare(wire, b"m")
    assert (await end(wire, half, ROLLBACK)).code == ResponseCode.SUCCESS
    await end(wire, await prepare(wire, b"next"), COMMIT)
    assert await bodies(wire) == [b"next"]


async def test_the_first_decision_stands_until_it_is_noted(wire):
    await end(wire, await prepare(wire, b"first"), ROLLBACK)  # noted at once; the next ones wait
    kept, dropped = await prepare(wire, b"kept"), await prepare(wire, b"dropped")
    for half, decision in ((kept, COMMIT), (kept, COMMIT), (dropped, ROLLBACK), (dropped, COMMIT)):
        assert (await end(wire, half, decision)).code == ResponseCode.SUCCESS
    assert await bodies(wire) == [b"kept"]


async def test_an_undecided_producer_gets_no_reply(wire):
    half = await prepare(wire, b"m")
    fields = half | {"commitOrRollback": UNKNOWN}
    opaque = await wire.ask(RequestCode.END_TRANSACTION, fields)
    assert (await end(wire, half, COMMIT)).opaque != opaque
    assert await bodies(wire) == [b"m"]


@pytest.mark.parametrize(
    ("wrong", "remark"),
    [
        ({"commitLogOffset": 1 << 40}, "Find prepared transaction message failed"),
        ({"producerGroup": "H"}, "The producer group wrong"),
        ({"tranStateTableOffset": 7}, "The transaction state table offset wrong"),
        ({"commitOrRollback": 4}, "commitOrRollback field wrong"),
    ],
)
async def test_a_decision_about_something_else_is_refused(wire, wrong, remark):
    half = await prepare(wire, b"m")
    for decision in (COMMIT, ROLLBACK):
        reply = await end(wire, half, decision, **wrong)
        assert (reply.code, reply.remark) == (ResponseCode.SYSTEM_ERROR, remark)
    assert await records(wire) == []


async def test_an_ordinary_message_cannot_be_committed(wire):
    fields = send_fields("Topic", properties="PGROUP\x01G\x02")
    sent = await wire.call(RequestCode.SEND_MESSAGE_V2, fields, b"m")
    phy_offset = parse_message_id(sent.ext_fields["msgId"]).phy_offset
    half = {"producerGroup": "G", "tranStateTableOffset": 0, "msgId": "m"}
    reply = await end(wire, half | {"commitLogOffset": phy_offset}, COMMIT)
    assert reply.code == ResponseCode.SYSTEM_ERROR
    assert await bodies(wire) == [b"m"]


async def test_after_its_immunity_only_the_answer_to_a_question_counts(start_server, stop_server):
    server = await start_server(transactionTimeOut="0")
    wire = await server.connect()
    half = await prepare(wire, b"m", CHECK_IMMUNITY_TIME_IN_SECONDS="0")
    await trio.sleep(0.01)
    for decision in (COMMIT, ROLLBACK):
        reply = await end(wire, half, decision)
        assert (reply.code, reply.remark) == (ResponseCode.ILLEGAL_OPERATION, None)
    assert await records(wire) == []
    reply = await end(wire, half, COMMIT, fromTransactionCheck="true")
    assert reply.code == ResponseCode.SUCCESS
    assert await bodies(wire) == [b"m"]
    await stop_server(server)


async def test_a_delay_begins_with_the_commit(start_server, stop_server):
    server = await start_server(messageDelayLevel="1s")
    wire = await server.connect()
    half = await prepare(wire, b"m", DELAY="1")
    await end(wire, half, COMMIT)
    assert await records(wire) == []
    await until(lambda: bodies(wire), [b"m"])
    [[waiting], [record]] = await records(wire, "SCHEDULE_TOPIC_XXXX"), await records(wire)
    assert record.store_timestamp - waiting.store_timestamp >= 1000
    await stop_server(server)


async def test_a_timer_begins_with_the_commit(wire):
    half = await prepare(wire, b"m", TIMER_DELAY_SEC="1")
    assert (await end(wire, half, COMMIT)).code == ResponseCode.SUCCESS
    assert await records(wire) == []
    await until(lambda: bodies(wire), [b"m"])
    [[waiting], [record]] = await records(wire, "rmq_sys_wheel_timer"), await records(wire)
    assert waiting.store_timestamp < record.store_timestamp


async def test_the_producer_is_asked_and_its_answer_counts(start_server, stop_server):
    server = await start_server(**EAGER)
    wire, other = await server.connect(), await server.connect()
    await prepare(other, b"kept")
    await prepare(other, b"dropped")
    await other.aclose()  # whoever sent is gone; another of its group is asked
    await join(wire)
    answered = set()
    while answered != {b"kept", b"dropped"}:
        asked = await question(wire)
        shown = decode_record(asked.body)
        assert shown.topic == "Topic"
        assert asked.ext_fields["transactionId"] == f"id-{shown.body.decode()}"
        await answer(wire, asked, COMMIT if shown.body == b"kept" else ROLLBACK)
        answered.add(shown.body)
    found = await bodies(wire)
    assert set(found) == {b"kept"}
    await stop_server(server)


async def test_an_undecided_half_is_given_up_and_asked_about_again_when_resumed(
    start_server, stop_server
):
    server = await start_server(transactionCheckMax="2", **EAGER)
    wire = await server.connect()
    await join(wire)
    await prepare(wire, b"m")
    await until(lambda: bodies(wire, GIVEN_UP), [b"m"])
    assert len(wire.pushed) == 2
    wire.pushed.clear()
    [record] = await records(wire, GIVEN_UP)
    msg_id = make_message_id(record.store_host, record.phy_offset)
    fields = {"topic": GIVEN_UP, "msgId": msg_id}
    reply = await wire.call(RequestCode.RESUME_CHECK_HALF_MESSAGE, fields)
    assert reply.code == ResponseCode.SUCCESS
    assert (await answer(wire, await question(wire), COMMIT)).code == ResponseCode.SUCCESS
    assert await bodies(wire) == [b"m"]
    await stop_server(server)


@pytest.mark.parametrize("msg_id", ["", "nonsense", make_message_id(b"\0" * 8, 1 << 40)])
async def test_what_is_not_there_cannot_be_resumed(wire, msg_id):
    reply = await wire.call(RequestCode.RESUME_CHECK_HALF_MESSAGE, {"msgId": msg_id})
    assert reply.code == ResponseCode.SYSTEM_ERROR
    assert reply.remark == (
        "Exception was thrown when putting message back to RMQ_SYS_TRANS_HALF_TOPIC."
    )


async def test_a_restart_keeps_decisions_and_open_halves(start_server, stop_server):
    server = await start_server()
    wire = await server.connect()
    halves = [await prepare(wire, b"m%d" % index) for index in range(9)]
    for index, half in enumerate(halves):
        if index % 3:
            await end(wire, half, COMMIT if index % 3 == 1 else ROLLBACK)
    await stop_server(server)
    server = await start_server(**EAGER)
    wire = await server.connect()
    ops = await records(wire, OP)
    noted = "".join(op.body.decode() for op in ops).rstrip(",").split(",")
    assert sorted(noted) == ["1", "2", "4", "5", "7", "8"]
    await join(wire)
    asked = {decode_record((await question(wire)).body).body for _ in range(3)}
    assert asked == {b"m0", b"m3", b"m6"}
    assert sorted(await bodies(wire)) == [b"m1", b"m4", b"m7"]
    await stop_server(server)


async def test_halves_are_refused_where_they_are_not_wanted(start_server, stop_server):
    server = await start_server(rejectTransactionMessage="true")
    wire = await server.connect()
    fields = send_fields("Topic", properties="TRAN_MSG\x01true\x02")
    reply = await wire.call(RequestCode.SEND_MESSAGE_V2, fields, b"m")
    assert reply.code == ResponseCode.NO_PERMISSION
    await stop_server(server)


@pytest.mark.slow
async def test_kill_9_loses_no_half_and_no_commit(tmp_path):
    """Of 200 halves 50 are committed, 50 rolled back and 100 open when the server is killed.

    Decisions that were not noted are asked about again: the producer repeats itself.
    """
    count = 200
    decision_of = {b"m%d" % index: COMMIT if index % 2 else ROLLBACK for index in range(count)}
    committed = {body for body, decision in decision_of.items() if decision == COMMIT}
    decided = list(decision_of.values())[: count // 2]
    with ServerProcess(tmp_path, {}) as server:
        async with (await Wire.connect(server.address)).stream as stream:
            wire = Wire(stream)
            halves = [await prepare(wire, body) for body in decision_of]
            for half, decision in zip(halves, decided, strict=False):
                assert (await end(wire, half, decision)).code == ResponseCode.SUCCESS
            server.end(signal.SIGKILL)
    properties = {"transactionCheckInterval": "3000", "transactionTimeOut": "0"}
    with ServerProcess(tmp_path, properties) as server:
        async with (await Wire.connect(server.address)).stream as stream:
            wire = Wire(stream)
            await join(wire)
            asked = await question(wire)
            while asked is not None:  # one round asks about all that is open
                await answer(wire, asked, decision_of[decode_record(asked.body).body])
                asked = None
                with trio.move_on_after(1):
                    asked = await question(wire)
            found = await bodies(wire)
        assert server.end(signal.SIGTERM) == 0
    assert set(found) == committed
    assert len(found) <= count // 2 + count // 4, "only what was committed before comes twice"
    print(f"transactions: {len(found) - len(committed)} of {len(committed)} came twice")
