"""Consumer groups as clients meet them: heartbeats, lists, notices, locks."""

import json

import trio

from integration.wire import pull_fields, send
from pyritemq.protocol.codes import RequestCode, ResponseCode

WAIT_SECONDS = 20


def heartbeat(client_id, group="G", topic="Topic", tags=()):
    subscription = {
        "topic": topic,
        "subString": " || ".join(tags) or "*",
        "tagsSet": list(tags),
        "codeSet": [],
        "subVersion": 1,
        "expressionType": "TAG",
    }
    consumer = {
        "groupName": group,
        "consumeType": "CONSUME_PASSIVELY",
        "messageModel": "CLUSTERING",
        "consumeFromWhere": "CONSUME_FROM_LAST_OFFSET",
        "subscriptionDataSet": [subscription],
        "unitMode": False,
    }
    return json.dumps(
        {"clientID": client_id, "consumerDataSet": [consumer], "producerDataSet": []}
    ).encode()


async def consumer_ids(wire, group="G"):
    reply = await wire.call(RequestCode.GET_CONSUMER_LIST_BY_GROUP, {"consumerGroup": group})
    if reply.code != ResponseCode.SUCCESS:
        return []
    return sorted(json.loads(bytes(reply.body))["consumerIdList"])


async def notice(wire):
    """The next notice that the group has changed; others are let by."""
    command = await wire.push()
    assert command.code == RequestCode.NOTIFY_CONSUMER_IDS_CHANGED
    return command.ext_fields["consumerGroup"]


async def test_a_group_is_told_at_once_when_a_member_joins_leaves_or_dies(server):
    first, second, third = [await server.connect() for _ in range(3)]
    await first.call(RequestCode.HEART_BEAT, {}, heartbeat("c1"))
    first.pushed.clear()
    await second.call(RequestCode.HEART_BEAT, {}, heartbeat("c2"))
    assert await notice(first) == "G"
    await third.call(RequestCode.HEART_BEAT, {}, heartbeat("c3"))
    assert await notice(first) == "G"
    assert await consumer_ids(first) == ["c1", "c2", "c3"]
    await second.call(RequestCode.UNREGISTER_CLIENT, {"clientID": "c2", "consumerGroup": "G"})
    assert await notice(first) == "G"
    await third.aclose()
    assert await notice(first) == "G"
    with trio.fail_after(WAIT_SECONDS):
        while await consumer_ids(first) != ["c1"]:
            pass  # each question takes a round trip


async def test_a_heartbeat_makes_the_retry_topic_of_a_known_group(server):
    wire = await server.connect()
    reply = await wire.call(RequestCode.HEART_BEAT, {}, heartbeat("c1"))
    assert reply.code == ResponseCode.SUCCESS
    retry = server.broker.broker.topics.get("%RETRY%G")
    assert (retry.read_queue_nums, retry.write_queue_nums) == (1, 1)


async def test_a_pull_uses_the_subscription_of_its_groups_heartbeat(server):
    wire = await server.connect()
    await send(wire, "Topic", b"x")
    fields = pull_fields("Topic", 0, 0, group="G") | {"sysFlag": 0}
    stranger = await wire.call(RequestCode.PULL_MESSAGE, fields)
    assert stranger.code == ResponseCode.SUBSCRIPTION_NOT_EXIST
    await wire.call(RequestCode.HEART_BEAT, {}, heartbeat("c1"))
    assert (await wire.call(RequestCode.PULL_MESSAGE, fields)).code == ResponseCode.SUCCESS
    newer = await wire.call(RequestCode.PULL_MESSAGE, fields | {"subVersion": 2})
    assert newer.code == ResponseCode.SUBSCRIPTION_NOT_LATEST


async def test_a_queue_is_locked_by_one_client_at_a_time(server):
    wire = await server.connect()
    queue = {"brokerName": "broker-a", "queueId": 0, "topic": "Topic"}

    async def lock(client_id):
        body = {"clientId": client_id, "consumerGroup": "G", "mqSet": [queue]}
        reply = await wire.call(RequestCode.LOCK_BATCH_MQ, {}, json.dumps(body).encode())
        return json.loads(bytes(reply.body))["lockOKMQSet"]

    assert await lock("c1") == [queue]
    assert await lock("c2") == []
    body = {"clientId": "c1", "consumerGroup": "G", "mqSet": [queue]}
    await wire.call(RequestCode.UNLOCK_BATCH_MQ, {}, json.dumps(body).encode())
    assert await lock("c2") == [queue]
