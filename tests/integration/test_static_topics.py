"""Static topics on one broker, as `mqadmin updateStaticTopic` makes them."""

import pytest
import trio

from integration.wire import pull, send
from pyritemq.compat import fastjson
from pyritemq.protocol.codes import RequestCode, ResponseCode
from pyritemq.protocol.record import decode_records
from pyritemq.server.broker.state.queue_mappings import decode_snapshot


def item(queue_id, broker="broker-a", **other):
    values = {"bname": broker, "endOffset": -1, "gen": 0, "logicOffset": 0, "queueId": queue_id}
    return values | {"startOffset": 0, "timeOfEnd": -1, "timeOfStart": -1} | other


def detail(queues, *, epoch=1000, topic="Static", **other):
    hosted = {number: [item(number)] for number in range(queues)}
    values = {"bname": "broker-a", "currIdMap": {}, "dirty": False, "epoch": epoch}
    values |= {"hostedQueues": hosted, "scope": "__global__", "topic": topic}
    return values | {"totalQueues": queues} | other


async def make(wire, mapping, *, topic="Static", queues=2, force=False):
    fields = {
        "topic": topic,
        "defaultTopic": "TBW102",
        "readQueueNums": queues,
        "writeQueueNums": queues,
        "perm": 6,
        "topicFilterType": "SINGLE_TAG",
        "force": str(force).lower(),
    }
    return await wire.call(
        RequestCode.UPDATE_AND_CREATE_STATIC_TOPIC, fields, fastjson.dumps(mapping)
    )


async def route(server, topic="Static"):
    wire = await server.connect(server.namesrv_address)
    return await wire.call(RequestCode.GET_ROUTEINFO_BY_TOPIC, {"topic": topic})


async def test_a_static_topic_is_in_routes_and_tables_and_takes_messages(server):
    wire = await server.connect()
    assert (await make(wire, detail(2))).code == ResponseCode.SUCCESS
    shown = fastjson.loads((await route(server)).body)
    [mapping] = shown["topicQueueMappingByBroker"].values()
    assert {int(k): v for k, v in mapping["currIdMap"].items()} == {0: 0, 1: 1}
    assert (mapping["totalQueues"], mapping["scope"], mapping["epoch"]) == (2, "__global__", 1000)
    asked = {"topic": "Static", "lo": "true"}
    config = fastjson.loads((await wire.call(RequestCode.GET_TOPIC_CONFIG, asked)).body)
    assert config["mappingDetail"]["totalQueues"] == 2
    everything = fastjson.loads((await wire.call(RequestCode.GET_ALL_TOPIC_CONFIG)).body)
    assert set(everything["topicQueueMappingDetailMap"]) == {"Static"}
    assert (await send(wire, "Static", b"x", queue_id=1)).ext_fields["queueId"] == "1"
    [record] = decode_records(bytes((await pull(wire, "Static", queue_id=1)).body))
    assert record.body == b"x"


async def test_a_static_topic_grows_survives_a_restart_and_can_be_deleted(
    start_server, stop_server, tmp_path
):
    server = await start_server()
    wire = await server.connect()
    await make(wire, detail(2))
    assert (await make(wire, detail(3, epoch=2000), queues=3)).code == ResponseCode.SUCCESS
    await stop_server(server)
    server = await start_server()
    shown = fastjson.loads((await route(server)).body)
    [mapping] = shown["topicQueueMappingByBroker"].values()
    assert (mapping["totalQueues"], mapping["epoch"]) == (3, 2000)
    wire = await server.connect()
    await wire.call(RequestCode.DELETE_TOPIC_IN_BROKER, {"topic": "Static"})
    file = tmp_path / "store" / "config" / "topicQueueMapping.json"
    assert decode_snapshot(file.read_bytes()).table == {}
    names = await server.connect(server.namesrv_address)
    await names.call(RequestCode.DELETE_TOPIC_IN_NAMESRV, {"topic": "Static"})
    await send(wire, "Static", b"an ordinary topic now")
    await trio.to_thread.run_sync(server.broker.broker.registration.settle)
    assert "topicQueueMappingByBroker" not in fastjson.loads((await route(server)).body)
    await stop_server(server)


@pytest.mark.parametrize(
    ("mapping", "reason"),
    [
        (detail(2, hostedQueues={0: [item(1)]}), "logical queue 0 of Static is not simply queue 0"),
        (detail(2, hostedQueues={0: [item(0, "broker-b")]}), "several brokers are not supported"),
        (detail(2, hostedQueues={0: [item(0), item(0, gen=1)]}), "several brokers"),
        (detail(2, hostedQueues={0: [item(0, logicOffset=50)]}), "several brokers"),
        (detail(2, bname="broker-b"), "is mapped for broker-b, not broker-a"),
        (detail(2, topic="Other"), "the mapping is of Other"),
        (detail(2, epoch=1), "small epoch 1 < 1000"),
        (detail(2, epoch=1000, hostedQueues={0: [item(0)]}), "equal epoch with null data"),
        (detail(2, epoch=2000, scope="else"), "unmatched scope else"),
        (detail(2, hostedQueues=[1]), "cannot be read"),
        (detail(2, epoch="soon"), "cannot be read"),
        ([], "cannot be read"),
        (None, "cannot be read"),
    ],
)
async def test_a_mapping_that_cannot_be_served_is_refused_and_changes_nothing(
    server, mapping, reason
):
    wire = await server.connect()
    await make(wire, detail(2))
    before = server.broker.broker.queue_mappings.snapshot
    reply = await make(wire, mapping, queues=9)
    assert reply.code == ResponseCode.SYSTEM_ERROR
    assert reason in reply.remark
    assert server.broker.broker.queue_mappings.snapshot is before
    assert server.broker.broker.topics.get("Static").write_queue_nums == 2
