"""Many groups at once, and what a group may not read.  Lane ADMIN."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyritemq.compat import fastjson
from pyritemq.protocol.codes import RequestCode, ResponseCode
from pyritemq.protocol.headers.admin import UpdateGroupForbiddenHeader
from pyritemq.server.broker.state.attributes import AttributeFault
from pyritemq.server.broker.state.groups import READ_BIT, SubscriptionGroupConfig
from pyritemq.server.broker.state.names import group_fault
from pyritemq.server.lanes import Lane
from pyritemq.server.registry import Request, RequestRefused, broker_handlers

if TYPE_CHECKING:
    from pyritemq.protocol.command import Command
    from pyritemq.server.broker.broker import Broker


@broker_handlers.handles(
    RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST, None, lane=Lane.ADMIN
)
def update_and_create_subscription_group_list(broker: Broker, request: Request[None]) -> Command:
    groups = _decode(request)
    for group in groups:
        fault = group_fault(group.group_name)
        if fault is not None:
            raise RequestRefused(ResponseCode.INVALID_PARAMETER, fault)
    for group in groups:
        try:
            broker.groups.update(group)
        except AttributeFault as error:
            raise RequestRefused(ResponseCode.SYSTEM_ERROR, str(error)) from None
    return request.reply()


def _decode(request: Request[None]) -> list[SubscriptionGroupConfig]:
    try:
        items = fastjson.loads(request.command.body).get("groupConfigList") or []
        return [SubscriptionGroupConfig.from_json(item) for item in items]
    except (ValueError, AttributeError, TypeError) as error:
        raise RequestRefused(
            ResponseCode.SYSTEM_ERROR, f"the body cannot be read: {error}"
        ) from None


@broker_handlers.handles(
    RequestCode.UPDATE_AND_GET_GROUP_FORBIDDEN, UpdateGroupForbiddenHeader, lane=Lane.ADMIN
)
def update_and_get_group_forbidden(
    broker: Broker, request: Request[UpdateGroupForbiddenHeader]
) -> Command:
    asked = request.header
    if asked.readable is not None:
        broker.groups.set_forbidden(
            asked.group, asked.topic, READ_BIT, forbidden=not asked.readable
        )
    body = {
        "group": asked.group,
        "readable": not broker.groups.is_forbidden(asked.group, asked.topic, READ_BIT),
        "topic": asked.topic,
    }
    return request.reply(remark="", body=fastjson.dumps(body))
