"""Who reads what, and who is connected.  Lane ADMIN."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyritemq.compat import fastjson
from pyritemq.protocol.codes import LanguageCode, RequestCode
from pyritemq.protocol.headers.admin import (
    QuerySubscriptionByConsumerHeader,
    QueryTopicConsumeByWhoHeader,
    QueryTopicsByConsumerHeader,
)
from pyritemq.server.lanes import Lane
from pyritemq.server.registry import Request, broker_handlers

if TYPE_CHECKING:
    from pyritemq.protocol.command import Command
    from pyritemq.server.broker.broker import Broker
    from pyritemq.server.broker.state.channels import Client


@broker_handlers.handles(
    RequestCode.QUERY_TOPIC_CONSUME_BY_WHO, QueryTopicConsumeByWhoHeader, lane=Lane.ADMIN
)
def query_topic_consume_by_who(
    broker: Broker, request: Request[QueryTopicConsumeByWhoHeader]
) -> Command:
    """Groups that subscribe to the topic now or have committed in it."""
    topic = request.header.topic
    groups = broker.consumers.groups_of_topic(topic) | broker.offsets.groups_of_topic(topic)
    return request.reply(body=fastjson.dumps({"groupList": sorted(groups)}))


@broker_handlers.handles(
    RequestCode.QUERY_TOPICS_BY_CONSUMER, QueryTopicsByConsumerHeader, lane=Lane.ADMIN
)
def query_topics_by_consumer(
    broker: Broker, request: Request[QueryTopicsByConsumerHeader]
) -> Command:
    topics = sorted(broker.offsets.topics_of_group(request.header.group))
    body = {"brokerAddr": broker.advertised_address, "topicList": topics}
    return request.reply(body=fastjson.dumps(body))


@broker_handlers.handles(
    RequestCode.QUERY_SUBSCRIPTION_BY_CONSUMER, QuerySubscriptionByConsumerHeader, lane=Lane.ADMIN
)
def query_subscription_by_consumer(
    broker: Broker, request: Request[QuerySubscriptionByConsumerHeader]
) -> Command:
    asked = request.header
    found = broker.consumers.find_subscription(asked.group, asked.topic or "")
    body = {
        "group": asked.group,
        "subscriptionData": None if found is None else found.to_json(),
        "topic": asked.topic,
    }
    return request.reply(body=fastjson.dumps(body))


@broker_handlers.handles(RequestCode.GET_ALL_PRODUCER_INFO, None, lane=Lane.ADMIN)
def get_all_producer_info(broker: Broker, request: Request[None]) -> Command:
    data = {
        group: [_producer(broker, client) for client in clients]
        for group, clients in broker.producers.groups().items()
    }
    return request.reply(body=fastjson.dumps({"data": data}))


def _producer(broker: Broker, client: Client) -> dict[str, Any]:
    known = client.language in LanguageCode.__members__.values()
    silent_ms = broker.clock.monotonic_ns() // 1_000_000 - client.seen_ms
    return {
        "clientId": client.client_id,
        "language": LanguageCode(client.language).name if known else None,
        "lastUpdateTimestamp": broker.clock.now_ms() - silent_ms,
        "remoteIP": client.channel.remote_address,
        "version": client.version,
    }
