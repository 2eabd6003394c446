"""How much and how far: topics, groups and the broker's counters.  Lane ADMIN."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyritemq.compat import fastjson
from pyritemq.protocol.codes import RequestCode, ResponseCode
from pyritemq.protocol.headers.admin import (
    GetConsumeStatsHeader,
    GetConsumeStatsInBrokerHeader,
    GetTopicStatsInfoHeader,
    QueryConsumeTimeSpanHeader,
    ViewBrokerStatsDataHeader,
)
from pyritemq.server.broker.processors.locks import queue_to_json
from pyritemq.server.broker.state.queue_locks import MessageQueue
from pyritemq.server.lanes import Lane
from pyritemq.server.registry import Request, RequestRefused, broker_handlers

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyritemq.compat.register_body import TopicConfig
    from pyritemq.protocol.command import Command
    from pyritemq.server.broker.broker import Broker
    from pyritemq.server.broker.state.stats import Rate


@broker_handlers.handles(RequestCode.GET_TOPIC_STATS_INFO, GetTopicStatsInfoHeader, lane=Lane.ADMIN)
def get_topic_stats_info(broker: Broker, request: Request[GetTopicStatsInfoHeader]) -> Command:
    topic = _topic(broker, request.header.topic)
    queue_nums = max(topic.write_queue_nums, topic.read_queue_nums)
    table = {
        queue_key(broker, topic.topic_name, queue_id): _queue_stats(
            broker, topic.topic_name, queue_id
        )
        for queue_id in range(queue_nums)
    }
    tps = broker.stats.tps_topic_put(topic.topic_name)
    return request.reply(body=fastjson.dumps({"offsetTable": table, "topicPutTps": tps}))


def _queue_stats(broker: Broker, topic: str, queue_id: int) -> dict[str, int]:
    store = broker.store
    end = max(0, store.max_offset(topic, queue_id))
    return {
        "lastUpdateTimestamp": store.store_time_at(topic, queue_id, end - 1) if end else 0,
        "maxOffset": end,
        "minOffset": max(0, store.min_offset(topic, queue_id)),
    }


@broker_handlers.handles(RequestCode.GET_CONSUME_STATS, GetConsumeStatsHeader, lane=Lane.ADMIN)
def get_consume_stats(broker: Broker, request: Request[GetConsumeStatsHeader]) -> Command:
    asked = request.header
    group = asked.consumer_group
    topics = asked.topics or _subscribed(broker, group, _topics_of(broker, asked))
    table: dict[fastjson.ObjectKey, dict[str, int]] = {}
    tps = 0.0
    for name in dict.fromkeys(topics):
        topic = broker.topics.get(name)
        if topic is not None:
            table |= _offsets(broker, group, topic, topic.read_queue_nums, with_pulls=True)
            tps += broker.stats.tps_group_get(group, name)
    return request.reply(body=fastjson.dumps({"consumeTps": tps, "offsetTable": table}))


def _topics_of(broker: Broker, asked: GetConsumeStatsHeader) -> Iterable[str]:
    if asked.topic is not None and asked.topic.strip():
        return [asked.topic]
    return sorted(broker.offsets.topics_of_group(asked.consumer_group))


def _subscribed(broker: Broker, group: str, topics: Iterable[str]) -> list[str]:
    """Of these topics those that the group subscribes to; all of them if nobody is online."""
    online = broker.consumers.get(group)
    if online is None or not online.subscriptions:
        return list(topics)
    return [topic for topic in topics if topic in online.subscriptions]


def _offsets(
    broker: Broker, group: str, topic: TopicConfig, queue_nums: int, *, with_pulls: bool
) -> dict[fastjson.ObjectKey, dict[str, int]]:
    return {
        queue_key(broker, topic.topic_name, queue_id): _progress(
            broker, group, topic.topic_name, queue_id, with_pulls=with_pulls
        )
        for queue_id in range(queue_nums)
    }


def _progress(
    broker: Broker, group: str, topic: str, queue_id: int, *, with_pulls: bool
) -> dict[str, int]:
    """Java's OffsetWrapper."""
    committed = max(0, broker.offsets.query(group, topic, queue_id))
    pulled = broker.offsets.query_pull(group, topic, queue_id) if with_pulls else 0
    consumed_at = broker.store.store_time_at(topic, queue_id, committed - 1) if committed else 0
    return {
        "brokerOffset": max(0, broker.store.max_offset(topic, queue_id)),
        "consumerOffset": committed,
        "lastTimestamp": max(0, consumed_at),
        "pullOffset": max(committed, pulled) if with_pulls else 0,
    }


@broker_handlers.handles(
    RequestCode.GET_BROKER_CONSUME_STATS, GetConsumeStatsInBrokerHeader, lane=Lane.ADMIN
)
def get_broker_consume_stats(
    broker: Broker, request: Request[GetConsumeStatsInBrokerHeader]
) -> Command:
    groups = [
        {group: _consume_stats_of(broker, group, only_ordered=request.header.is_order)}
        for group in broker.groups.snapshot.table
    ]
    progress = [
        queue
        for group in groups
        for stats in group.values()
        for topic in stats
        for queue in topic["offsetTable"].values()
    ]
    body = {
        "brokerAddr": broker.advertised_address,
        "consumeStatsList": groups,
        "totalDiff": sum(queue["brokerOffset"] - queue["consumerOffset"] for queue in progress),
        "totalInflightDiff": sum(
            queue["pullOffset"] - queue["consumerOffset"] for queue in progress
        ),
    }
    return request.reply(body=fastjson.dumps(body))


def _consume_stats_of(broker: Broker, group: str, *, only_ordered: bool) -> list[dict[str, Any]]:
    found = []
    for name in _subscribed(broker, group, sorted(broker.offsets.topics_of_group(group))):
        topic = broker.topics.get(name)
        if topic is not None and (topic.order or not only_ordered):
            table = _offsets(broker, group, topic, topic.write_queue_nums, with_pulls=False)
            tps = broker.stats.tps_group_get(group, name)
            found.append({"consumeTps": tps, "offsetTable": table})
    return found


@broker_handlers.handles(
    RequestCode.VIEW_BROKER_STATS_DATA, ViewBrokerStatsDataHeader, lane=Lane.ADMIN
)
def view_broker_stats_data(broker: Broker, request: Request[ViewBrokerStatsDataHeader]) -> Command:
    asked = request.header
    rates = broker.stats.view(asked.stats_name, asked.stats_key)
    if rates is None:
        raise RequestRefused(
            ResponseCode.SYSTEM_ERROR,
            f"The stats <{asked.stats_name}> <{asked.stats_key}> not exist",
        )
    body = {
        "statsDay": _rate(rates.day),
        "statsHour": _rate(rates.hour),
        "statsMinute": _rate(rates.minute),
    }
    return request.reply(body=fastjson.dumps(body))


def _rate(rate: Rate) -> dict[str, int | float]:
    return {"avgpt": rate.avgpt, "sum": rate.sum, "tps": rate.tps}


@broker_handlers.handles(
    RequestCode.QUERY_CONSUME_TIME_SPAN, QueryConsumeTimeSpanHeader, lane=Lane.ADMIN
)
def query_consume_time_span(
    broker: Broker, request: Request[QueryConsumeTimeSpanHeader]
) -> Command:
    topic = _topic(broker, request.header.topic)
    spans = [
        _time_span(broker, request.header.group, topic.topic_name, queue_id)
        for queue_id in range(topic.write_queue_nums)
    ]
    return request.reply(body=fastjson.dumps({"consumeTimeSpanSet": spans}))


def _time_span(broker: Broker, group: str, topic: str, queue_id: int) -> dict[str, Any]:
    store = broker.store
    first = store.earliest_store_time(topic, queue_id)
    end = store.max_offset(topic, queue_id)
    committed = broker.offsets.query(group, topic, queue_id)
    consumed = store.store_time_at(topic, queue_id, committed - 1) if committed > 0 else first
    waiting_since = store.store_time_at(topic, queue_id, committed) if committed < end else None
    return {
        "consumeTimeStamp": consumed,
        "delayTime": 0 if waiting_since is None else broker.clock.now_ms() - waiting_since,
        "maxTimeStamp": store.store_time_at(topic, queue_id, end - 1),
        "messageQueue": queue_to_json(MessageQueue(topic, broker.config.broker_name, queue_id)),
        "minTimeStamp": first,
    }


def queue_key(broker: Broker, topic: str, queue_id: int) -> fastjson.ObjectKey:
    """A queue of this broker as the key of a JSON map."""
    queue = MessageQueue(topic, broker.config.broker_name, queue_id)
    return fastjson.ObjectKey(queue_to_json(queue))


def _topic(broker: Broker, name: str) -> TopicConfig:
    topic = broker.topics.get(name)
    if topic is None:
        raise RequestRefused(ResponseCode.TOPIC_NOT_EXIST, f"topic[{name}] not exist")
    return topic
