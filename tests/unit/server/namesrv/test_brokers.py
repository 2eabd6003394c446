"""Registration, heartbeats, versions, leaving; cluster views and write permission."""

import zlib

import orjson
import pytest

from pyritemq.compat.fastjson import loads
from pyritemq.compat.register_body import DataVersion, RegisterBrokerBody, TopicConfig
from pyritemq.compat.versions import version_ordinal
from pyritemq.protocol.codes import RequestCode, ResponseCode

OTHER = {"address": "10.0.0.2:10911", "broker_id": 1}


def identity(name="broker-a", address="10.0.0.1:10911", broker_id=0, cluster="C1"):
    return {
        "brokerName": name,
        "brokerAddr": address,
        "clusterName": cluster,
        "brokerId": str(broker_id),
    }


def route(ask, topic="T1"):
    reply = ask(RequestCode.GET_ROUTEINFO_BY_TOPIC, {"topic": topic})
    return orjson.loads(bytes(reply.body)) if reply.code == 0 else None


def test_master_and_slave_register_and_the_slave_learns_of_its_master(register):
    master = register()
    slave = register(**OTHER)
    assert master.code == slave.code == ResponseCode.SUCCESS
    assert master.ext_fields == {}
    assert slave.ext_fields == {"haServerAddr": "10.0.0.1:10912", "masterAddr": "10.0.0.1:10911"}


def test_compressed_body_with_its_crc_registers_topics(ask):
    body = RegisterBrokerBody(
        topics={"T1": TopicConfig("T1", 8, 8), "T2": TopicConfig("T2", 1, 1)},
        data_version=DataVersion(5, 1),
    ).encode(compressed=True)
    header = identity() | {
        "haServerAddr": "10.0.0.1:10912",
        "compressed": "true",
        "bodyCrc32": str(zlib.crc32(body) & 0x7FFFFFFF),
    }
    assert ask(RequestCode.REGISTER_BROKER, header, body).code == ResponseCode.SUCCESS
    assert route(ask)["queueDatas"][0]["readQueueNums"] == 8


def test_body_that_does_not_match_its_crc_is_refused(register, ask):
    reply = register(ext={"bodyCrc32": "12345"})
    assert (reply.code, reply.remark) == (ResponseCode.SYSTEM_ERROR, "crc32 not match")
    assert route(ask) is None


@pytest.mark.parametrize(("compressed", "body"), [("true", b"{}"), ("false", b"garbage")])
def test_body_that_cannot_be_read_is_refused(ask, compressed, body):
    header = identity() | {"haServerAddr": "h:1", "compressed": compressed}
    reply = ask(RequestCode.REGISTER_BROKER, header, body)
    assert reply.code == ResponseCode.SYSTEM_ERROR
    assert reply.remark == "Failed to decode RegisterBrokerBody"


def test_broker_without_a_body_registers_without_topics(ask, namesrv):
    header = identity() | {"haServerAddr": "h:1"}
    assert ask(RequestCode.REGISTER_BROKER, header).code == ResponseCode.SUCCESS
    assert namesrv.routes.members_of("broker-a") == {0: "10.0.0.1:10911"}


def test_broker_before_3_0_11_sends_its_topics_alone(ask):
    body = b'{"topicConfigTable":{"T1":{"topicName":"T1"},"T2":{"topicName":"T2"}}}'
    header = identity() | {"haServerAddr": "h:1"}
    old = version_ordinal("V3_0_10")
    assert ask(RequestCode.REGISTER_BROKER, header, body, version=old).code == 0
    assert route(ask)["queueDatas"][0]["readQueueNums"] == 16


def test_missing_header_field_is_refused(ask):
    reply = ask(RequestCode.REGISTER_BROKER, {"brokerName": "a"})
    assert reply.code == ResponseCode.SYSTEM_ERROR


def test_first_registration_of_a_single_topic_is_refused_and_a_later_one_taken(register, ask):
    reply = register(topics=["T1"])
    assert (reply.code, reply.remark) == (ResponseCode.SYSTEM_ERROR, "register broker failed")
    register(topics=["T1", "T2"])
    assert register(topics=["T3"], counter=2).code == ResponseCode.SUCCESS
    assert route(ask, "T3") is not None
    assert route(ask, "T1") is not None


def test_topics_of_a_known_version_are_not_looked_at_again(register, ask, topic):
    register(topics=[topic("T1", queues=4), topic("T2")], counter=1)
    register(topics=[topic("T1", queues=9), topic("T2")], counter=1)
    assert route(ask)["queueDatas"][0]["readQueueNums"] == 4
    register(topics=[topic("T1", queues=9), topic("T2")], counter=2)
    assert route(ask)["queueDatas"][0]["readQueueNums"] == 9


def test_repeated_registration_leaves_the_route_version_alone(register, namesrv):
    register()
    version = namesrv.routes.version
    register()
    assert namesrv.routes.version == version
    register(topics=["T1", "T2", "T3"], counter=2)
    assert namesrv.routes.version > version


def test_topics_that_a_broker_no_longer_has_stay_unless_configured(register, ask, config):
    register(topics=["T1", "T2", "T3"])
    register(topics=["T1", "T2"], counter=2)
    assert route(ask, "T3") is not None
    config.delete_topic_with_broker_registration = True
    register(topics=["T1", "T2"], counter=3)
    assert route(ask, "T3") is None


def test_topics_of_a_slave_do_not_count_while_there_is_a_master(register, ask):
    register()
    register(**OTHER, topics=["OnlySlave", "T2"])
    assert route(ask, "OnlySlave") is None


def test_topics_of_the_lowest_slave_count_without_a_master(register, ask):
    register(**OTHER, topics=["T1", "T2"])
    assert route(ask)["brokerDatas"][0]["brokerAddrs"] == {"1": "10.0.0.2:10911"}
    assert route(ask)["queueDatas"][0]["perm"] == 6


def test_topics_of_an_acting_master_are_read_only(register, ask):
    register(**OTHER, topics=["T1", "T2"], ext={"enableActingMaster": "true"})
    assert route(ask)["queueDatas"][0]["perm"] == 4


def test_slave_of_a_4x_broker_never_counts(register, ask):
    register(**OTHER, topics=["T1", "T2"], ext={"enableActingMaster": None})
    assert route(ask) is None


def test_slave_that_becomes_master_is_listed_once(register, namesrv):
    register(**OTHER)
    register(address="10.0.0.2:10911", broker_id=0)
    assert namesrv.routes.members_of("broker-a") == {0: "10.0.0.2:10911"}


def test_old_master_does_not_displace_one_with_a_later_state(register, namesrv):
    register(address="10.0.0.2:10911", state_version=2)
    reply = register(address="10.0.0.1:10911", state_version=1)
    assert (reply.code, reply.ext_fields) == (ResponseCode.SUCCESS, {})
    assert namesrv.routes.members_of("broker-a") == {0: "10.0.0.2:10911"}
    register(address="10.0.0.1:10911", state_version=2)
    assert namesrv.routes.members_of("broker-a") == {0: "10.0.0.1:10911"}


def test_registration_past_the_bound_is_refused_and_known_brokers_go_on(register, monkeypatch):
    monkeypatch.setattr("pyritemq.server.namesrv.routes.LIVE_BROKERS_MAX", 1)
    register()
    refused = register("broker-b", address="10.0.0.5:10911")
    assert (refused.code, refused.remark) == (ResponseCode.SYSTEM_ERROR, "too many brokers")
    assert register().code == ResponseCode.SUCCESS


def test_reply_carries_ordered_topics_once_there_are_any(register, ask, config):
    assert register().body == b""
    kv = {"namespace": "ORDER_TOPIC_CONFIG", "key": "T1", "value": "broker-a:4"}
    ask(RequestCode.PUT_KV_CONFIG, kv)
    assert register().body == b'{"table":{"T1":"broker-a:4"}}'
    config.return_order_topic_config_to_broker = False
    assert register().body == b""


def test_query_data_version_says_whether_topics_are_to_be_sent(register, ask):
    body = b'{"counter":1,"stateVersion":0,"timestamp":5}'
    unknown = ask(RequestCode.QUERY_DATA_VERSION, identity(), body)
    assert (unknown.ext_fields, unknown.body) == ({"changed": "true"}, b"")
    register()
    same = ask(RequestCode.QUERY_DATA_VERSION, identity(), body)
    assert same.ext_fields == {"changed": "false"}
    assert same.body == b'{"counter":1,"stateVersion":0,"timestamp":5}'
    other = ask(RequestCode.QUERY_DATA_VERSION, identity(), body.replace(b"1", b"2", 1))
    assert other.ext_fields == {"changed": "true"}


def test_query_data_version_with_a_bad_body_is_refused(ask):
    reply = ask(RequestCode.QUERY_DATA_VERSION, identity(), b"[")
    assert reply.code == ResponseCode.SYSTEM_ERROR


def test_unregistered_broker_takes_its_topics_along(register, ask, namesrv):
    register()
    register("broker-b", address="10.0.0.5:10911", topics=["T1", "T9"])
    assert ask(RequestCode.UNREGISTER_BROKER, identity()).code == ResponseCode.SUCCESS
    assert [q["brokerName"] for q in route(ask)["queueDatas"]] == ["broker-b"]
    assert route(ask, "T2") is None
    assert namesrv.routes.clusters()[1] == {"C1": ["broker-b"]}
    ask(RequestCode.UNREGISTER_BROKER, identity("broker-b", "10.0.0.5:10911"))
    assert namesrv.routes.clusters() == ([], {})


def test_broker_that_changed_its_cluster_leaves_no_trace(register, ask, namesrv):
    """Java keeps the broker's name in the second cluster for ever."""
    register(cluster="C1")
    register(cluster="C2")
    ask(RequestCode.UNREGISTER_BROKER, identity(cluster="C1"))
    assert namesrv.routes.clusters() == ([], {})


def test_unregistering_an_unknown_broker_changes_nothing(register, ask):
    register()
    assert ask(RequestCode.UNREGISTER_BROKER, identity("other", "1.1.1.1:1")).code == 0
    assert route(ask) is not None


def test_lost_master_leaves_topics_read_only_with_an_acting_master(register, ask):
    acting = {"enableActingMaster": "true"}
    register(ext=acting)
    register(**OTHER, ext=acting)
    ask(RequestCode.UNREGISTER_BROKER, identity())
    assert route(ask)["queueDatas"][0]["perm"] == 4


def test_lost_master_without_an_acting_one_changes_no_permission(register, ask):
    register()
    register(**OTHER)
    ask(RequestCode.UNREGISTER_BROKER, identity())
    assert route(ask)["queueDatas"][0]["perm"] == 6


def test_broker_is_gone_as_soon_as_its_connection_closes(register, ask, namesrv, make_channel):
    first, second = make_channel(), make_channel()
    register(channel=first)
    register("broker-b", address="10.0.0.5:10911", topics=["T1", "T9"], channel=second)
    namesrv.channel_closed(make_channel())
    assert len(route(ask)["queueDatas"]) == 2
    namesrv.channel_closed(first)
    assert [q["brokerName"] for q in route(ask)["queueDatas"]] == ["broker-b"]


def test_broker_that_came_back_on_another_connection_survives_the_old_one(
    register, ask, namesrv, make_channel
):
    old = make_channel()
    register(channel=old)
    register(channel=make_channel())
    namesrv.channel_closed(old)
    assert route(ask) is not None


def test_all_brokers_of_a_container_go_with_its_one_connection(register, namesrv, make_channel):
    shared = make_channel()
    register(channel=shared)
    register("broker-b", address="10.0.0.5:10911", channel=shared)
    namesrv.channel_closed(shared)
    assert namesrv.routes.clusters() == ([], {})


def test_member_group_and_cluster_info_are_encoded_as_by_java(register, ask, java):
    register()
    register(**OTHER)
    header = {"clusterName": "C1", "brokerName": "broker-a"}
    assert ask(RequestCode.GET_BROKER_MEMBER_GROUP, header).body == java.group
    assert ask(RequestCode.GET_BROKER_CLUSTER_INFO).body == java.cluster


def test_member_group_of_an_unknown_broker_is_empty(ask):
    header = {"clusterName": "C1", "brokerName": "nobody"}
    body = ask(RequestCode.GET_BROKER_MEMBER_GROUP, header).body
    expected = b'{"brokerMemberGroup":{"brokerAddrs":{},"brokerName":"nobody","cluster":"C1"}}'
    assert body == expected


def test_cluster_info_without_brokers_holds_empty_tables(ask):
    body = loads(ask(RequestCode.GET_BROKER_CLUSTER_INFO).body)
    assert body == {"brokerAddrTable": {}, "clusterAddrTable": {}}


def test_write_permission_is_wiped_and_given_back(register, ask, topic):
    register(topics=[topic("T1"), topic("T2", perm=4)])
    wiped = ask(RequestCode.WIPE_WRITE_PERM_OF_BROKER, {"brokerName": "broker-a"})
    assert wiped.ext_fields == {"wipeTopicCount": "2"}
    assert route(ask)["queueDatas"][0]["perm"] == 4
    added = ask(RequestCode.ADD_WRITE_PERM_OF_BROKER, {"brokerName": "broker-a"})
    assert added.ext_fields == {"addTopicCount": "2"}
    assert route(ask)["queueDatas"][0]["perm"] == 6
    assert route(ask, "T2")["queueDatas"][0]["perm"] == 6
    nobody = ask(RequestCode.WIPE_WRITE_PERM_OF_BROKER, {"brokerName": "x"})
    assert nobody.ext_fields == {"wipeTopicCount": "0"}
