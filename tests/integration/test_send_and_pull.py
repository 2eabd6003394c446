"""Bytes on a socket to a CommitLog on disk and back, through a whole server."""

import struct

import pytest
import trio

from integration.wire import pull, pull_fields, send, send_fields
from pyritemq.compat.java_hash import java_string_hash
from pyritemq.compat.message_id import parse_message_id
from pyritemq.protocol.codes import RequestCode, ResponseCode
from pyritemq.protocol.record import decode_properties, decode_record

BOTH = pytest.mark.parametrize("serialize_type", [0, 1], ids=["json", "binary"])


def records(reply):
    """All records of a pull's body."""
    body, found, position = bytes(reply.body), [], 0
    while position < len(body):
        record = decode_record(body, position)
        found.append(record)
        position += struct.unpack_from(">i", body, position)[0]
    return found


def properties(record):
    return decode_properties(bytes(record.properties))


def bodies(reply):
    return [bytes(record.body) for record in records(reply)]


@BOTH
async def test_what_is_sent_can_be_pulled(server, serialize_type):
    wire = await server.connect()
    fields = send_fields("Topic", 1, properties="TAGS\x01TagA\x02KEYS\x01k1\x02")
    sent = await wire.call(
        RequestCode.SEND_MESSAGE_V2, fields, b"hello", serialize_type=serialize_type
    )
    assert sent.code == ResponseCode.SUCCESS
    assert sent.serialize_type == serialize_type
    assert sent.ext_fields["queueId"] == "1"
    assert sent.ext_fields["queueOffset"] == "0"
    assert sent.ext_fields["MSG_REGION"] == "DefaultRegion"
    assert sent.ext_fields["TRACE_ON"] == "true"

    pulled = await wire.call(
        RequestCode.PULL_MESSAGE, pull_fields("Topic", 1, 0), serialize_type=serialize_type
    )
    assert pulled.code == ResponseCode.SUCCESS
    assert pulled.remark == "FOUND"
    assert pulled.ext_fields["nextBeginOffset"] == "1"
    assert pulled.ext_fields["maxOffset"] == "1"
    [record] = records(pulled)
    assert bytes(record.body) == b"hello"
    assert properties(record)["TAGS"] == "TagA"
    assert properties(record)["KEYS"] == "k1"
    assert properties(record)["CLUSTER"] == "DefaultCluster"
    assert properties(record)["UNIQ_KEY"] == sent.ext_fields["transactionId"]
    assert parse_message_id(sent.ext_fields["msgId"]).phy_offset == record.phy_offset


async def test_a_unique_id_of_the_client_is_kept(server):
    wire = await server.connect()
    sent = await send(wire, "Topic", b"x", properties="UNIQ_KEY\x01ABC\x02")
    assert sent.ext_fields["transactionId"] == "ABC"
    [record] = records(await pull(wire, "Topic"))
    assert properties(record)["UNIQ_KEY"] == "ABC"


async def test_properties_without_a_last_separator_stay_whole(server):
    """4.9.8 clients leave the last separator out: ours must not melt into their last property."""
    wire = await server.connect()
    await send(wire, "Topic", b"x", properties="UNIQ_KEY\x01ABC\x02TAGS\x01TagA")
    [record] = records(await pull(wire, "Topic"))
    assert properties(record)["TAGS"] == "TagA"


async def test_v1_sends_use_the_long_names(server):
    wire = await server.connect()
    fields = {
        "producerGroup": "producers",
        "topic": "Topic",
        "defaultTopic": "TBW102",
        "defaultTopicQueueNums": 4,
        "queueId": 2,
        "sysFlag": 0,
        "bornTimestamp": 1,
        "flag": 7,
        "properties": "",
    }
    sent = await wire.call(RequestCode.SEND_MESSAGE, fields, b"v1")
    assert sent.code == ResponseCode.SUCCESS
    [record] = records(await pull(wire, "Topic", 2))
    assert (bytes(record.body), record.flag) == (b"v1", 7)


async def test_a_batch_is_stored_as_single_messages_with_one_reply(server):
    wire = await server.connect()
    parts = []
    for number in range(3):
        body, pairs = b"part-%d" % number, b"TAGS\x01T%d\x02" % number
        head = struct.pack(">iiiii", 0, 0, 0, number, len(body))
        part = head + body + struct.pack(">h", len(pairs)) + pairs
        parts.append(struct.pack(">i", len(part)) + part[4:])
    fields = send_fields("Topic") | {"m": "true"}
    sent = await wire.call(RequestCode.SEND_BATCH_MESSAGE, fields, b"".join(parts))
    assert sent.code == ResponseCode.SUCCESS
    assert len(sent.ext_fields["msgId"].split(",")) == 3
    assert sent.ext_fields["queueOffset"] == "0"
    found = records(await pull(wire, "Topic"))
    assert [bytes(record.body) for record in found] == [b"part-0", b"part-1", b"part-2"]
    assert [record.flag for record in found] == [0, 1, 2]
    assert properties(found[2]) == {"TAGS": "T2"}


async def test_a_one_way_send_is_stored_and_not_answered(server):
    wire = await server.connect()
    await wire.ask(RequestCode.SEND_MESSAGE_V2, send_fields("Topic"), b"quiet", flag=2)
    answered = await send(wire, "Topic", b"loud")
    assert answered.ext_fields["queueOffset"] == "1"
    assert bodies(await pull(wire, "Topic")) == [b"quiet", b"loud"]


async def test_a_tag_filter_selects_by_hash(server):
    wire = await server.connect()
    for number in range(6):
        await send(wire, "Topic", b"%d" % number, properties=f"TAGS\x01Tag{number % 3}\x02")
    assert bodies(await pull(wire, "Topic", tags="Tag1")) == [b"1", b"4"]
    assert bodies(await pull(wire, "Topic", tags="Tag0 || Tag2")) == [b"0", b"2", b"3", b"5"]
    nothing = await pull(wire, "Topic", tags="TagX")
    assert nothing.code == ResponseCode.PULL_RETRY_IMMEDIATELY
    assert nothing.ext_fields["nextBeginOffset"] == "6"
    assert java_string_hash("Tag1") != java_string_hash("Tag2")


async def test_an_arrival_wakes_a_waiting_pull(server):
    reader = await server.connect()
    writer = await server.connect()
    await send(writer, "Topic", b"first")
    waiting = await reader.ask(RequestCode.PULL_MESSAGE, pull_fields("Topic", 0, 1, wait_ms=20_000))
    while not server.broker.broker.long_polling.held_count:
        await trio.lowlevel.checkpoint()
    await send(writer, "Topic", b"second")
    reply = await reader.reply(waiting)
    assert reply.code == ResponseCode.SUCCESS
    assert bodies(reply) == [b"second"]


async def test_a_pull_that_may_not_wait_is_told_at_once_that_there_is_nothing(server):
    wire = await server.connect()
    await send(wire, "Topic", b"first")
    reply = await pull(wire, "Topic", 0, 1)
    assert reply.code == ResponseCode.PULL_NOT_FOUND
    assert reply.remark == "OFFSET_OVERFLOW_ONE"


@pytest.mark.parametrize(
    ("offset", "code", "remark", "next_offset"),
    [
        (9, ResponseCode.PULL_OFFSET_MOVED, "OFFSET_OVERFLOW_BADLY", "2"),
        (-1, ResponseCode.PULL_OFFSET_MOVED, "OFFSET_TOO_SMALL", "0"),
    ],
)
async def test_a_wrong_offset_is_corrected(server, offset, code, remark, next_offset):
    wire = await server.connect()
    await send(wire, "Topic", b"1")
    await send(wire, "Topic", b"2")
    reply = await pull(wire, "Topic", 0, offset)
    assert (reply.code, reply.remark) == (code, remark)
    assert reply.ext_fields["nextBeginOffset"] == next_offset


async def test_an_unknown_topic_cannot_be_pulled(server):
    wire = await server.connect()
    reply = await pull(wire, "Nowhere")
    assert reply.code == ResponseCode.TOPIC_NOT_EXIST
    assert reply.remark.startswith("topic[Nowhere] not exist, apply first please! ")


@pytest.mark.parametrize(
    ("topic", "queue_id", "code"),
    [
        ("bad topic", 0, ResponseCode.INVALID_PARAMETER),
        ("../../etc", 0, ResponseCode.INVALID_PARAMETER),
        ("T" * 128, 0, ResponseCode.INVALID_PARAMETER),
        ("", 0, ResponseCode.INVALID_PARAMETER),
        ("Topic", 99, ResponseCode.INVALID_PARAMETER),
        ("SCHEDULE_TOPIC_XXXX", 0, ResponseCode.NO_PERMISSION),
    ],
)
async def test_a_send_that_may_not_be_is_refused_and_nothing_is_stored(
    server, topic, queue_id, code
):
    wire = await server.connect()
    reply = await send(wire, topic, b"x", queue_id)
    assert reply.code == code
    assert reply.remark
    assert server.broker.broker.store.max_phy_offset == 0


async def test_a_refused_send_does_not_fail_its_neighbours_in_the_same_read(server):
    wire = await server.connect()
    good = [await wire.ask(RequestCode.SEND_MESSAGE_V2, send_fields("Topic"), b"a")]
    bad = await wire.ask(RequestCode.SEND_MESSAGE_V2, send_fields("bad topic"), b"b")
    good.append(await wire.ask(RequestCode.SEND_MESSAGE_V2, send_fields("Topic"), b"c"))
    assert (await wire.reply(bad)).code == ResponseCode.INVALID_PARAMETER
    assert [(await wire.reply(one)).code for one in good] == [0, 0]
    assert bodies(await pull(wire, "Topic")) == [b"a", b"c"]


async def test_a_missing_field_is_named_as_java_names_it(server):
    wire = await server.connect()
    fields = send_fields("Topic")
    del fields["b"]
    reply = await wire.call(RequestCode.SEND_MESSAGE_V2, fields, b"x")
    assert reply.code == ResponseCode.SYSTEM_ERROR
    assert "the custom field <b> is null" in reply.remark


async def test_topics_are_not_made_when_that_is_switched_off(start_server, stop_server):
    server = await start_server(autoCreateTopicEnable="false")
    wire = await server.connect()
    reply = await send(wire, "Topic", b"x")
    assert reply.code == ResponseCode.TOPIC_NOT_EXIST
    await stop_server(server)


async def test_messages_topics_and_offsets_survive_a_restart(start_server, stop_server):
    server = await start_server()
    wire = await server.connect()
    for number in range(10):
        await send(wire, "Topic", b"%d" % number)
    await pull(wire, "Topic", group="g")  # the group comes into being with its first pull
    commit = {"consumerGroup": "g", "topic": "Topic", "queueId": 0, "commitOffset": 4}
    await wire.call(RequestCode.UPDATE_CONSUMER_OFFSET, commit)
    await stop_server(server)

    server = await start_server()
    wire = await server.connect()
    assert bodies(await pull(wire, "Topic")) == [b"%d" % number for number in range(10)]
    query = {"consumerGroup": "g", "topic": "Topic", "queueId": 0}
    reply = await wire.call(RequestCode.QUERY_CONSUMER_OFFSET, query)
    assert reply.ext_fields["offset"] == "4"
    again = await send(wire, "Topic", b"10")
    assert again.ext_fields["queueOffset"] == "10"
    await stop_server(server)


async def test_the_commit_log_rolls_to_its_next_file(server):
    wire = await server.connect()
    body = bytes(100_000)
    for _ in range(25):
        assert (await send(wire, "Topic", body)).code == ResponseCode.SUCCESS
    names = [
        path.name for path in sorted(server.broker.broker.store.config.commit_log_dir.iterdir())
    ]
    assert names[:2] == ["00000000000000000000", "00000000000001048576"]
    offset, count = 0, 0
    while count < 25:
        reply = await pull(wire, "Topic", 0, offset)
        found = bodies(reply)
        assert all(one == body for one in found)
        count += len(found)
        offset = int(reply.ext_fields["nextBeginOffset"])


async def test_the_vip_channel_serves_the_same_store(server):
    vip = await server.connect(f"127.0.0.1:{server.broker.config.listen_port - 2}")
    assert (await send(vip, "Topic", b"vip")).code == ResponseCode.SUCCESS
    wire = await server.connect()
    assert bodies(await pull(wire, "Topic")) == [b"vip"]
