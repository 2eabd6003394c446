"""The broker's configuration, as tools read and change it while it runs.  Lane ADMIN.

`brokerIP1` and `listenPort` change the address that clients are told, not the sockets: containers
learn only after their start under which address and port they are reached.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from pyritemq.compat import fastjson
from pyritemq.compat.conf.settings import ConfigError
from pyritemq.compat.properties_file import PropertiesError, parse_properties
from pyritemq.protocol.codes import RequestCode, ResponseCode
from pyritemq.protocol.headers.admin import GetBrokerConfigReplyHeader
from pyritemq.server.host import resolve
from pyritemq.server.lanes import Lane
from pyritemq.server.registry import Request, RequestRefused, broker_handlers

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyritemq.compat.conf.settings import Change
    from pyritemq.protocol.command import Command
    from pyritemq.server.broker.broker import Broker

logger = logging.getLogger(__name__)

PERMISSION = "brokerPermission"
ADDRESS = frozenset({"brokerIP1", "listenPort"})


@broker_handlers.handles(RequestCode.GET_BROKER_CONFIG, None, lane=Lane.ADMIN)
def get_broker_config(broker: Broker, request: Request[None]) -> Command:
    version = fastjson.dumps(broker.live_config.version.to_json()).decode()
    header = GetBrokerConfigReplyHeader(version=version)
    return request.reply(header=header, body=broker.live_config.show().encode())


@broker_handlers.handles(RequestCode.UPDATE_BROKER_CONFIG, None, lane=Lane.ADMIN)
def update_broker_config(broker: Broker, request: Request[None]) -> Command:
    """All of the properties or none: what Java ignores without a word is refused here."""
    properties = _properties(bytes(request.command.body))
    if any(map(broker.live_config.is_black_listed, properties)):
        raise RequestRefused(ResponseCode.NO_PERMISSION, "Can not update config in black list.")
    if properties:
        for change in _update(broker, properties):
            logger.info(
                "config changed key=%s old=%s new=%s peer=%s",
                *change,
                request.channel.remote_address,
            )
        _tell_name_servers(broker, properties)
    return request.reply()


def _properties(body: bytes) -> dict[str, str]:
    """The update as text; a later line wins."""
    try:
        return parse_properties(body.decode("utf-8"))
    except (PropertiesError, UnicodeDecodeError):
        raise RequestRefused(ResponseCode.SYSTEM_ERROR, "string2Properties error") from None


def _update(broker: Broker, properties: Mapping[str, str]) -> list[Change]:
    try:
        if "brokerIP1" in properties:
            resolve(properties["brokerIP1"].strip())
        changes = broker.live_config.update(properties)
    except (ConfigError, ValueError) as error:
        raise RequestRefused(ResponseCode.INVALID_PARAMETER, str(error)) from None
    broker.configured()
    return changes


def _tell_name_servers(broker: Broker, properties: Mapping[str, str]) -> None:
    """At once, and waits for them: whoever changes a permission or an address builds on it next."""
    if PERMISSION in properties:
        broker.topics.new_version()
        broker.registration.renew()
    if not ADDRESS.isdisjoint(properties):
        host, _, port = broker.advertised_address.rpartition(":")
        if "brokerIP1" in properties:
            host = resolve(broker.config.broker_ip1)
        broker.advertise(
            host, broker.config.listen_port if "listenPort" in properties else int(port)
        )
    if PERMISSION in properties or not ADDRESS.isdisjoint(properties):
        broker.registration.settle()
