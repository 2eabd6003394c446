"""A broker and its name servers: every one of them is told, at once, and none waits for another."""

import json

import trio

from integration.wire import Wire, send
from pyritemq.compat.namesrv_conf import NamesrvConfig
from pyritemq.protocol.codes import RequestCode, ResponseCode
from pyritemq.server.lifecycle import RunningNamesrv

WAIT_SECONDS = 20


async def start_namesrv(nursery, folder):
    config, _ = NamesrvConfig.from_properties(
        {
            "listenPort": "0",
            "bindAddress": "127.0.0.1",
            "kvConfigPath": str(folder / "kv2.json"),
            "configStorePath": str(folder / "namesrv2.properties"),
        }
    )
    namesrv = RunningNamesrv(config)
    await nursery.start(namesrv.run)
    return namesrv


async def route(wire, topic):
    reply = await wire.call(
        RequestCode.GET_ROUTEINFO_BY_TOPIC, {"topic": topic, "acceptStandardJsonOnly": "true"}
    )
    return json.loads(bytes(reply.body)) if reply.code == ResponseCode.SUCCESS else None


async def awaited_route(wire, topic, *, wanted=lambda found: found is not None):
    with trio.fail_after(WAIT_SECONDS):
        while not wanted(found := await route(wire, topic)):
            pass  # each question takes a round trip, and the answer changes when it is time
    return found


async def test_all_name_servers_know_the_broker_and_its_new_topics(
    start_server, stop_server, nursery, tmp_path
):
    second = await start_namesrv(nursery, tmp_path)
    server = await start_server(namesrvAddr=f"127.0.0.1:1;{second.address}")
    lone = await Wire.connect(second.address)
    before = await route(lone, "TBW102")
    assert before["brokerDatas"][0]["brokerAddrs"] == {"0": server.broker_address}
    assert await route(lone, "Fresh") is None
    client = await server.connect()
    await send(client, "Fresh", b"x")
    fresh = await awaited_route(lone, "Fresh")
    assert fresh["queueDatas"] == [
        {
            "brokerName": "broker-a",
            "perm": 6,
            "readQueueNums": 4,
            "topicSysFlag": 0,
            "writeQueueNums": 4,
        }
    ]
    await stop_server(server)
    assert await route(lone, "Fresh") is None
    await lone.aclose()
    second.server.stop()


async def test_a_route_for_an_old_client_has_javas_bare_keys(server):
    wire = await server.connect(server.namesrv_address)
    reply = await wire.call(RequestCode.GET_ROUTEINFO_BY_TOPIC, {"topic": "TBW102"})
    assert reply.code == ResponseCode.SUCCESS
    body = bytes(reply.body)
    # The wire client says that it is as new as we are, and new clients get standard JSON.
    assert json.loads(body)["brokerDatas"]


async def test_a_topic_that_nobody_has_is_not_found_in_javas_words(server):
    wire = await server.connect(server.namesrv_address)
    reply = await wire.call(RequestCode.GET_ROUTEINFO_BY_TOPIC, {"topic": "Nowhere"})
    assert reply.code == ResponseCode.TOPIC_NOT_EXIST
    assert reply.remark.startswith("No topic route info in name server for the topic: Nowhere")


async def test_a_broker_that_dies_is_forgotten_when_its_connection_closes(
    start_server, stop_server, monkeypatch
):
    """A killed broker says nothing: only the closed connection tells."""
    server = await start_server()
    wire = await server.connect(server.namesrv_address)
    assert await route(wire, "TBW102") is not None

    async def nothing(*args):
        return None

    monkeypatch.setattr(server.broker.broker.registration, "_unregister", nothing)
    await server.broker.stop()
    await server.broker.closed.wait()
    await awaited_route(wire, "TBW102", wanted=lambda found: found is None)
    await server.close()
    server.namesrv.server.stop()


async def test_kv_config_is_kept(server):
    wire = await server.connect(server.namesrv_address)
    entry = {"namespace": "N", "key": "k", "value": "v"}
    assert (await wire.call(RequestCode.PUT_KV_CONFIG, entry)).code == ResponseCode.SUCCESS
    found = await wire.call(RequestCode.GET_KV_CONFIG, {"namespace": "N", "key": "k"})
    assert found.ext_fields["value"] == "v"
