"""QUERY_MESSAGE, VIEW_MESSAGE_BY_ID and the end of a topic, over the wire of a whole server."""

import pytest

from integration.wire import pull, send
from pyritemq.compat.message_id import make_message_id, parse_message_id
from pyritemq.protocol.codes import RequestCode, ResponseCode
from pyritemq.protocol.record import decode_record

NOT_FOUND = "can not find message, maybe time range not correct"


def query_fields(key, topic="Orders", count=32, begin=0, end=1 << 62, **more):
    return {
        "topic": topic,
        "key": key,
        "maxNum": count,
        "beginTimestamp": begin,
        "endTimestamp": end,
        **more,
    }


def records(body):
    found, position = [], 0
    while position < len(body):
        found.append(decode_record(body, position))
        position += found[-1].total_size
    return found


async def ask(wire, key, serialize_type=0, **options):
    fields = query_fields(key, **options)
    return await wire.call(RequestCode.QUERY_MESSAGE, fields, serialize_type=serialize_type)


def keyed(keys, unique="", tags=""):
    named = {"KEYS": keys, "UNIQ_KEY": unique, "TAGS": tags}
    return "\x02".join(f"{name}\x01{value}" for name, value in named.items() if value)


@pytest.mark.parametrize("serialize_type", [0, 1])
async def test_message_is_found_by_key_as_soon_as_it_is_acknowledged(server, serialize_type):
    wire = await server.connect()
    sent = await send(wire, "Orders", b"one", properties=keyed("k1 k2", "UNIQUE1", "TagA"))
    for key, options in (
        ("k1", {}),
        ("k2", {"indexType": "K"}),
        ("UNIQUE1", {"_UNIQUE_KEY_QUERY": "true"}),
        ("TagA", {"indexType": "T"}),
    ):
        reply = await ask(wire, key, serialize_type, **options)
        assert (reply.code, reply.remark) == (ResponseCode.SUCCESS, None)
        (record,) = records(reply.body)
        assert record.body == b"one"
        offset = parse_message_id(sent.ext_fields["msgId"]).phy_offset
        assert reply.ext_fields["indexLastUpdatePhyoffset"] == str(offset) == str(record.phy_offset)
        assert reply.ext_fields["indexLastUpdateTimestamp"] == str(record.store_timestamp)


async def test_unique_key_query_takes_its_count_from_the_configuration(start_server, stop_server):
    server = await start_server(defaultQueryMaxNum="2", maxMsgsNumBatch="3")
    wire = await server.connect()
    for number in range(5):
        await send(wire, "Orders", b"%d" % number, properties=keyed("k", "U"))
    unique = await ask(wire, "U", count=1, _UNIQUE_KEY_QUERY="true")
    assert [record.body for record in records(unique.body)] == [b"3", b"4"]
    plain = await ask(wire, "k", count=100)
    assert [record.body for record in records(plain.body)] == [b"2", b"3", b"4"]
    await stop_server(server)


async def test_unknown_key_is_answered_as_java_answers_it(server):
    wire = await server.connect()
    await send(wire, "Orders", b"one", properties=keyed("k"))
    for options in ({"key": "x"}, {"key": "k", "topic": "Other"}, {"key": "k", "end": 5}):
        reply = await ask(wire, **options)
        assert (reply.code, reply.remark) == (ResponseCode.QUERY_NOT_FOUND, NOT_FOUND)
        assert reply.ext_fields["indexLastUpdatePhyoffset"] == "0"


async def test_query_without_a_required_field_is_refused(server):
    wire = await server.connect()
    fields = query_fields("k")
    del fields["maxNum"]
    reply = await wire.call(RequestCode.QUERY_MESSAGE, fields)
    assert reply.code == ResponseCode.SYSTEM_ERROR
    assert "the custom field <maxNum> is null" in reply.remark


@pytest.mark.parametrize("count", [-(1 << 31), -1, 0, (1 << 31) - 1])
@pytest.mark.parametrize("key", ["", "k", "\x00", "k" * 20_000])
async def test_odd_arguments_of_a_query_do_no_harm(server, count, key):
    wire = await server.connect()
    await send(wire, "Orders", b"one", properties=keyed("k"))
    reply = await ask(wire, key, count=count, begin=-(1 << 63), end=(1 << 63) - 1)
    assert reply.code == (
        ResponseCode.SUCCESS if key == "k" and count > 0 else ResponseCode.QUERY_NOT_FOUND
    )


async def test_message_is_viewed_by_the_offset_in_its_id(server):
    wire = await server.connect()
    for body in (b"one", b"two"):
        sent = await send(wire, "Orders", body)
        offset = parse_message_id(sent.ext_fields["msgId"]).phy_offset
        reply = await wire.call(RequestCode.VIEW_MESSAGE_BY_ID, {"offset": offset})
        assert reply.code == ResponseCode.SUCCESS
        (record,) = records(reply.body)
        assert record.body == body
        store_host = server.broker.broker.store_host
        assert make_message_id(store_host, record.phy_offset) == sent.ext_fields["msgId"]


@pytest.mark.parametrize("offset", [-1, 1, 7, 90, 1 << 40, (1 << 63) - 1, -(1 << 63)])
async def test_offset_at_which_no_record_starts_finds_nothing(server, offset):
    wire = await server.connect()
    await send(wire, "Orders", b"x" * 500)
    reply = await wire.call(RequestCode.VIEW_MESSAGE_BY_ID, {"offset": offset})
    assert reply.code == ResponseCode.SYSTEM_ERROR
    assert reply.remark == f"can not find message by the offset, {offset}"


async def test_keys_are_found_after_a_restart(start_server, stop_server):
    server = await start_server()
    wire = await server.connect()
    await send(wire, "Orders", b"one", properties=keyed("k"))
    await stop_server(server)
    server = await start_server()
    wire = await server.connect()
    await send(wire, "Orders", b"two", properties=keyed("k"))
    reply = await ask(wire, "k")
    assert [record.body for record in records(reply.body)] == [b"one", b"two"]
    await stop_server(server)


async def test_without_an_index_nothing_is_found_by_key(start_server, stop_server):
    server = await start_server(messageIndexEnable="false")
    wire = await server.connect()
    await send(wire, "Orders", b"one", properties=keyed("k"))
    assert (await ask(wire, "k")).code == ResponseCode.QUERY_NOT_FOUND
    await stop_server(server)


async def test_topic_that_is_deleted_and_made_again_starts_at_offset_0(start_server, stop_server):
    server = await start_server()
    wire = await server.connect()
    for body in (b"old 0", b"old 1"):
        await send(wire, "Orders", body)
    deleted = await wire.call(RequestCode.DELETE_TOPIC_IN_BROKER, {"topic": "Orders"})
    assert deleted.code == ResponseCode.SUCCESS
    assert (await send(wire, "Orders", b"new")).ext_fields["queueOffset"] == "0"
    await stop_server(server)
    server = await start_server()
    wire = await server.connect()
    reply = await pull(wire, "Orders")
    assert [record.body for record in records(reply.body)] == [b"new"]
    await stop_server(server)


async def test_queues_of_unknown_topics_are_cleaned_on_request(server):
    wire = await server.connect()
    await send(wire, "Orders", b"one")
    await send(wire, "Kept", b"one")
    server.broker.broker.topics.delete("Orders")
    reply = await wire.call(RequestCode.CLEAN_UNUSED_TOPIC)
    assert reply.code == ResponseCode.SUCCESS
    assert server.broker.broker.store.topics() == {"Kept"}


async def test_message_of_a_broker_with_an_ipv6_address_is_viewed_by_its_longer_id(server):
    server.broker.broker.advertise("::1", 10911)
    wire = await server.connect()
    sent = await send(wire, "Orders", b"one")
    message_id = parse_message_id(sent.ext_fields["msgId"])
    assert (str(message_id.ip), message_id.port) == ("::1", 10911)
    reply = await wire.call(RequestCode.VIEW_MESSAGE_BY_ID, {"offset": message_id.phy_offset})
    (record,) = records(reply.body)
    assert record.body == b"one"
