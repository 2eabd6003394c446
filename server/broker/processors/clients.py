"""Clients come, stay and go: heartbeats, unregistration, client checks, consumer lists.

On the client lane; consumer lists, which rebalancing clients ask for, on the consumer lane; tools'
connection lists on the admin lane.  Replies and remarks are those of ClientManageProcessor,
ConsumerManageProcessor and AdminBrokerProcessor of 5.5.0.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, TypeVar

from pyritemq.compat import fastjson
from pyritemq.protocol.codes import LanguageCode, RequestCode, ResponseCode
from pyritemq.protocol.fields import Header, header
from pyritemq.protocol.headers.client import GetConsumerListByGroupHeader, UnregisterClientHeader
from pyritemq.protocol.headers.rpc import RpcHeader
from pyritemq.server.broker.filters.selector_nodes import SelectorError
from pyritemq.server.broker.filters.sql92 import compile_expression, no_such_filter
from pyritemq.server.broker.state.channels import Client
from pyritemq.server.broker.state.names import retry_topic
from pyritemq.server.broker.state.subscriptions import (
    CONSUME_ACTIVELY,
    decode_client_check,
    decode_heartbeat,
)
from pyritemq.server.broker.state.topics import FLAG_UNIT_SUB
from pyritemq.server.lanes import Lane
from pyritemq.server.registry import RequestRefused, broker_handlers

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyritemq.protocol.command import Command
    from pyritemq.server.broker.broker import Broker
    from pyritemq.server.broker.state.groups import SubscriptionGroupConfig
    from pyritemq.server.broker.state.subscriptions import ConsumerData, Heartbeat
    from pyritemq.server.connection import Channel
    from pyritemq.server.registry import Request

logger = logging.getLogger(__name__)

T = TypeVar("T")


@header
class GetConsumerConnectionListHeader(RpcHeader):
    consumer_group: str


@header
class GetProducerConnectionListHeader(RpcHeader):
    producer_group: str


@broker_handlers.handles(RequestCode.HEART_BEAT, None, lane=Lane.CLIENT)
def heart_beat(broker: Broker, request: Request[None]) -> Command:
    beat = _decoded(decode_heartbeat, request, broker)
    changed = [_consumer_beat(broker, request, beat, data) for data in beat.consumers]
    for group in beat.producer_groups:
        broker.producers.register(group, _client(request, beat.client_id))
    if request.channel.closed:
        # The connection ended while this ran, perhaps after its notice of it had been served.
        forget_channel(broker, request.channel)
    ext_fields = {
        "IS_SUPPORT_HEART_BEAT_V2": "true",
        "IS_SUB_CHANGE": "true" if beat.fingerprint == 0 or any(changed) else "false",
    }
    return request.command.make_reply(ResponseCode.SUCCESS, ext_fields=ext_fields)


def _consumer_beat(
    broker: Broker, request: Request[None], beat: Heartbeat, data: ConsumerData
) -> bool:
    """Register one consumer group; whether the client must send its subscriptions again."""
    if broker.config.reject_pull_consumer_enable and data.consume_type == CONSUME_ACTIVELY:
        return False
    group = broker.groups.find(data.group_name)
    if group is None:
        return False
    _ensure_retry_topic(broker, group, data)
    with_subscriptions = not (beat.fingerprint and beat.without_sub)
    broker.consumers.register(
        data,
        _client(request, beat.client_id),
        notify=group.notify_consumer_ids_changed_enable,
        with_subscriptions=with_subscriptions,
    )
    if with_subscriptions:
        broker.filters.register(data.group_name, data.subscriptions)
    before = broker.consumers.exchange_fingerprint(data.group_name, beat.fingerprint)
    # Java answers "no change" to a client whose subscriptions it has never seen (a broker that was
    # restarted) and serves the group nothing from then on; here the client is asked for them.
    return beat.without_sub if before is None else before != beat.fingerprint


def _ensure_retry_topic(broker: Broker, group: SubscriptionGroupConfig, data: ConsumerData) -> None:
    broker.topics.create_on_send_back(
        retry_topic(data.group_name),
        queue_nums=group.retry_queue_nums,
        order=any(broker.topics.is_order_topic(sub.topic) for sub in data.subscriptions),
        topic_sys_flag=FLAG_UNIT_SUB if data.unit_mode else 0,
    )


@broker_handlers.handles(RequestCode.UNREGISTER_CLIENT, UnregisterClientHeader, lane=Lane.CLIENT)
def unregister_client(broker: Broker, request: Request[UnregisterClientHeader]) -> Command:
    leaving = request.header
    if leaving.producer_group is not None:
        broker.producers.unregister(leaving.producer_group, request.channel)
    if leaving.consumer_group is not None:
        group = broker.groups.find(leaving.consumer_group)
        notify = group is None or group.notify_consumer_ids_changed_enable
        broker.consumers.unregister(leaving.consumer_group, request.channel, notify=notify)
    return request.reply(header=Header())


@broker_handlers.handles(RequestCode.CHECK_CLIENT_CONFIG, None, lane=Lane.CLIENT)
def check_client_config(broker: Broker, request: Request[None]) -> Command:
    subscription = _decoded(decode_client_check, request, broker).subscription
    if subscription is None or subscription.is_tag_type:
        return request.reply()
    if not broker.config.enable_property_filter:
        raise RequestRefused(
            ResponseCode.SYSTEM_ERROR, no_such_filter(subscription.expression_type)
        )
    try:
        compile_expression(subscription.expression_type, subscription.sub_string)
    except SelectorError as error:
        raise RequestRefused(ResponseCode.SUBSCRIPTION_PARSE_FAILED, str(error)) from None
    return request.reply()


@broker_handlers.handles(
    RequestCode.GET_CONSUMER_LIST_BY_GROUP, GetConsumerListByGroupHeader, lane=Lane.CONSUMER
)
def get_consumer_list_by_group(
    broker: Broker, request: Request[GetConsumerListByGroupHeader]
) -> Command:
    name = request.header.consumer_group
    group = broker.consumers.get(name)
    if group is None:
        raise RequestRefused(
            ResponseCode.SYSTEM_ERROR, f"no consumer for this group, {name}", Header()
        )
    body = fastjson.dumps({"consumerIdList": group.client_ids})
    return request.reply(header=Header(), body=body)


@broker_handlers.handles(
    RequestCode.GET_CONSUMER_CONNECTION_LIST, GetConsumerConnectionListHeader, lane=Lane.ADMIN
)
def get_consumer_connection_list(
    broker: Broker, request: Request[GetConsumerConnectionListHeader]
) -> Command:
    name = request.header.consumer_group
    group = broker.consumers.get(name)
    if group is None:
        raise RequestRefused(
            ResponseCode.CONSUMER_NOT_ONLINE, f"the consumer group[{name}] not online"
        )
    body = {
        "connectionSet": [_connection(client) for client in group.clients.values()],
        "consumeFromWhere": group.consume_from_where,
        "consumeType": group.consume_type,
        "messageModel": group.message_model,
        "subscriptionTable": {
            topic: subscription.to_json() for topic, subscription in group.subscriptions.items()
        },
    }
    return request.reply(body=fastjson.dumps(body))


@broker_handlers.handles(
    RequestCode.GET_PRODUCER_CONNECTION_LIST, GetProducerConnectionListHeader, lane=Lane.ADMIN
)
def get_producer_connection_list(
    broker: Broker, request: Request[GetProducerConnectionListHeader]
) -> Command:
    name = request.header.producer_group
    clients = broker.producers.clients(name)
    if clients is None:
        raise RequestRefused(ResponseCode.SYSTEM_ERROR, f"the producer group[{name}] not exist")
    return request.reply(body=fastjson.dumps({"connectionSet": [*map(_connection, clients)]}))


def forget_channel(broker: Broker, channel: Channel) -> None:
    """A connection is gone: its clients leave all groups, and the groups are told."""
    broker.producers.channel_closed(channel)
    broker.consumers.channel_closed(channel)


def _client(request: Request[None], client_id: str) -> Client:
    command = request.command
    return Client(request.channel, client_id, command.language, command.version)


def _connection(client: Client) -> dict[str, Any]:
    known = client.language in LanguageCode.__members__.values()
    return {
        "clientAddr": client.channel.remote_address,
        "clientId": client.client_id,
        "language": LanguageCode(client.language).name if known else None,
        "version": client.version,
    }


def _decoded(decode: Callable[..., T], request: Request[None], broker: Broker) -> T:
    try:
        return decode(request.command.body, now_ms=broker.clock.now_ms())
    except (ValueError, TypeError) as error:
        raise RequestRefused(
            ResponseCode.SYSTEM_ERROR, f"the body cannot be read: {error}"
        ) from None
