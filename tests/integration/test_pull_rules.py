"""Who may pull, which broker they are told to ask, and what happens to readers that are slow."""

import json

import pytest

from integration.test_clients import heartbeat
from integration.wire import pull, pull_fields, send
from pyritemq.protocol.codes import RequestCode, ResponseCode
from pyritemq.protocol.record import decode_records
from pyritemq.server.broker.slow_readers import last_phy_offset


async def update_group(wire, **settings):
    body = json.dumps({"groupName": "consumers", **settings}).encode()
    reply = await wire.call(RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, {}, body)
    assert reply.code == ResponseCode.SUCCESS


async def make_topic(wire, topic, *, perm):
    fields = {
        "topic": topic,
        "defaultTopic": "TBW102",
        "readQueueNums": 1,
        "writeQueueNums": 1,
        "perm": perm,
        "topicFilterType": "SINGLE_TAG",
        "order": "false",
    }
    reply = await wire.call(RequestCode.UPDATE_AND_CREATE_TOPIC, fields)
    assert reply.code == ResponseCode.SUCCESS


async def suggested(wire):
    reply = await pull(wire, "Topic")
    assert reply.code == ResponseCode.SUCCESS
    return reply.ext_fields["suggestWhichBrokerId"]


async def test_pulls_go_to_the_master_unless_slaves_may_be_read(server):
    wire = await server.connect()
    await send(wire, "Topic", b"x")
    await update_group(wire, brokerId=3, whichBrokerWhenConsumeSlowly=7)
    assert await suggested(wire) == "0"


@pytest.mark.parametrize(("ratio", "broker_id"), [("40", "3"), ("0", "7")])
async def test_where_slaves_may_be_read_the_group_says_from_which_broker(
    start_server, stop_server, ratio, broker_id
):
    """No message counts as in memory with a ratio of 0, so that the group is told to be slow."""
    server = await start_server(slaveReadEnable="true", accessMessageInMemoryMaxRatio=ratio)
    wire = await server.connect()
    await send(wire, "Topic", b"x")
    await update_group(wire, brokerId=3, whichBrokerWhenConsumeSlowly=7)
    assert await suggested(wire) == broker_id
    await stop_server(server)


async def forbidden(wire, fields):
    reply = await wire.call(RequestCode.PULL_MESSAGE, fields)
    assert reply.code == ResponseCode.NO_PERMISSION
    assert reply.ext_fields.keys() == {"forbiddenType"}
    return int(reply.ext_fields["forbiddenType"]), reply.remark


async def test_a_reader_that_is_turned_away_hears_by_what(start_server, stop_server):
    server = await start_server()
    wire = await server.connect()
    await make_topic(wire, "Topic", perm=6)
    await make_topic(wire, "WriteOnly", perm=2)
    await wire.call(RequestCode.HEART_BEAT, {}, heartbeat("c1", group="consumers"))
    own = pull_fields("Topic", 0, 0)
    registered = own | {"sysFlag": 0, "subVersion": 0}
    assert await forbidden(wire, pull_fields("WriteOnly", 0, 0)) == (
        3,
        "the topic[WriteOnly] pulling message is forbidden",
    )
    forbid = {"group": "consumers", "topic": "Topic", "readable": "false"}
    await wire.call(RequestCode.UPDATE_AND_GET_GROUP_FORBIDDEN, forbid)
    assert await forbidden(wire, registered) == (
        5,
        "the consumer group[consumers] is forbidden for topic[Topic]",
    )
    await update_group(wire, consumeEnable=False)
    assert await forbidden(wire, own) == (2, "subscription group no permission, consumers")
    server.broker.config.broker_permission = 2
    assert await forbidden(wire, own) == (1, "the broker[127.0.0.1] pulling message is forbidden")
    await stop_server(server)


async def test_where_pull_consumers_are_rejected_only_push_consumers_and_tools_pull(
    start_server, stop_server
):
    server = await start_server(rejectPullConsumerEnable="true")
    wire = await server.connect()
    await send(wire, "Topic", b"x")
    refused = await pull(wire, "Topic")
    assert refused.code == ResponseCode.SUBSCRIPTION_NOT_EXIST
    assert refused.remark.startswith(
        "the consumer's group info not exist, or the pull consumer is rejected by server.\nSee "
    )
    assert (await pull(wire, "Topic", group="TOOLS_CONSUMER")).code == ResponseCode.SUCCESS
    await wire.call(RequestCode.HEART_BEAT, {}, heartbeat("c1", group="consumers"))
    assert (await pull(wire, "Topic")).code == ResponseCode.SUCCESS
    await stop_server(server)


async def test_a_limit_of_bytes_in_the_header_changes_nothing(server):
    """5.5.0 declares maxMsgBytes and sends it, but its broker does not look at it."""
    wire = await server.connect()
    for body in (b"x" * 1000, b"y" * 1000):
        await send(wire, "Topic", body)
    reply = await wire.call(
        RequestCode.PULL_MESSAGE, pull_fields("Topic", 0, 0) | {"maxMsgBytes": 1}
    )
    assert reply.ext_fields["nextBeginOffset"] == "2"
    assert len(reply.body) > 2000


PROTECTED = {"disableConsumeIfConsumerReadSlowly": "true", "consumerFallbehindThreshold": "1000"}


async def test_a_group_that_is_too_far_behind_may_no_longer_consume(start_server, stop_server):
    server = await start_server(**PROTECTED)
    protect = server.broker.broker.slow_readers.protect
    wire = await server.connect()
    for _ in range(4):
        await send(wire, "Topic", b"x" * 500)
    for group, offset in (("consumers", 0), ("quick", 3)):
        reply = await pull(wire, "Topic", 0, offset, count=1, group=group)
        assert reply.code == ResponseCode.SUCCESS
    protect()
    assert (await pull(wire, "Topic", 0, 4, group="quick")).code == ResponseCode.PULL_NOT_FOUND
    assert await forbidden(wire, pull_fields("Topic", 0, 1)) == (
        2,
        "subscription group no permission, consumers",
    )
    await update_group(wire, consumeEnable=True)
    assert (await pull(wire, "Topic", 0, 3)).code == ResponseCode.SUCCESS
    protect()
    assert (await pull(wire, "Topic", 0, 4)).code == ResponseCode.PULL_NOT_FOUND
    await stop_server(server)


async def test_without_the_setting_a_group_may_be_as_slow_as_it_likes(start_server, stop_server):
    server = await start_server(consumerFallbehindThreshold="1")
    wire = await server.connect()
    for _ in range(2):
        await send(wire, "Topic", b"x" * 500)
    await pull(wire, "Topic", count=1)
    server.broker.broker.slow_readers.protect()
    assert (await pull(wire, "Topic")).code == ResponseCode.SUCCESS
    await stop_server(server)


async def test_the_last_of_several_records_is_the_one_that_counts(server):
    wire = await server.connect()
    replies = [await send(wire, "Topic", b"x" * size) for size in (10, 200, 30)]
    reply = await pull(wire, "Topic")
    last = int(replies[-1].ext_fields["msgId"][16:], 16)
    assert last_phy_offset(memoryview(reply.body)) == last


@pytest.mark.parametrize(
    ("settings", "counts"),
    [
        ({}, (32, 2)),
        ({"accessMessageInMemoryMaxRatio": "0"}, (8, 1)),  # nothing counts as in memory
        ({"maxTransferCountOnMessageInMemory": "5"}, (5, 2)),
        ({"maxTransferBytesOnMessageInMemory": "150000"}, (32, 1)),
        (
            {"accessMessageInMemoryMaxRatio": "0", "maxTransferCountOnMessageInDisk": "3"},
            (3, 1),
        ),
        (
            {"accessMessageInMemoryMaxRatio": "0", "maxTransferBytesOnMessageInDisk": "300000"},
            (8, 2),
        ),
    ],
)
async def test_one_pull_transfers_what_the_settings_allow_and_at_least_one_message(
    start_server, stop_server, settings, counts
):
    """Asked for more: 256 KiB and 32 messages from memory, 64 KiB and 8 from disk, by default."""
    server = await start_server(**settings)
    wire = await server.connect()
    for _ in range(40):
        await send(wire, "Small", b"x")
    for _ in range(4):
        await send(wire, "Large", bytes(100_000))
    for topic, count in zip(("Small", "Large"), counts, strict=True):
        reply = await pull(wire, topic, count=64)
        assert reply.code == ResponseCode.SUCCESS
        assert len(decode_records(bytes(reply.body))) == count
        assert reply.ext_fields["nextBeginOffset"] == str(count)
    await stop_server(server)


async def test_a_message_of_four_mebibytes_is_pulled_whole_from_memory_and_from_disk(
    start_server, stop_server
):
    for ratio in ("40", "0"):
        server = await start_server(
            accessMessageInMemoryMaxRatio=ratio, mappedFileSizeCommitLog=str(16 << 20)
        )
        wire = await server.connect()
        body = bytes(range(256)) * (4 << 12)
        assert (await send(wire, f"Topic{ratio}", body)).code == ResponseCode.SUCCESS
        reply = await pull(wire, f"Topic{ratio}")
        [record] = decode_records(bytes(reply.body))
        assert record.body == body
        await stop_server(server)
