"""Tools against a whole server: what they change is true at once for clients and name server."""

from pathlib import Path

import pytest
import trio

from integration.wire import pull, send
from pyritemq.compat import fastjson
from pyritemq.compat.message_id import parse_message_id
from pyritemq.compat.properties_file import parse_properties
from pyritemq.protocol.codes import RequestCode, ResponseCode
from pyritemq.protocol.record import decode_records

# What a 5.5.0 broker printed for `mqadmin brokerStatus`, 2026-11-18, but for keys with a path.
JAVA_RUNTIME_KEYS = (Path(__file__).parent / "java_runtime_keys.txt").read_text().split()


def body_of(reply):
    assert reply.code == ResponseCode.SUCCESS, reply.remark
    return fastjson.loads(reply.body)


async def route(server, topic):
    wire = await server.connect(server.namesrv_address)
    return body_of(await wire.call(RequestCode.GET_ROUTEINFO_BY_TOPIC, {"topic": topic}))


async def update_config(wire, text):
    return await wire.call(RequestCode.UPDATE_BROKER_CONFIG, body=text.encode())


async def test_runtime_info_has_all_of_javas_keys(server):
    wire = await server.connect()
    await send(wire, "Topic", b"hello")
    await pull(wire, "Topic")
    table = body_of(await wire.call(RequestCode.GET_BROKER_RUNTIME_INFO))["table"]
    assert set(JAVA_RUNTIME_KEYS) - set(table) == set()
    assert all(isinstance(value, str) for value in table.values())
    assert table["brokerVersionDesc"] == "V5_5_0"
    assert (table["msgPutTotalTodayNow"], table["msgGetTotalTodayNow"]) == ("1", "1")
    assert table["putMessageTimesTotal"] == "1"
    assert table["commitLogMaxOffset"] == table["putMessageSizeTotal"]
    assert int(table["earliestMessageTimeStamp"]) >= int(table["bootTimestamp"])


async def test_an_empty_broker_has_runtime_info_too(server):
    wire = await server.connect()
    table = body_of(await wire.call(RequestCode.GET_BROKER_RUNTIME_INFO))["table"]
    assert (table["earliestMessageTimeStamp"], table["putMessageAverageSize"]) == ("-1", "0.0")


async def test_statistics_of_a_topic_appear_after_a_sample(server):
    wire = await server.connect()
    await send(wire, "Topic", b"hello")
    fields = {"statsName": "TOPIC_PUT_NUMS", "statsKey": "Topic"}
    server.broker.broker.stats.tick()
    data = body_of(await wire.call(RequestCode.VIEW_BROKER_STATS_DATA, fields))
    assert data["statsMinute"]["sum"] in (0, 1)
    assert set(data) == {"statsMinute", "statsHour", "statsDay"}


async def test_a_permission_reaches_the_routes_before_the_tool_is_answered(server):
    wire = await server.connect()
    await send(wire, "Topic", b"hello")
    assert (await update_config(wire, "brokerPermission=4\n")).code == ResponseCode.SUCCESS
    [queues] = (await route(server, "Topic"))["queueDatas"]
    assert queues["perm"] == 4
    await update_config(wire, "brokerPermission=6\n")
    [queues] = (await route(server, "Topic"))["queueDatas"]
    assert queues["perm"] == 6


async def test_address_and_port_change_routes_and_message_ids_but_no_socket(server):
    wire = await server.connect()
    await send(wire, "Topic", b"hello")
    reply = await update_config(wire, "brokerIP1=192.0.2.77\nlistenPort=32001\n")
    assert reply.code == ResponseCode.SUCCESS
    [broker] = (await route(server, "Topic"))["brokerDatas"]
    assert broker["brokerAddrs"] == {"0": "192.0.2.77:32001"}
    sent = await send(wire, "Topic", b"more")
    message_id = parse_message_id(sent.ext_fields["msgId"])
    assert (str(message_id.ip), message_id.port) == ("192.0.2.77", 32001)


async def test_a_changed_configuration_is_in_force_at_once_and_saved_in_its_file(
    start_server, stop_server, tmp_path
):
    file = tmp_path / "broker.conf"
    file.write_text("# mine\nautoCreateTopicEnable=true\n")
    server = await start_server(brokerConfigPath=str(file))
    wire = await server.connect()
    await update_config(wire, "autoCreateTopicEnable=false\nfileReservedTime=5\n")
    assert (await send(wire, "Topic", b"hello")).code == ResponseCode.TOPIC_NOT_EXIST
    assert server.broker.broker.store.config.file_reserved_hours == 5
    saved = {"autoCreateTopicEnable": "false", "fileReservedTime": "5"}
    assert parse_properties(file.read_text()) == saved
    assert file.read_text().startswith("# mine\n")
    await stop_server(server)


async def test_what_the_store_heeds_changes_while_it_runs(server):
    """These were read once, at the start; a Java broker asks for them each time."""
    wire = await server.connect()
    for number in range(3):
        await send(wire, "Topic", b"%d" % number)
    assert (await send(wire, "Topic", bytes(1001))).code == ResponseCode.SUCCESS
    await update_config(wire, "maxMessageSize=1000\nmaxTransferCountOnMessageInMemory=2\n")
    assert (await send(wire, "Topic", bytes(1001))).code == ResponseCode.MESSAGE_ILLEGAL
    found = decode_records(bytes((await pull(wire, "Topic")).body))
    assert [record.body for record in found] == [b"0", b"1"]

    await update_config(wire, "traceOn=false\nregionId=here\nflushDiskType=SYNC_FLUSH\n")
    await send(wire, "Topic", b"flushed", queue_id=1)
    log = server.broker.broker.store.commit_log
    assert log.flushed_where == log.max_offset
    [record] = decode_records(bytes((await pull(wire, "Topic", queue_id=1)).body))
    assert b"MSG_REGION\x01here\x02TRACE_ON\x01false" in record.properties


@pytest.mark.parametrize(
    ("update", "reason"),
    [
        ("brokerHeartbeatInterval=0", "from 1 to"),
        ("reviveInterval=-5", "from 1 to"),
        ("reviveQueueNum=16", "cannot change while the broker runs"),
        ("brokerPermission=99", "from 0 to 7"),
        ("brokerIP1=no such host", "cannot find the address"),
        ("listenPort=0", "a port that clients can connect to"),
        ("listenPort=70000", "from 0 to 65535"),
        ("fileReservedTime=-5", "from 0 to"),
        ("deleteWhen=25", "hours from 00 to 23"),
        ("deleteWhen=4;morning", "hours from 00 to 23"),
        ("diskMaxUsedSpaceRatio=500", "from 0 to 100"),
        ("messageDelayLevel=1x 5q", "times such as"),
        ("timerMaxDelaySec=-1", "1 or more"),
        ("maxTransferCountOnMessageInMemory=0", "1 or more"),
        ("flushDiskType=NEVER", "SYNC_FLUSH, ASYNC_FLUSH"),
        ("autoCreateTopicEnable=perhaps", "true or false"),
        ("brokerName=other", "cannot change while the broker runs"),
        ("autoCreateTopicEnabled=true", "did you mean autoCreateTopicEnable?"),
        ("x" * 10_000 + "=1", "not a property of a broker"),
    ],
)
async def test_an_update_that_makes_no_sense_is_refused_and_changes_nothing(server, update, reason):
    wire = await server.connect()
    before = (await wire.call(RequestCode.GET_BROKER_CONFIG)).body
    reply = await update_config(wire, f"fileReservedTime=9\n{update}\n")
    assert reply.code == ResponseCode.INVALID_PARAMETER
    assert reason in reply.remark
    assert len(reply.remark) < 400
    assert (await wire.call(RequestCode.GET_BROKER_CONFIG)).body == before


async def test_units_of_a_queue_are_shown(server):
    wire = await server.connect()
    for number in range(3):
        await send(wire, "Topic", b"%d" % number, properties="TAGS\x01a\x02")
    fields = {"topic": "Topic", "queueId": 0, "index": 1, "count": 10}
    data = body_of(await wire.call(RequestCode.QUERY_CONSUME_QUEUE, fields))
    assert (data["minQueueIndex"], data["maxQueueIndex"]) == (0, 3)
    first, second = data["queueData"]
    assert second["physicOffset"] == first["physicOffset"] + first["physicSize"]
    assert first["tagsCode"] == ord("a")


@pytest.mark.parametrize(
    ("fields", "remark"),
    [
        ({"queueId": 9, "index": 0}, "9@Topic is not exist!"),
        ({"queueId": 0, "index": 5}, "Index 5 of 0@Topic is not exist!"),
        ({"queueId": 0, "index": -1}, "Index -1 of 0@Topic is not exist!"),
    ],
)
async def test_units_that_are_not_there_are_refused_in_javas_words(server, fields, remark):
    wire = await server.connect()
    await send(wire, "Topic", b"hello")
    reply = await wire.call(
        RequestCode.QUERY_CONSUME_QUEUE, {"topic": "Topic", "count": 5, **fields}
    )
    assert reply.remark == remark


async def test_a_reset_moves_the_next_pull(server):
    wire = await server.connect()
    for number in range(3):
        await send(wire, "Topic", b"%d" % number)
    await pull(wire, "Topic", offset=3)
    fields = {"topic": "Topic", "group": "consumers", "timestamp": 0, "isForce": "true"}
    assert len(
        body_of(await wire.call(RequestCode.INVOKE_BROKER_TO_RESET_OFFSET, fields))["offsetTable"]
    )
    moved = await pull(wire, "Topic", offset=3)
    assert moved.code == ResponseCode.PULL_OFFSET_MOVED
    assert moved.ext_fields["nextBeginOffset"] == "0"


async def test_running_info_travels_through_the_broker_to_the_client_and_back(server):
    consumer, tool = await server.connect(), await server.connect()
    data = {
        "groupName": "G",
        "consumeType": "CONSUME_PASSIVELY",
        "messageModel": "CLUSTERING",
        "consumeFromWhere": "CONSUME_FROM_LAST_OFFSET",
        "subscriptionDataSet": [],
    }
    beat = fastjson.dumps({"clientID": "c1", "consumerDataSet": [data]})
    opaque = await consumer.ask(RequestCode.HEART_BEAT, body=beat)
    await consumer.reply(opaque)
    consumer.pushed.clear()
    [client] = server.broker.broker.consumers.get("G").clients.values()
    client.version = 499
    asked = await tool.ask(
        RequestCode.GET_CONSUMER_RUNNING_INFO, {"consumerGroup": "G", "clientId": "c1"}
    )
    question = await consumer.push()
    assert question.code == RequestCode.GET_CONSUMER_RUNNING_INFO
    await consumer.stream.send_all(question.make_reply(0, body=b'{"jstack":"x"}').encode())
    assert body_of(await tool.reply(asked)) == {"jstack": "x"}


async def test_a_client_that_leaves_while_it_is_asked_does_not_hold_the_tool(server):
    consumer, tool = await server.connect(), await server.connect()
    data = {"groupName": "G", "subscriptionDataSet": []}
    beat = fastjson.dumps({"clientID": "c1", "consumerDataSet": [data]})
    await consumer.call(RequestCode.HEART_BEAT, body=beat)
    consumer.pushed.clear()
    [client] = server.broker.broker.consumers.get("G").clients.values()
    client.version = 499
    asked = await tool.ask(
        RequestCode.GET_CONSUMER_RUNNING_INFO, {"consumerGroup": "G", "clientId": "c1"}
    )
    await consumer.push()
    await consumer.aclose()
    with trio.fail_after(5):
        reply = await tool.reply(asked)
    assert reply.code == ResponseCode.SYSTEM_ERROR
    assert reply.remark.startswith("invoke consumer <G> <c1> Exception")


HOSTILE = ["../../etc/passwd", "a\0b", "x" * 10_000, "", "-1", "🙂", "%s%n"]


@pytest.mark.parametrize("text", HOSTILE)
async def test_hostile_arguments_get_an_answer_and_leave_the_broker_serving(server, text):
    wire = await server.connect()
    names = (
        *("topic", "group", "consumerGroup", "clientId", "msgId", "statsName", "statsKey"),
        *("srcGroup", "destGroup", "compareGroup", "filterGroups", "groupName", "topicList"),
    )
    fields = dict.fromkeys(names, text)
    fields |= {
        "queueId": 0,
        "index": -5,
        "count": 2_000_000_000,
        "timestamp": -9,
        "isForce": "true",
    }
    codes = [
        *(RequestCode.GET_TOPIC_STATS_INFO, RequestCode.GET_CONSUME_STATS),
        *(RequestCode.QUERY_TOPIC_CONSUME_BY_WHO, RequestCode.QUERY_TOPICS_BY_CONSUMER),
        *(RequestCode.QUERY_SUBSCRIPTION_BY_CONSUMER, RequestCode.QUERY_CONSUME_TIME_SPAN),
        *(RequestCode.INVOKE_BROKER_TO_RESET_OFFSET, RequestCode.CLONE_GROUP_OFFSET),
        *(RequestCode.VIEW_BROKER_STATS_DATA, RequestCode.QUERY_CONSUME_QUEUE),
        *(RequestCode.CONSUME_MESSAGE_DIRECTLY, RequestCode.QUERY_CORRECTION_OFFSET),
        *(RequestCode.UPDATE_BROKER_CONFIG, RequestCode.UPDATE_AND_CREATE_TOPIC_LIST),
        *(RequestCode.UPDATE_COLD_DATA_FLOW_CTR_CONFIG, RequestCode.DELETE_TOPIC_IN_BROKER),
    ]
    for code in codes:
        reply = await wire.call(code, fields, text.encode())
        assert reply.is_response
    assert (await send(wire, "Topic", b"still here")).code == ResponseCode.SUCCESS
