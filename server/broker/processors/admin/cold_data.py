"""Limits on reading old messages: kept and shown, without effect.  Lane ADMIN.

Java slows groups down that read what is no longer in memory, if coldDataFlowControlEnable is set;
it is not by default.  Here the limits are kept until the broker stops, as Java keeps them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyritemq.compat import fastjson
from pyritemq.compat.properties_file import PropertiesError, parse_properties
from pyritemq.protocol.codes import RequestCode, ResponseCode
from pyritemq.server.lanes import Lane
from pyritemq.server.registry import Request, RequestRefused, broker_handlers

if TYPE_CHECKING:
    from pyritemq.protocol.command import Command
    from pyritemq.server.broker.broker import Broker

GROUPS_MAX = 10_000
"""Far above what a broker has groups for; a bound on what a peer can make us keep."""


@broker_handlers.handles(RequestCode.UPDATE_COLD_DATA_FLOW_CTR_CONFIG, None, lane=Lane.ADMIN)
def update_cold_data_flow_ctr_config(broker: Broker, request: Request[None]) -> Command:
    """A threshold that is not a number is passed over, as in Java."""
    try:
        properties = parse_properties(bytes(request.command.body).decode("utf-8"))
    except (PropertiesError, UnicodeDecodeError):
        raise RequestRefused(ResponseCode.SYSTEM_ERROR, "string2Properties error") from None
    limits = broker.cold_data_limits
    for group, text in properties.items():
        if text.strip().lstrip("-").isdecimal() and len(text) <= 20 and len(limits) < GROUPS_MAX:
            limits[group] = int(text)
    return request.reply()


@broker_handlers.handles(RequestCode.REMOVE_COLD_DATA_FLOW_CTR_CONFIG, None, lane=Lane.ADMIN)
def remove_cold_data_flow_ctr_config(broker: Broker, request: Request[None]) -> Command:
    broker.cold_data_limits.pop(bytes(request.command.body).decode("utf-8", "replace"), None)
    return request.reply()


@broker_handlers.handles(RequestCode.GET_COLD_DATA_FLOW_CTR_INFO, None, lane=Lane.ADMIN)
def get_cold_data_flow_ctr_info(broker: Broker, request: Request[None]) -> Command:
    body = {
        "runtimeTable": {},
        "configTable": dict(broker.cold_data_limits),
        "cgColdReadThreshold": broker.config.cg_cold_read_threshold,
        "globalColdReadThreshold": broker.config.global_cold_read_threshold,
        "globalAcc": 0,
    }
    return request.reply(body=fastjson.dumps(body))
