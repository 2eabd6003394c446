"""Replication as tools and other brokers ask for it: a master without slaves.  Lane ADMIN."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyritemq.compat import fastjson
from pyritemq.protocol.codes import RequestCode, ResponseCode
from pyritemq.protocol.headers.admin import ExchangeHAInfoReplyHeader
from pyritemq.protocol.headers.registration import NotifyMinBrokerIdChangeHeader
from pyritemq.server.lanes import Lane
from pyritemq.server.registry import Request, RequestRefused, broker_handlers

if TYPE_CHECKING:
    from pyritemq.protocol.command import Command
    from pyritemq.server.broker.broker import Broker


@broker_handlers.handles(RequestCode.GET_BROKER_HA_STATUS, None, lane=Lane.ADMIN)
def get_broker_ha_status(broker: Broker, request: Request[None]) -> Command:
    body = {
        "haClientRuntimeInfo": {
            "activated": False,
            "lastReadTimestamp": 0,
            "lastWriteTimestamp": 0,
            "masterFlushOffset": 0,
            "maxOffset": 0,
            "transferredByteInSecond": 0,
        },
        "haConnectionInfo": [],
        "inSyncSlaveNums": 0,
        "master": True,
        "masterCommitLogMaxOffset": broker.store.max_phy_offset,
    }
    return request.reply(body=fastjson.dumps(body))


@broker_handlers.handles(RequestCode.EXCHANGE_BROKER_HA_INFO, None, lane=Lane.ADMIN)
def exchange_broker_ha_info(broker: Broker, request: Request[None]) -> Command:
    header = ExchangeHAInfoReplyHeader(
        master_ha_address=f"{broker.config.broker_ip2}:{broker.config.ha_port}",
        master_flush_offset=0,
        master_address=broker.advertised_address,
    )
    return request.reply(header=header)


@broker_handlers.handles(RequestCode.RESET_MASTER_FLUSH_OFFSET, None, lane=Lane.ADMIN)
def reset_master_flush_offset(_: Broker, request: Request[None]) -> Command:
    """Only slaves keep such an offset; a master agrees and does nothing, as in Java."""
    return request.reply()


@broker_handlers.handles(RequestCode.GET_BROKER_EPOCH_CACHE, None, lane=Lane.ADMIN)
def get_broker_epoch_cache(_: Broker, request: Request[None]) -> Command:
    raise RequestRefused(ResponseCode.SYSTEM_ERROR, "this request only for controllerMode ")


@broker_handlers.handles(
    RequestCode.NOTIFY_MIN_BROKER_ID_CHANGE, NotifyMinBrokerIdChangeHeader, lane=Lane.ADMIN
)
def notify_min_broker_id_change(
    _: Broker, request: Request[NotifyMinBrokerIdChangeHeader]
) -> Command:
    """A name server tells who leads the group now; only a slave that may act as master cares."""
    return request.reply()


@broker_handlers.handles(RequestCode.NOTIFY_BROKER_ROLE_CHANGED, None, lane=Lane.ADMIN)
def notify_broker_role_changed(_: Broker, request: Request[None]) -> Command:
    """A controller's word; a Java broker outside controller mode agrees and does nothing."""
    return request.reply()
