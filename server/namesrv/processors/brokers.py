"""Brokers come, are heard of and go; tools look at them and change what may be written to.

Lane ADMIN. Follows the DefaultRequestProcessor of the Java name server, 5.5.0.
"""

from __future__ import annotations

import logging
import zlib
from typing import TYPE_CHECKING

from pyritemq.compat import fastjson
from pyritemq.compat.register_body import DataVersion, RegisterBodyError, RegisterBrokerBody
from pyritemq.compat.versions import V3_0_11
from pyritemq.protocol.codes import RequestCode, ResponseCode
from pyritemq.protocol.headers.registration import (
    AddWritePermOfBrokerHeader,
    AddWritePermOfBrokerReplyHeader,
    BrokerHeartbeatHeader,
    GetBrokerMemberGroupHeader,
    QueryDataVersionHeader,
    QueryDataVersionReplyHeader,
    RegisterBrokerHeader,
    RegisterBrokerReplyHeader,
    UnRegisterBrokerHeader,
    WipeWritePermOfBrokerHeader,
    WipeWritePermOfBrokerReplyHeader,
)
from pyritemq.server.lanes import Lane
from pyritemq.server.namesrv.route_data import BrokerAddress, Registration, Unregistration
from pyritemq.server.namesrv.route_replies import ORDER_TOPIC_NAMESPACE, broker_group_json
from pyritemq.server.namesrv.routes import SingleTopicRefused, TooManyBrokers
from pyritemq.server.registry import Request, RequestRefused, namesrv_handlers

if TYPE_CHECKING:
    from pyritemq.protocol.command import Command
    from pyritemq.server.namesrv.namesrv import NameServer

logger = logging.getLogger(__name__)

ZONE_NAME_FIELD = "__ZONE_NAME"
CRC_MASK = 0x7FFFFFFF  # Java clears the sign bit of every CRC


@namesrv_handlers.handles(RequestCode.REGISTER_BROKER, RegisterBrokerHeader, lane=Lane.ADMIN)
def register_broker(namesrv: NameServer, request: Request[RegisterBrokerHeader]) -> Command:
    _check_crc(request)
    registration = _registration(request)
    try:
        master, change = namesrv.routes.register(
            registration,
            delete_absent_topics=namesrv.config.delete_topic_with_broker_registration,
        )
    except SingleTopicRefused:
        raise RequestRefused(ResponseCode.SYSTEM_ERROR, "register broker failed") from None
    except TooManyBrokers:
        logger.warning("registration refused broker=%s reason=too_many", registration.name)
        raise RequestRefused(ResponseCode.SYSTEM_ERROR, "too many brokers") from None
    namesrv.tell_of_min_broker_id([change] if change else [])
    header = RegisterBrokerReplyHeader(
        ha_server_addr=master.ha_server_addr, master_addr=master.master_addr
    )
    return request.reply(header=header, body=_order_topics(namesrv))


def _check_crc(request: Request[RegisterBrokerHeader]) -> None:
    expected = request.header.body_crc32
    if expected and zlib.crc32(request.command.body) & CRC_MASK != expected:
        logger.warning("registration refused peer=%s reason=crc", request.channel.remote_address)
        raise RequestRefused(ResponseCode.SYSTEM_ERROR, "crc32 not match")


def _registration(request: Request[RegisterBrokerHeader]) -> Registration:
    header = request.header
    return Registration(
        cluster=header.cluster_name,
        address=header.broker_addr,
        name=header.broker_name,
        broker_id=header.broker_id,
        ha_server_addr=header.ha_server_addr,
        body=_register_body(request),
        channel=request.channel,
        zone=request.command.ext_fields.get(ZONE_NAME_FIELD),
        timeout_ms=header.heartbeat_timeout_millis,
        acting_master=header.enable_acting_master,
    )


def _register_body(request: Request[RegisterBrokerHeader]) -> RegisterBrokerBody:
    """Brokers before 3.0.11 send their topics only; without a body there are none."""
    body = request.command.body
    if not body:
        return RegisterBrokerBody()
    try:
        if request.command.version < V3_0_11:
            return RegisterBrokerBody.decode_topics_only(body)
        return RegisterBrokerBody.decode(
            body, compressed=request.header.compressed, version=request.command.version
        )
    except RegisterBodyError as error:
        logger.warning(
            "registration refused peer=%s reason=%s", request.channel.remote_address, error
        )
        remark = "Failed to decode RegisterBrokerBody"
        raise RequestRefused(ResponseCode.SYSTEM_ERROR, remark) from None


def _order_topics(namesrv: NameServer) -> bytes:
    """The ordered topics that a broker sets `order` by; nothing if there never were any."""
    if not namesrv.config.return_order_topic_config_to_broker:
        return b""
    entries = namesrv.kv_config.list_namespace(ORDER_TOPIC_NAMESPACE)
    return b"" if entries is None else fastjson.dumps({"table": entries})


@namesrv_handlers.handles(RequestCode.UNREGISTER_BROKER, UnRegisterBrokerHeader, lane=Lane.ADMIN)
def unregister_broker(namesrv: NameServer, request: Request[UnRegisterBrokerHeader]) -> Command:
    header = request.header
    leaving = Unregistration(
        header.cluster_name, header.broker_addr, header.broker_name, header.broker_id
    )
    namesrv.tell_of_min_broker_id(namesrv.routes.unregister([leaving]))
    logger.info("broker unregistered name=%s address=%s", leaving.name, leaving.address)
    return request.reply()


@namesrv_handlers.handles(RequestCode.BROKER_HEARTBEAT, BrokerHeartbeatHeader, lane=Lane.ADMIN)
def broker_heartbeat(namesrv: NameServer, request: Request[BrokerHeartbeatHeader]) -> Command:
    header = request.header
    namesrv.routes.touch(BrokerAddress(header.cluster_name, header.broker_addr))
    return request.reply()


@namesrv_handlers.handles(RequestCode.QUERY_DATA_VERSION, QueryDataVersionHeader, lane=Lane.ADMIN)
def query_data_version(namesrv: NameServer, request: Request[QueryDataVersionHeader]) -> Command:
    """Asked by brokers with forceRegister=false before they send all their topics.

    A heartbeat too.
    """
    key = BrokerAddress(request.header.cluster_name, request.header.broker_addr)
    try:
        asked = DataVersion.decode(request.command.body)
    except RegisterBodyError as error:
        raise RequestRefused(ResponseCode.SYSTEM_ERROR, str(error)) from None
    changed = namesrv.routes.is_changed(key, asked)
    namesrv.routes.touch(key)
    known = namesrv.routes.data_version(key)
    header = QueryDataVersionReplyHeader(changed=changed)
    return request.reply(header=header, body=b"" if known is None else known.encode())


@namesrv_handlers.handles(
    RequestCode.GET_BROKER_MEMBER_GROUP, GetBrokerMemberGroupHeader, lane=Lane.ADMIN
)
def get_broker_member_group(
    namesrv: NameServer, request: Request[GetBrokerMemberGroupHeader]
) -> Command:
    """An unknown name is a group without members."""
    header = request.header
    group = {
        "brokerAddrs": namesrv.routes.members_of(header.broker_name),
        "brokerName": header.broker_name,
        "cluster": header.cluster_name,
    }
    remark = "not set any response code"  # Java sets the code and the body only
    return request.reply(remark=remark, body=fastjson.dumps({"brokerMemberGroup": group}))


@namesrv_handlers.handles(RequestCode.GET_BROKER_CLUSTER_INFO, None, lane=Lane.ADMIN)
def get_broker_cluster_info(namesrv: NameServer, request: Request[None]) -> Command:
    groups, clusters = namesrv.routes.clusters()
    info = {
        "brokerAddrTable": {group.name: broker_group_json(group) for group in groups},
        "clusterAddrTable": clusters,
    }
    return request.reply(body=fastjson.dumps(info))


@namesrv_handlers.handles(
    RequestCode.WIPE_WRITE_PERM_OF_BROKER, WipeWritePermOfBrokerHeader, lane=Lane.ADMIN
)
def wipe_write_perm_of_broker(
    namesrv: NameServer, request: Request[WipeWritePermOfBrokerHeader]
) -> Command:
    """The broker's next registration with a new data version gives the permission back."""
    count = namesrv.routes.set_write_perm(request.header.broker_name, writable=False)
    logger.info("write perm wiped broker=%s topics=%d", request.header.broker_name, count)
    return request.reply(header=WipeWritePermOfBrokerReplyHeader(wipe_topic_count=count))


@namesrv_handlers.handles(
    RequestCode.ADD_WRITE_PERM_OF_BROKER, AddWritePermOfBrokerHeader, lane=Lane.ADMIN
)
def add_write_perm_of_broker(
    namesrv: NameServer, request: Request[AddWritePermOfBrokerHeader]
) -> Command:
    count = namesrv.routes.set_write_perm(request.header.broker_name, writable=True)
    logger.info("write perm added broker=%s topics=%d", request.header.broker_name, count)
    return request.reply(header=AddWritePermOfBrokerReplyHeader(add_topic_count=count))
