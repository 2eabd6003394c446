"""The name server's own configuration, as tools read and change it. Lane ADMIN."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from pyritemq.compat.conf.settings import ConfigError
from pyritemq.compat.namesrv_conf import NAMESRV_CONFIG_SECTIONS
from pyritemq.compat.properties_file import (
    PropertiesError,
    parse_properties,
    print_properties,
)
from pyritemq.protocol.codes import RequestCode, ResponseCode
from pyritemq.server.lanes import Lane
from pyritemq.server.registry import Request, RequestRefused, namesrv_handlers

if TYPE_CHECKING:
    from pyritemq.protocol.command import Command
    from pyritemq.server.namesrv.namesrv import NameServer

logger = logging.getLogger(__name__)


@namesrv_handlers.handles(RequestCode.GET_NAMESRV_CONFIG, None, lane=Lane.ADMIN)
def get_namesrv_config(namesrv: NameServer, request: Request[None]) -> Command:
    properties = namesrv.config.to_properties(NAMESRV_CONFIG_SECTIONS)
    return request.reply(body=print_properties(properties).encode())


@namesrv_handlers.handles(RequestCode.UPDATE_NAMESRV_CONFIG, None, lane=Lane.ADMIN)
def update_namesrv_config(namesrv: NameServer, request: Request[None]) -> Command:
    """Unknown keys are passed over as in Java.

    A value that cannot be used is refused, not ignored.
    """
    body = bytes(request.command.body)
    if not body:
        return request.reply()
    try:
        properties = parse_properties(body)
    except PropertiesError:
        raise RequestRefused(ResponseCode.SYSTEM_ERROR, "string2Properties error") from None
    if not namesrv.config.black_listed_keys.isdisjoint(properties):
        remark = "Can not update config in black list."
        raise RequestRefused(ResponseCode.NO_PERMISSION, remark)
    try:
        changes = namesrv.update_config(properties)
    except ConfigError as error:
        raise RequestRefused(ResponseCode.SYSTEM_ERROR, str(error)) from None
    for change in changes:
        logger.info("config changed key=%s old=%s new=%s", change.name, change.old, change.new)
    return request.reply()
