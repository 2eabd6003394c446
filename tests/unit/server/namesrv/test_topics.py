"""Routes in both spellings, and lists of topics."""

import orjson
import pytest

from pyritemq.compat.versions import version_ordinal
from pyritemq.protocol.codes import RequestCode, ResponseCode

OLD = version_ordinal("V4_9_3")
NEW = version_ordinal("V4_9_4")
SLAVE = {"address": "10.0.0.2:10911", "broker_id": 1}


def ask_route(ask, topic="T1", **options):
    ext = {"topic": topic} | options.pop("ext", {})
    return ask(RequestCode.GET_ROUTEINFO_BY_TOPIC, ext, **options)


def broker_names(reply):
    return [group["brokerName"] for group in orjson.loads(reply.body)["brokerDatas"]]


def names(reply):
    assert reply.code == ResponseCode.SUCCESS, reply.remark
    return sorted(orjson.loads(reply.body)["topicList"])


def test_route_is_spelled_for_the_version_of_the_client(register, ask, java):
    register()
    register(**SLAVE)
    assert ask_route(ask, version=OLD).body == java.route_old
    assert ask_route(ask, version=NEW).body == java.route_standard
    wants_standard = {"acceptStandardJsonOnly": "true"}
    assert ask_route(ask, version=OLD, ext=wants_standard).body == java.route_standard


def test_unknown_topic_is_refused_with_the_remark_of_java(ask):
    reply = ask_route(ask, "Nothing")
    assert reply.code == ResponseCode.TOPIC_NOT_EXIST
    assert reply.remark == (
        "No topic route info in name server for the topic: Nothing"
        "\nSee https://rocketmq.apache.org/docs/bestPractice/06FAQ for further details."
    )


def test_route_follows_every_change_despite_the_cache(register, ask):
    register()
    assert broker_names(ask_route(ask)) == ["broker-a"]
    register("broker-b", address="10.0.0.5:10911")
    assert broker_names(ask_route(ask)) == ["broker-a", "broker-b"]
    register(ext={"__ZONE_NAME": "z"})
    assert orjson.loads(ask_route(ask).body)["brokerDatas"][0]["zoneName"] == "z"
    ask(RequestCode.WIPE_WRITE_PERM_OF_BROKER, {"brokerName": "broker-a"})
    assert orjson.loads(ask_route(ask).body)["queueDatas"][0]["perm"] == 4
    ask(RequestCode.DELETE_TOPIC_IN_NAMESRV, {"topic": "T1"})
    assert ask_route(ask).code == ResponseCode.TOPIC_NOT_EXIST


def test_unchanged_route_is_not_encoded_again(register, ask):
    register()
    body = ask_route(ask).body
    register()
    assert ask_route(ask).body is body


def test_cache_stays_within_its_bound(register, ask, namesrv, monkeypatch):
    monkeypatch.setattr("pyritemq.server.namesrv.route_replies.CACHED_BODIES_MAX", 2)
    register(topics=["T1", "T2", "T3", "T4"])
    for topic in ("T1", "T2", "T3", "T4"):
        assert ask_route(ask, topic).code == 0
    assert len(namesrv.route_replies._cached) <= 2


def test_order_conf_is_in_the_route_only_when_enabled(register, ask, config):
    register()
    kv = {"namespace": "ORDER_TOPIC_CONFIG", "key": "T1", "value": "broker-a:4"}
    ask(RequestCode.PUT_KV_CONFIG, kv)
    assert "orderTopicConf" not in orjson.loads(ask_route(ask).body)
    config.order_message_enable = True
    assert orjson.loads(ask_route(ask).body)["orderTopicConf"] == "broker-a:4"
    ask(RequestCode.PUT_KV_CONFIG, kv | {"value": "broker-a:8"})
    assert orjson.loads(ask_route(ask).body)["orderTopicConf"] == "broker-a:8"
    assert "orderTopicConf" not in orjson.loads(ask_route(ask, "T2").body)


def test_filter_servers_and_queue_mappings_are_in_the_route(register, ask):
    mapping = {
        "bname": "broker-a",
        "currIdMap": {0: 1},
        "dirty": False,
        "epoch": 1,
        "scope": "__global__",
        "topic": "T1",
        "totalQueues": 4,
    }
    register(filter_servers=["f:1"], mappings={"T1": mapping})
    route = orjson.loads(ask_route(ask).body)
    assert route["filterServerTable"] == {"10.0.0.1:10911": ["f:1"]}
    assert route["topicQueueMappingByBroker"]["broker-a"]["currIdMap"] == {"0": 1}
    assert b'"currIdMap":{0:1}' in ask_route(ask, version=OLD).body
    register(filter_servers=[])
    assert orjson.loads(ask_route(ask).body)["filterServerTable"] == {}


def test_slave_is_shown_as_master_only_with_acting_master_support(register, ask, config):
    register(
        **SLAVE, topics=["T1", "rmq_sys_SYNC_BROKER_MEMBER_x"], ext={"enableActingMaster": "true"}
    )
    slave = {"1": "10.0.0.2:10911"}
    master = {"0": "10.0.0.2:10911"}
    assert orjson.loads(ask_route(ask).body)["brokerDatas"][0]["brokerAddrs"] == slave
    config.support_acting_master = True
    assert orjson.loads(ask_route(ask).body)["brokerDatas"][0]["brokerAddrs"] == master
    internal = ask_route(ask, "rmq_sys_SYNC_BROKER_MEMBER_x")
    assert orjson.loads(internal.body)["brokerDatas"][0]["brokerAddrs"] == slave


def test_zone_mode_shows_brokers_of_the_zone_and_those_without_a_master(register, ask):
    register(ext={"__ZONE_NAME": "z1"}, filter_servers=["f:1"])
    register("broker-b", address="10.0.0.5:10911", ext={"__ZONE_NAME": "Z2"})
    register("broker-c", address="10.0.0.6:10911", broker_id=1, ext={"__ZONE_NAME": "z3"})
    zone = {"__ZONE_MODE": "true", "__ZONE_NAME": "z2"}
    reply = ask_route(ask, ext=zone)
    assert b'{0:"10.0.0.5:10911"}' in reply.body
    assert b"broker-b" in reply.body
    assert b"broker-c" in reply.body
    assert b"broker-a" not in reply.body
    assert b"f:1" not in reply.body
    for without in ({"__ZONE_NAME": "z2"}, {"__ZONE_MODE": "true"}, zone | {"__ZONE_NAME": " "}):
        assert broker_names(ask_route(ask, ext=without)) == ["broker-a", "broker-b", "broker-c"]
    assert ask_route(ask, "Nothing", ext=zone).code == ResponseCode.TOPIC_NOT_EXIST


def test_routes_wait_for_brokers_after_the_start_when_configured(register, ask, config, clock):
    register()
    config.need_wait_for_service = True
    clock.ms += 44_999
    reply = ask_route(ask)
    assert (reply.code, reply.remark) == (ResponseCode.SYSTEM_ERROR, "name server not ready")
    clock.ms += 1
    assert ask_route(ask).code == ResponseCode.SUCCESS


def test_topic_lists(register, ask, topic):
    register(topics=[topic("Plain"), topic("Unit", sys_flag=1)])
    register(
        "broker-b",
        address="10.0.0.5:10911",
        cluster="C2",
        topics=[topic("Sub", sys_flag=2), topic("Both", sys_flag=3)],
    )
    everything = ["Both", "Plain", "Sub", "Unit"]
    assert names(ask(RequestCode.GET_ALL_TOPIC_LIST_FROM_NAMESERVER)) == everything
    assert names(ask(RequestCode.GET_TOPICS_BY_CLUSTER, {"cluster": "C1"})) == ["Plain", "Unit"]
    assert names(ask(RequestCode.GET_TOPICS_BY_CLUSTER, {"cluster": "?"})) == []
    assert names(ask(RequestCode.GET_UNIT_TOPIC_LIST)) == ["Both", "Unit"]
    assert names(ask(RequestCode.GET_HAS_UNIT_SUB_TOPIC_LIST)) == ["Both", "Sub"]
    assert names(ask(RequestCode.GET_HAS_UNIT_SUB_UNUNIT_TOPIC_LIST)) == ["Sub"]
    system = ask(RequestCode.GET_SYSTEM_TOPIC_LIST_FROM_NS)
    assert names(system) == ["C1", "C2", "broker-a", "broker-b"]
    assert orjson.loads(system.body)["brokerAddr"] == "10.0.0.1:10911"


def test_topic_list_of_an_empty_name_server_is_encoded_as_by_java(ask):
    assert ask(RequestCode.GET_SYSTEM_TOPIC_LIST_FROM_NS).body == b'{"topicList":[]}'


@pytest.mark.parametrize(
    ("code", "ext"),
    [
        (RequestCode.GET_TOPICS_BY_CLUSTER, {"cluster": "C1"}),
        (RequestCode.GET_UNIT_TOPIC_LIST, {}),
        (RequestCode.GET_HAS_UNIT_SUB_TOPIC_LIST, {}),
        (RequestCode.GET_HAS_UNIT_SUB_UNUNIT_TOPIC_LIST, {}),
        (RequestCode.GET_ALL_TOPIC_LIST_FROM_NAMESERVER, {}),
    ],
)
def test_topic_lists_can_be_switched_off(ask, config, code, ext):
    config.enable_topic_list = config.enable_all_topic_list = False
    reply = ask(code, ext)
    assert (reply.code, reply.remark) == (ResponseCode.SYSTEM_ERROR, "disable")


def test_topic_is_registered_by_hand_on_known_brokers_only(register, ask):
    register()
    queues = [
        {"brokerName": "broker-a", "perm": 6, "readQueueNums": 2, "writeQueueNums": 2},
        {"brokerName": "nobody", "perm": 6, "readQueueNums": 2, "writeQueueNums": 2},
    ]
    known = orjson.dumps({"queueDatas": queues[:1], "brokerDatas": []})
    assert ask(RequestCode.REGISTER_TOPIC_IN_NAMESRV, {"topic": "Hand"}, known).code == 0
    assert broker_names(ask_route(ask, "Hand")) == ["broker-a"]
    unknown = orjson.dumps({"queueDatas": queues})
    assert ask(RequestCode.REGISTER_TOPIC_IN_NAMESRV, {"topic": "No"}, unknown).code == 0
    assert ask_route(ask, "No").code == ResponseCode.TOPIC_NOT_EXIST


@pytest.mark.parametrize(
    "body",
    [
        b"x",
        b"[]",
        b'{"queueDatas":[{}]}',
        b'{"queueDatas":[{"brokerName":"broker-a","perm":99999999999999999999}]}',
        b'{"queueDatas":{"a":1}}',
    ],
)
def test_bad_route_given_by_hand_is_refused(register, ask, body):
    register()
    reply = ask(RequestCode.REGISTER_TOPIC_IN_NAMESRV, {"topic": "T1"}, body)
    assert reply.code == ResponseCode.SYSTEM_ERROR
    assert ask_route(ask).code == ResponseCode.SUCCESS


def test_topic_is_deleted_in_one_cluster_or_everywhere(register, ask):
    register()
    register("broker-b", address="10.0.0.5:10911", cluster="C2")
    ask(RequestCode.DELETE_TOPIC_IN_NAMESRV, {"topic": "T1", "clusterName": "C1"})
    assert broker_names(ask_route(ask)) == ["broker-b"]
    ask(RequestCode.DELETE_TOPIC_IN_NAMESRV, {"topic": "T1", "clusterName": "Nowhere"})
    assert broker_names(ask_route(ask)) == ["broker-b"]
    ask(RequestCode.DELETE_TOPIC_IN_NAMESRV, {"topic": "T1"})
    assert ask_route(ask).code == ResponseCode.TOPIC_NOT_EXIST
    assert ask(RequestCode.DELETE_TOPIC_IN_NAMESRV, {"topic": "T1"}).code == 0
