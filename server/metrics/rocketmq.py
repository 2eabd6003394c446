"""RocketMQ 5.5.0's broker metrics: its names, types and labels, as its own endpoint shows them.

`tests/golden/metrics/broker-5.5.0.json` holds what a real broker shows.  The families are grouped
by the settings that turn them off (enableRequestMetrics and the like).
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from pyritemq.compat.versions import version_name
from pyritemq.protocol.codes import LanguageCode
from pyritemq.server.broker.state import events, names
from pyritemq.server.lanes import Lane
from pyritemq.server.latencies import request_name, response_name
from pyritemq.server.metrics.lag import lags
from pyritemq.server.metrics.store import store_families
from pyritemq.server.metrics.text import COUNTER, GAUGE, HISTOGRAM, Family

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyritemq.server.broker.broker import Broker
    from pyritemq.server.broker.state.channels import Client
    from pyritemq.server.broker.state.stats import Received
    from pyritemq.server.latencies import RequestLatencies

    Labels = dict[str, str]

PROCESSORS = {
    "ack": Lane.ACK,
    "admin": Lane.ADMIN,
    "async_put": None,
    "client_manager": Lane.CLIENT,
    "consumer_manager": Lane.CONSUMER,
    "heartbeat": Lane.CLIENT,
    "lite_pull": Lane.PULL,
    "pull": Lane.PULL,
    "query_message": Lane.QUERY,
    "reply": Lane.REPLY,
    "send": Lane.SEND,
    "transaction": Lane.TRANSACTION,
}
"""Java's thread pools and the lanes that do their work here."""

CONSUME_MODES = {"CONSUME_ACTIVELY": "pull", "CONSUME_PASSIVELY": "push", "CONSUME_POP": "pop"}
TYPE_OF_SYSTEM_TOPIC = {
    names.SCHEDULE_TOPIC: "delay",
    names.TIMER_TOPIC: "delay",
    names.TRANS_HALF_TOPIC: "transaction",
}
MESSAGE_TYPE = "message.type"
SCHEDULE_GROUP = "SCHEDULE_CONSUMER"


def broker_families(broker: Broker, latencies: RequestLatencies | None) -> Iterator[Family]:
    """All that is enabled."""
    config, labels = broker.config, common_labels(broker)
    if config.enable_stats_metrics:
        yield from _stats(broker, labels)
    if config.enable_request_metrics:
        yield from _requests(broker, labels)
    if config.enable_connection_metrics:
        yield from _connections(broker, labels)
    if config.enable_lag_and_dlq_metrics:
        yield from _lag(broker, labels)
    if config.enable_remoting_metrics and latencies is not None:
        yield _latencies(latencies, labels)
    store_labels = labels | {"storage_medium": "disk", "storage_type": "local"}
    if config.enable_message_store_metrics:
        yield from store_families(broker, store_labels)
    yield from _events(broker, labels, store_labels)


def common_labels(broker: Broker) -> Labels:
    """On every sample; those of metricsLabel (`a:b,c:d`) can not replace Java's own."""
    pairs = [item.split(":") for item in broker.config.metrics_label.split(",")]
    asked = {pair[0]: pair[1] for pair in pairs if len(pair) == 2 and pair[0].isidentifier()}
    return asked | {
        "cluster": broker.config.broker_cluster_name,
        "node_id": broker.config.broker_name,
        "node_type": "broker",
        "otel_scope_name": "broker-meter",
    }


def is_true(value: bool) -> str:
    return "true" if value else "false"


def _stats(broker: Broker, labels: Labels) -> Iterator[Family]:
    watermark = Family("rocketmq_processor_watermark", GAUGE, "Requests that wait, by thread pool")
    for processor, lane in PROCESSORS.items():
        pool = None if lane is None else broker.lanes.get(lane)
        queued = 0 if pool is None else pool.statistics().queued
        watermark.add(queued, labels | {"processor": processor})
    yield watermark
    gauges = {
        "rocketmq_broker_permission": ("The broker's permission", broker.config.broker_permission),
        "rocketmq_topic_number": ("Topics", len(broker.topics.snapshot.table)),
        "rocketmq_consumer_group_number": ("Groups", len(broker.groups.snapshot.table)),
    }
    for name, (text, value) in gauges.items():
        family = Family(name, GAUGE, text)
        family.add(value, labels)
        yield family


def _requests(broker: Broker, labels: Labels) -> Iterator[Family]:
    came = Family("rocketmq_messages_in_total", COUNTER, "Messages that came in")
    bytes_in = Family("rocketmq_throughput_in_total", COUNTER, "Bytes of messages that came in")
    sizes = Family("rocketmq_message_size", HISTOGRAM, "Sizes of messages that came in")
    left = Family("rocketmq_messages_out_total", COUNTER, "Messages that went out")
    bytes_out = Family("rocketmq_throughput_out_total", COUNTER, "Bytes of messages that went out")
    delayed_nums = delayed_size = 0
    for some in broker.stats.received():
        if some.is_delayed:
            delayed_nums += some.nums
            delayed_size += some.size
        if some.topic.startswith((names.RETRY_TOPIC_PREFIX, names.DLQ_TOPIC_PREFIX)):
            continue
        its = labels | {"topic": some.topic, "message_type": _message_type(broker, some)}
        its["is_system"] = is_true(some.is_system)
        came.add(some.nums, its)
        bytes_in.add(some.size, its)
        sizes.add_histogram(some.sizes, its)
    given = [(one.topic, one.group, one.nums, one.size) for one in broker.stats.given()]
    if delayed_nums:
        given.append((names.SCHEDULE_TOPIC, SCHEDULE_GROUP, delayed_nums, delayed_size))
    for topic, group, nums, size in given:
        if topic.startswith((names.RETRY_TOPIC_PREFIX, names.DLQ_TOPIC_PREFIX)):
            continue
        is_system = broker.topics.is_system_topic(topic) or names.is_system_group(group)
        its = labels | {"topic": topic, "consumer_group": group, "is_system": is_true(is_system)}
        left.add(nums, its)
        bytes_out.add(size, its)
    yield from (came, bytes_in, sizes, left, bytes_out)


def _message_type(broker: Broker, some: Received) -> str:
    """From where it is stored and what its topic is for; Java looks at each message."""
    if some.is_delayed:
        return "delay"
    topic = broker.topics.get(some.topic)
    declared = "" if topic is None else topic.attributes.get(MESSAGE_TYPE, "")
    if declared == "FIFO":
        return "fifo"
    return TYPE_OF_SYSTEM_TOPIC.get(some.topic, "normal")


def _connections(broker: Broker, labels: Labels) -> Iterator[Family]:
    producers = Family("rocketmq_producer_connections", GAUGE, "Connections of producers")
    kinds = Counter(
        _kind(client) for clients in broker.producers.groups().values() for client in clients
    )
    for (language, version), count in kinds.items():
        its = {"language": language, "version": version, "protocol_type": "remoting"}
        producers.add(count, labels | its)
    yield producers
    consumers = Family("rocketmq_consumer_connections", GAUGE, "Connections of consumers")
    for name, group in broker.consumers.groups().items():
        mode = CONSUME_MODES.get(group.consume_type or "", "unknown")
        kinds = Counter(_kind(client) for client in group.clients.values())
        for (language, version), count in kinds.items():
            its = {"language": language, "version": version, "protocol_type": "remoting"}
            its |= {"consumer_group": name, "consume_mode": mode}
            its["is_system"] = is_true(names.is_system_group(name))
            consumers.add(count, labels | its)
    yield consumers


def _kind(client: Client) -> tuple[str, str]:
    try:
        language = LanguageCode(client.language).name.lower()
    except ValueError:
        language = "other"
    return language, version_name(client.version).lower()


def _lag(broker: Broker, labels: Labels) -> Iterator[Family]:
    lag = Family("rocketmq_consumer_lag_messages", GAUGE, "Messages that were not consumed yet")
    lag_ms = Family(
        "rocketmq_consumer_lag_latency_milliseconds", GAUGE, "How long the oldest of them waits"
    )
    inflight = Family(
        "rocketmq_consumer_inflight_messages", GAUGE, "Messages that are being consumed"
    )
    queueing_ms = Family(
        "rocketmq_consumer_queueing_latency_milliseconds",
        GAUGE,
        "How long the oldest message waits that was not pulled yet",
    )
    ready = Family("rocketmq_consumer_ready_messages", GAUGE, "Messages that were not pulled yet")
    families = (lag, lag_ms, inflight, queueing_ms, ready)
    for one in lags(broker):
        is_system = broker.topics.is_system_topic(one.topic) or names.is_system_group(one.group)
        its = {"consumer_group": one.group, "topic": one.topic, "is_retry": "false"}
        its |= labels | {"is_system": is_true(is_system)}
        for family, value in zip(families, one[2:], strict=True):
            family.add(value, its)
    yield from families


def _latencies(latencies: RequestLatencies, labels: Labels) -> Family:
    family = Family(
        "rocketmq_rpc_latency_milliseconds", HISTOGRAM, "Time from a request to its reply"
    )
    for (request_code, response_code, oneway), histogram in latencies.snapshot():
        its = {
            "request_code": request_name(request_code),
            "response_code": response_name(response_code),
            "is_long_polling": "false",
            "protocol_type": "remoting",
            "result": "oneway" if oneway else "success",
        }
        family.add_histogram(histogram, labels | its)
    return family


def _events(broker: Broker, labels: Labels, store_labels: Labels) -> Iterator[Family]:
    """What is counted one by one; families in the order in which they first happened."""
    config = broker.config
    of_store = (events.TIMER_IN, events.TIMER_OUT, events.DELAY_LATENCY)
    is_on = {
        events.SENT_TO_DLQ: config.enable_lag_and_dlq_metrics,
        events.COMMITTED: config.enable_transaction_metrics,
        events.ROLLED_BACK: config.enable_transaction_metrics,
        events.FINISH_LATENCY: config.enable_transaction_metrics,
        events.TOPIC_CREATE_TIME: config.enable_request_metrics,
        events.GROUP_CREATE_TIME: config.enable_request_metrics,
    } | dict.fromkeys(of_store, config.enable_message_store_metrics)
    families: dict[str, Family] = {}
    for counter, its, value in broker.events.counts():
        if is_on[counter]:
            family = families.setdefault(counter.name, Family(counter.name, COUNTER, counter.text))
            family.add(value, (store_labels if counter in of_store else labels) | dict(its))
    for event, its, histogram in broker.events.histograms():
        if is_on[event]:
            family = families.setdefault(event.name, Family(event.name, HISTOGRAM, event.text))
            common = store_labels if event in of_store else labels
            family.add_histogram(histogram, common | dict(its))
    yield from families.values()
