"""Administration: topics, groups, configuration and statistics, by mqadmin and by its requests."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pyritemq.conformance import steps
from pyritemq.conformance import wire as wires
from pyritemq.conformance.catalogue import TOOLS, WIRE, case, family
from pyritemq.conformance.trial import bodies
from pyritemq.conformance.wire import java_json
from pyritemq.protocol.codes import RequestCode

if TYPE_CHECKING:
    from pyritemq.conformance.trial import Trial

family("ADMIN", "Administration")
TOPIC_NOT_EXIST = 17


@case(
    "ADMIN-001",
    "A topic is made and listed",
    source="mqadmin: updateTopic",
    run_with=TOOLS,
    core=True,
)
def make_topic(t: Trial) -> None:
    """updateTopic on a broker succeeds; topicList has it; topicRoute shows its queues."""
    topic = t.name("T")
    said = t.mqadmin(
        "updateTopic", "-b", t.servers.broker.address, "-t", topic, "-r", "3", "-w", "5"
    )
    t.true("success", "success" in said, said)
    t.eventually("listed", lambda: topic in t.mqadmin("topicList").split(), True)
    route = t.mqadmin("topicRoute", "-t", topic)
    t.true("queues", '"readQueueNums":3' in route and '"writeQueueNums":5' in route, route)


@case("ADMIN-002", "A topic is deleted", source="mqadmin: deleteTopic", run_with=TOOLS)
def delete_topic(t: Trial) -> None:
    """deleteTopic takes it from the name server and from the broker."""
    topic = t.topic(queues=1)
    said = t.mqadmin("deleteTopic", "-c", "DefaultCluster", "-t", topic)
    t.true("success", "success" in said, said)
    t.eventually("route", lambda: steps.route(t.namesrv_wire(), topic), None)
    reply = t.wire().call(RequestCode.GET_TOPIC_CONFIG, {"topic": topic, "lo": "true"})
    t.equal("at the broker", reply.code, TOPIC_NOT_EXIST)


@case(
    "ADMIN-003",
    "A topic's permission is changed",
    source="mqadmin: updateTopicPerm",
    run_with=TOOLS,
)
def change_permission(t: Trial) -> None:
    """updateTopicPerm to 4 shows in the route."""
    topic = t.topic(queues=1)
    t.mqadmin("updateTopicPerm", "-b", t.servers.broker.address, "-t", topic, "-p", "4")

    def permission() -> list[int]:
        found = steps.route(t.namesrv_wire(), topic) or {"queueDatas": []}
        return [one["perm"] for one in found["queueDatas"]]

    t.eventually("perm", permission, [4])


@case("ADMIN-004", "Offsets of a topic are shown", source="mqadmin: topicStatus", run_with=TOOLS)
def topic_status(t: Trial) -> None:
    """topicStatus has min 0 and max 3 for a queue with three messages."""
    topic, wire = t.topic(queues=1), t.wire()
    steps.fill_by_wire(wire, topic, 3)
    t.eventually("stored", lambda: steps.max_offset(wire, topic), 3)
    said = t.mqadmin("topicStatus", "-t", topic)
    line = [one.split() for one in said.splitlines() if one.startswith(t.servers.broker.name)]
    t.equal("queue, min, max", [one[1:4] for one in line], [["0", "0", "3"]])


@case(
    "ADMIN-005",
    "A group is made, listed and deleted",
    source="mqadmin: updateSubGroup",
    run_with=TOOLS,
)
def groups(t: Trial) -> None:
    """updateSubGroup makes it with its settings; after deleteSubGroup those are forgotten."""
    group, address = t.name("G"), t.servers.broker.address
    said = t.mqadmin("updateSubGroup", "-b", address, "-g", group, "-r", "7")
    t.true("success", "success" in said, said)

    def settings() -> int | None:
        reply = t.wire().call(RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG)
        table = java_json(reply.body)["subscriptionGroupTable"]
        return table[group]["retryMaxTimes"] if group in table else None

    t.equal("retryMaxTimes", settings(), 7)
    t.mqadmin("deleteSubGroup", "-b", address, "-g", group)
    t.true("forgotten", settings() != 7, settings())  # a broker may make it anew, with defaults


@case("ADMIN-006", "Progress of a group", source="mqadmin: consumerProgress")
def progress(t: Trial) -> None:
    """consumerProgress shows no difference after all was consumed."""
    topic, group = t.topic(queues=1), t.group()
    steps.fill(t, topic, 6)
    consumer = t.consumer(topic, group=group)
    consumer.received(6)
    steps.settled(t, consumer, topic, 1, 6)
    said = t.mqadmin("consumerProgress", "-g", group)
    total = re.search(r"Consume Diff Total: (-?\d+)", said) or re.search(
        r"Diff Total: (-?\d+)", said
    )
    t.equal("difference", total and total[1], "0")


@case("ADMIN-007", "Connections of a group", source="mqadmin: consumerConnection")
def connections(t: Trial) -> None:
    """consumerConnection shows the client id, its language and the subscription."""
    topic, group = t.topic(queues=1), t.group()
    consumer = t.consumer(topic, "TagA", group=group)
    t.eventually("queues", lambda: len(consumer.queues()), 1)

    def shown() -> bool:
        said = t.mqadmin("consumerConnection", "-g", group)
        return consumer.name in said and "JAVA" in said and topic in said and "TagA" in said

    t.eventually("shown", shown, True)


@case("ADMIN-008", "Connections of a producer", source="mqadmin: producerConnection")
def producer_connections(t: Trial) -> None:
    """producerConnection shows the client id."""
    topic, group = t.topic(queues=1), t.name("P")
    producer = t.producer(group=group)
    producer.send(topic, "x")

    def shown() -> bool:
        return producer.name in t.mqadmin("producerConnection", "-g", group, "-t", topic)

    t.eventually("shown", shown, True)


@case(
    "ADMIN-009",
    "A broker's setting is changed",
    source="mqadmin: updateBrokerConfig",
    run_with=TOOLS,
)
def broker_setting(t: Trial) -> None:
    """updateBrokerConfig of a setting shows in getBrokerConfig."""
    address = t.servers.broker.address
    said = t.mqadmin("updateBrokerConfig", "-b", address, "-k", "transactionCheckMax", "-v", "14")
    t.true("success", "success" in said, said)

    def value() -> str:
        text = t.mqadmin("getBrokerConfig", "-b", address)
        found = re.search(r"^transactionCheckMax\s*=\s*(\d+)", text, re.MULTILINE)
        return found[1] if found else text

    t.eventually("value", value, "14")


@case("ADMIN-010", "A broker tells of itself", source="mqadmin: brokerStatus", run_with=TOOLS)
def broker_status(t: Trial) -> None:
    """brokerStatus has version, boot time, disk and put figures."""
    said = t.mqadmin("brokerStatus", "-b", t.servers.broker.address)
    wanted = ("brokerVersionDesc", "bootTimestamp", "putTps", "commitLogMaxOffset", "runtime")
    t.equal("missing", [name for name in wanted if name not in said], [])


@case("ADMIN-011", "The cluster is listed", source="mqadmin: clusterList", run_with=TOOLS)
def cluster_list(t: Trial) -> None:
    """clusterList has the cluster, every broker and its address."""
    said = t.mqadmin("clusterList")
    for node in t.servers.brokers:
        t.true(node.name, node.name in said and node.address in said, said)
    t.true("cluster", "DefaultCluster" in said, said)


@case(
    "ADMIN-012",
    "mqadmin sends and consumes",
    source="mqadmin: sendMessage, consumeMessage",
    run_with=TOOLS,
)
def send_and_consume(t: Trial) -> None:
    """sendMessage is SEND_OK, and consumeMessage prints its body."""
    topic = t.topic(queues=1)
    said = t.mqadmin("sendMessage", "-t", topic, "-p", "hello-from-mqadmin", "-c", "TagA")
    t.true("sent", "SEND_OK" in said, said)
    said = t.mqadmin("consumeMessage", "-t", topic, "-c", "10")
    t.true("consumed", "hello-from-mqadmin" in said, said)


@case(
    "ADMIN-013", "Statistics count sends", source="protocol: VIEW_BROKER_STATS_DATA", run_with=TOOLS
)
def statistics(t: Trial) -> None:
    """statsAll names the topic with its consumer group."""
    topic, wire, group = t.topic(queues=1), t.wire(), t.group()
    steps.fill_by_wire(wire, topic, 3)
    wires.pull(wire, topic, 0, 0, group=group)
    fields = {"consumerGroup": group, "topic": topic, "queueId": 0, "commitOffset": 3}
    wire.call(RequestCode.UPDATE_CONSUMER_OFFSET, fields)
    said = t.mqadmin("statsAll", "-t", topic)
    t.true("named", topic in said, said)


@case(
    "ADMIN-014",
    "Which groups read a topic",
    source="protocol: QUERY_TOPIC_CONSUME_BY_WHO",
    run_with=WIRE,
)
def who_reads(t: Trial) -> None:
    """QUERY_TOPIC_CONSUME_BY_WHO has the group that committed an offset."""
    topic, wire, group = t.topic(queues=1), t.wire(), t.group()
    fields = {"consumerGroup": group, "topic": topic, "queueId": 0, "commitOffset": 0}
    wire.call(RequestCode.UPDATE_CONSUMER_OFFSET, fields)
    reply = wire.call(RequestCode.QUERY_TOPIC_CONSUME_BY_WHO, {"topic": topic})
    t.equal("groups", java_json(reply.body)["groupList"], [group])


@case("ADMIN-015", "What a group reads", source="protocol: QUERY_TOPICS_BY_CONSUMER", run_with=WIRE)
def what_it_reads(t: Trial) -> None:
    """QUERY_TOPICS_BY_CONSUMER has the topic of a committed offset."""
    topic, wire, group = t.topic(queues=1), t.wire(), t.group()
    fields = {"consumerGroup": group, "topic": topic, "queueId": 0, "commitOffset": 0}
    wire.call(RequestCode.UPDATE_CONSUMER_OFFSET, fields)
    reply = wire.call(RequestCode.QUERY_TOPICS_BY_CONSUMER, {"group": group})
    t.equal("code", reply.code, 0)
    t.equal("topics", java_json(reply.body)["topicList"], [topic])


@case(
    "ADMIN-016", "Key and value at the name server", source="protocol: PUT_KV_CONFIG", run_with=WIRE
)
def key_value(t: Trial) -> None:
    """A value that was put is got, and gone after it was deleted."""
    wire, key = t.namesrv_wire(), t.name("key")
    place = {"namespace": "ORDER_TOPIC_CONFIG", "key": key}
    t.equal("put", wire.call(RequestCode.PUT_KV_CONFIG, {**place, "value": "broker-a:4"}).code, 0)
    got = wire.call(RequestCode.GET_KV_CONFIG, place)
    t.equal("value", got.ext_fields.get("value"), "broker-a:4")
    t.equal("delete", wire.call(RequestCode.DELETE_KV_CONFIG, place).code, 0)
    t.equal("gone", wire.call(RequestCode.GET_KV_CONFIG, place).code, 22)


@case("ADMIN-017", "The running consumer is looked into", source="mqadmin: consumerStatus")
def consumer_status(t: Trial) -> None:
    """GET_CONSUMER_RUNNING_INFO goes through the broker to the client, which tells its queues."""
    topic, group = t.topic(queues=2), t.group()
    consumer = t.consumer(topic, group=group)
    t.eventually("queues", lambda: len(consumer.queues()), 2)
    wire = t.wire()
    asked = wire.call(RequestCode.GET_CONSUMER_LIST_BY_GROUP, {"consumerGroup": group})
    client_id = java_json(asked.body)["consumerIdList"][0]
    fields = {"consumerGroup": group, "clientId": client_id, "jstackEnable": "false"}
    reply = wire.call(RequestCode.GET_CONSUMER_RUNNING_INFO, fields)
    t.equal("code", reply.code, 0)
    text = bytes(reply.body).decode()
    t.true(
        "has the topic and its properties", topic in text and "PROP_CLIENT_VERSION" in text, text
    )


@case("ADMIN-018", "A message is consumed directly", source="protocol: CONSUME_MESSAGE_DIRECTLY")
def directly(t: Trial) -> None:
    """CONSUME_MESSAGE_DIRECTLY hands a stored message to a running consumer once more."""
    topic, group = t.topic(queues=1), t.group()
    consumer = t.consumer(topic, group=group)
    sent = t.producer().send(topic, "direct")
    consumer.received(1)
    wire = t.wire()
    asked = wire.call(RequestCode.GET_CONSUMER_LIST_BY_GROUP, {"consumerGroup": group})
    client_id = java_json(asked.body)["consumerIdList"][0]
    fields = {"consumerGroup": group, "clientId": client_id, "msgId": sent["offsetMsgId"]}
    fields |= {"brokerName": t.servers.broker.name, "topic": topic}
    reply = wire.call(RequestCode.CONSUME_MESSAGE_DIRECTLY, fields)
    t.equal("code", reply.code, 0)
    t.equal("result", java_json(reply.body).get("consumeResult"), "CR_SUCCESS")
    t.equal("received twice", bodies(consumer.received(2)), ["direct", "direct"])


@case(
    "ADMIN-019",
    "Write permission of a broker is wiped",
    source="mqadmin: wipeWritePerm",
    run_with=TOOLS,
    alone=True,
)
def wipe(t: Trial) -> None:
    """wipeWritePerm takes the write permission from the broker's routes; addWritePerm gives it
    back."""
    topic = t.topic(queues=1)

    def permission() -> list[int]:
        found = steps.route(t.namesrv_wire(), topic) or {"queueDatas": []}
        return [one["perm"] for one in found["queueDatas"]]

    t.mqadmin("wipeWritePerm", "-b", t.servers.broker.name)
    t.equal("wiped", permission(), [4])
    t.mqadmin("addWritePerm", "-b", t.servers.broker.name)
    t.equal("given back", permission(), [6])
