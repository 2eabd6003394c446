"""Routes of topics and lists of topics.

Look-ups of routes have lane CLIENT to themselves, everything else is lane ADMIN. Follows the
ClientRequestProcessor and the DefaultRequestProcessor of the Java name server, 5.5.0.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyritemq.compat import fastjson
from pyritemq.compat.versions import V4_9_4
from pyritemq.protocol.codes import RequestCode, ResponseCode
from pyritemq.protocol.headers.route import (
    DeleteTopicFromNamesrvHeader,
    GetRouteInfoHeader,
    GetTopicsByClusterHeader,
    RegisterTopicHeader,
)
from pyritemq.server.lanes import Lane
from pyritemq.server.namesrv.route_data import UNIT_FLAG, UNIT_SUB_FLAG, QueueData
from pyritemq.server.registry import Request, RequestRefused, namesrv_handlers

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyritemq.protocol.command import Command
    from pyritemq.server.namesrv.namesrv import NameServer

ZONE_MODE_FIELD = "__ZONE_MODE"
ZONE_NAME_FIELD = "__ZONE_NAME"
NO_ROUTE_REMARK = (
    "No topic route info in name server for the topic: {topic}"
    "\nSee https://rocketmq.apache.org/docs/bestPractice/06FAQ for further details."
)


@namesrv_handlers.handles(RequestCode.GET_ROUTEINFO_BY_TOPIC, GetRouteInfoHeader, lane=Lane.CLIENT)
def get_route_info_by_topic(namesrv: NameServer, request: Request[GetRouteInfoHeader]) -> Command:
    if not namesrv.is_ready():
        raise RequestRefused(ResponseCode.SYSTEM_ERROR, "name server not ready")
    header = request.header
    zone = _zone(request.command.ext_fields)
    if zone is None:
        standard = request.command.version >= V4_9_4 or bool(header.accept_standard_json_only)
        body = namesrv.route_replies.body_for(header.topic, standard=standard)
    else:
        body = namesrv.route_replies.body_for_zone(header.topic, zone)
    if body is None:
        remark = NO_ROUTE_REMARK.format(topic=header.topic)
        raise RequestRefused(ResponseCode.TOPIC_NOT_EXIST, remark)
    return request.reply(body=body)


def _zone(ext_fields: Mapping[str, str]) -> str | None:
    """The zone whose brokers alone the client wants."""
    if ext_fields.get(ZONE_MODE_FIELD, "").lower() != "true":
        return None
    zone = ext_fields.get(ZONE_NAME_FIELD, "")
    return zone if zone.strip() else None


@namesrv_handlers.handles(RequestCode.GET_ALL_TOPIC_LIST_FROM_NAMESERVER, None, lane=Lane.ADMIN)
def get_all_topic_list(namesrv: NameServer, request: Request[None]) -> Command:
    _check_allowed(allowed=namesrv.config.enable_all_topic_list)
    return _topic_list(request, namesrv.routes.topic_names())


@namesrv_handlers.handles(
    RequestCode.GET_TOPICS_BY_CLUSTER, GetTopicsByClusterHeader, lane=Lane.ADMIN
)
def get_topics_by_cluster(
    namesrv: NameServer, request: Request[GetTopicsByClusterHeader]
) -> Command:
    _check_allowed(allowed=namesrv.config.enable_topic_list)
    return _topic_list(request, namesrv.routes.topic_names_in(request.header.cluster))


@namesrv_handlers.handles(RequestCode.GET_SYSTEM_TOPIC_LIST_FROM_NS, None, lane=Lane.ADMIN)
def get_system_topic_list(namesrv: NameServer, request: Request[None]) -> Command:
    names, broker_address = namesrv.routes.system_names()
    return _topic_list(request, names, broker_address)


@namesrv_handlers.handles(RequestCode.GET_UNIT_TOPIC_LIST, None, lane=Lane.ADMIN)
def get_unit_topic_list(namesrv: NameServer, request: Request[None]) -> Command:
    _check_allowed(allowed=namesrv.config.enable_topic_list)
    return _topic_list(request, namesrv.routes.topic_names(_is_unit))


@namesrv_handlers.handles(RequestCode.GET_HAS_UNIT_SUB_TOPIC_LIST, None, lane=Lane.ADMIN)
def get_has_unit_sub_topic_list(namesrv: NameServer, request: Request[None]) -> Command:
    _check_allowed(allowed=namesrv.config.enable_topic_list)
    return _topic_list(request, namesrv.routes.topic_names(_has_unit_sub))


@namesrv_handlers.handles(RequestCode.GET_HAS_UNIT_SUB_UNUNIT_TOPIC_LIST, None, lane=Lane.ADMIN)
def get_has_unit_sub_ununit_topic_list(namesrv: NameServer, request: Request[None]) -> Command:
    _check_allowed(allowed=namesrv.config.enable_topic_list)
    names = namesrv.routes.topic_names(lambda data: _has_unit_sub(data) and not _is_unit(data))
    return _topic_list(request, names)


def _is_unit(data: QueueData) -> bool:
    return bool(data.topic_sys_flag & UNIT_FLAG)


def _has_unit_sub(data: QueueData) -> bool:
    return bool(data.topic_sys_flag & UNIT_SUB_FLAG)


def _check_allowed(*, allowed: bool) -> None:
    if not allowed:
        raise RequestRefused(ResponseCode.SYSTEM_ERROR, "disable")


def _topic_list(
    request: Request[Any], names: list[str], broker_address: str | None = None
) -> Command:
    fields = {"brokerAddr": broker_address, "topicList": names}
    return request.reply(body=fastjson.dumps(fields))


@namesrv_handlers.handles(
    RequestCode.REGISTER_TOPIC_IN_NAMESRV, RegisterTopicHeader, lane=Lane.ADMIN
)
def register_topic(namesrv: NameServer, request: Request[RegisterTopicHeader]) -> Command:
    """Queues on a broker that is not known are dropped without a word, as in Java."""
    queues = _queue_datas(request.command.body)
    if queues:
        namesrv.routes.put_topic(request.header.topic, queues)
    return request.reply()


def _queue_datas(body: bytes | memoryview) -> list[QueueData]:
    """The queues of a TopicRouteData; what it says of brokers does not count."""
    try:
        fields = fastjson.loads(body) if body else {}
        return [
            QueueData(
                broker_name=str(data["brokerName"]),
                read_queue_nums=_java_int(data.get("readQueueNums", 0)),
                write_queue_nums=_java_int(data.get("writeQueueNums", 0)),
                perm=_java_int(data.get("perm", 0)),
                topic_sys_flag=_java_int(data.get("topicSysFlag", 0)),
            )
            for data in fields.get("queueDatas") or []
        ]
    except (ValueError, TypeError, KeyError, AttributeError):
        raise RequestRefused(ResponseCode.SYSTEM_ERROR, "the body is not a topic route") from None


def _java_int(value: str | float) -> int:
    number = int(value)
    if not -(1 << 31) <= number < 1 << 31:
        raise ValueError(number)
    return number


@namesrv_handlers.handles(
    RequestCode.DELETE_TOPIC_IN_NAMESRV, DeleteTopicFromNamesrvHeader, lane=Lane.ADMIN
)
def delete_topic(namesrv: NameServer, request: Request[DeleteTopicFromNamesrvHeader]) -> Command:
    namesrv.routes.delete_topic(request.header.topic, request.header.cluster_name)
    return request.reply()
