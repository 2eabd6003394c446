"""Which codes are handled, and on which lane."""

from pyritemq.protocol.codes import RequestCode
from pyritemq.server.lanes import Lane
from pyritemq.server.registry import namesrv_handlers

# The codes of the Java name server's two processors, 5.5.0.
JAVA_CODES = {
    RequestCode.PUT_KV_CONFIG,
    RequestCode.GET_KV_CONFIG,
    RequestCode.DELETE_KV_CONFIG,
    RequestCode.QUERY_DATA_VERSION,
    RequestCode.REGISTER_BROKER,
    RequestCode.UNREGISTER_BROKER,
    RequestCode.BROKER_HEARTBEAT,
    RequestCode.GET_BROKER_MEMBER_GROUP,
    RequestCode.GET_BROKER_CLUSTER_INFO,
    RequestCode.WIPE_WRITE_PERM_OF_BROKER,
    RequestCode.ADD_WRITE_PERM_OF_BROKER,
    RequestCode.GET_ALL_TOPIC_LIST_FROM_NAMESERVER,
    RequestCode.DELETE_TOPIC_IN_NAMESRV,
    RequestCode.REGISTER_TOPIC_IN_NAMESRV,
    RequestCode.GET_KVLIST_BY_NAMESPACE,
    RequestCode.GET_TOPICS_BY_CLUSTER,
    RequestCode.GET_SYSTEM_TOPIC_LIST_FROM_NS,
    RequestCode.GET_UNIT_TOPIC_LIST,
    RequestCode.GET_HAS_UNIT_SUB_TOPIC_LIST,
    RequestCode.GET_HAS_UNIT_SUB_UNUNIT_TOPIC_LIST,
    RequestCode.UPDATE_NAMESRV_CONFIG,
    RequestCode.GET_NAMESRV_CONFIG,
    RequestCode.GET_ROUTEINFO_BY_TOPIC,
}


def test_all_codes_of_the_java_name_server_are_handled_and_no_others():
    assert {handler.code for handler in namesrv_handlers} == JAVA_CODES


def test_only_route_look_ups_use_the_client_lane():
    lanes = {handler.code: handler.lane for handler in namesrv_handlers}
    assert lanes.pop(RequestCode.GET_ROUTEINFO_BY_TOPIC) == Lane.CLIENT
    assert set(lanes.values()) == {Lane.ADMIN}
