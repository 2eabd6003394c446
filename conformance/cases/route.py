"""Routes and discovery: how clients find the brokers of a topic."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyritemq.conformance import steps
from pyritemq.conformance.catalogue import WIRE, case, family
from pyritemq.conformance.wire import java_json
from pyritemq.protocol.codes import RequestCode, ResponseCode

if TYPE_CHECKING:
    from pyritemq.conformance.trial import Trial

family("ROUTE", "Routes and discovery")
PROTOCOL = "protocol: GET_ROUTEINFO_BY_TOPIC"
CLIENT_ROUTES = "client: MQClientInstance.updateTopicRouteInfoFromNameServer"


@case("ROUTE-001", "A route names broker and queues", source=PROTOCOL, run_with=WIRE, core=True)
def route_of_a_topic(t: Trial) -> None:
    """brokerDatas has the broker's name and address under id 0; queueDatas has the queue counts
    and permission."""
    topic = t.topic(queues=3)
    found = steps.route(t.namesrv_wire(), topic) or {}
    broker = t.servers.broker
    t.equal("broker name", found["brokerDatas"][0]["brokerName"], broker.name)
    t.equal("address", found["brokerDatas"][0]["brokerAddrs"], {"0": broker.address})
    queues = found["queueDatas"][0]
    got = {name: queues[name] for name in ("readQueueNums", "writeQueueNums", "perm")}
    t.equal("queues", got, {"readQueueNums": 3, "writeQueueNums": 3, "perm": 6})


@case("ROUTE-002", "An unknown topic has no route", source=PROTOCOL, run_with=WIRE, core=True)
def route_of_an_unknown_topic(t: Trial) -> None:
    """TOPIC_NOT_EXIST, with a remark that names the topic."""
    topic = t.name("unknown")
    reply = t.namesrv_wire().call(RequestCode.GET_ROUTEINFO_BY_TOPIC, {"topic": topic})
    t.equal("code", reply.code, ResponseCode.TOPIC_NOT_EXIST)
    t.true("the remark names the topic", topic in (reply.remark or ""), reply.remark)


@case("ROUTE-003", "A client sees every queue of a topic", source=CLIENT_ROUTES)
def publish_queues(t: Trial) -> None:
    """fetchPublishMessageQueues has each queue of the topic once."""
    topic = t.topic(queues=5)
    queues = t.producer().call("queues", topic=topic)
    t.equal("queue ids", sorted(one["queueId"] for one in queues), [0, 1, 2, 3, 4])


@case(
    "ROUTE-004", "The first send makes a topic", source="broker: autoCreateTopicEnable", core=True
)
def topic_made_by_a_send(t: Trial) -> None:
    """A send to a topic that nobody made succeeds; the topic then has the four queues that
    producers ask for by default."""
    topic = t.name("auto")
    sent = t.producer().send(topic, "first")
    t.equal("status", sent["status"], "SEND_OK")
    wire = t.namesrv_wire()
    t.eventually("the route", lambda: steps.route(wire, topic) is not None, True)
    found = steps.route(wire, topic) or {}
    t.equal("queues", found["queueDatas"][0]["writeQueueNums"], 4)


@case("ROUTE-005", "The template topic has a route", source="broker: TBW102", run_with=WIRE)
def template_topic(t: Trial) -> None:
    """TBW102 is in the route table while autoCreateTopicEnable is on."""
    t.true("a route", steps.route(t.namesrv_wire(), "TBW102") is not None)


@case(
    "ROUTE-006",
    "Cluster info lists brokers",
    source="protocol: GET_BROKER_CLUSTER_INFO",
    run_with=WIRE,
)
def cluster_info(t: Trial) -> None:
    """brokerAddrTable has the broker with its address; clusterAddrTable has it in a cluster."""
    info = java_json(t.namesrv_wire().call(RequestCode.GET_BROKER_CLUSTER_INFO).body)
    broker = t.servers.broker
    t.equal("address", info["brokerAddrTable"][broker.name]["brokerAddrs"]["0"], broker.address)
    members = [name for names in info["clusterAddrTable"].values() for name in names]
    t.true("in a cluster", broker.name in members, members)


@case("ROUTE-007", "A running producer finds a new topic", source=CLIENT_ROUTES)
def topic_made_later(t: Trial) -> None:
    """A topic that is made after the producer's start is found at the first send to it."""
    producer = t.producer()
    topic = t.topic(queues=2)
    t.equal("status", producer.send(topic, "x")["status"], "SEND_OK")


@case(
    "ROUTE-008",
    "The list of topics has a new one",
    source="protocol: GET_ALL_TOPIC_LIST_FROM_NAMESERVER",
    run_with=WIRE,
)
def topic_list(t: Trial) -> None:
    """The name server lists a topic once it has a route."""
    topic = t.topic()
    reply = t.namesrv_wire().call(RequestCode.GET_ALL_TOPIC_LIST_FROM_NAMESERVER)
    t.true("listed", topic in java_json(reply.body)["topicList"])


@case("ROUTE-009", "A topic without write permission cannot be sent to", source=CLIENT_ROUTES)
def read_only_topic(t: Trial) -> None:
    """The client finds no queue to write to and raises before it asks a broker."""
    topic = t.topic(perm=4)
    t.refused("send", lambda: t.producer().send(topic, "x"), kind="MQClientException")


@case("ROUTE-010", "More queues are seen by the next client", source=CLIENT_ROUTES)
def more_queues(t: Trial) -> None:
    """After the topic got eight queues, a new producer sees eight."""
    topic = t.topic(queues=2)
    t.create_topic(t.servers.broker.address, topic, 8)
    wire = t.namesrv_wire()

    def queues() -> int:
        return int((steps.route(wire, topic) or {})["queueDatas"][0]["writeQueueNums"])

    t.eventually("queues in the route", queues, 8)
    t.equal("queues of a new client", len(t.producer().call("queues", topic=topic)), 8)


@case(
    "ROUTE-011",
    "Standard JSON on request",
    source="protocol: acceptStandardJsonOnly",
    since="5.0.0",
    run_with=WIRE,
)
def standard_json(t: Trial) -> None:
    """With acceptStandardJsonOnly=true the keys of brokerAddrs are quoted; without it they are bare
    numbers, as fastjson writes them."""
    topic, wire = t.topic(), t.namesrv_wire()
    fields = {"topic": topic}
    old = bytes(wire.call(RequestCode.GET_ROUTEINFO_BY_TOPIC, fields, version=300).body)
    fields["acceptStandardJsonOnly"] = "true"
    new = bytes(wire.call(RequestCode.GET_ROUTEINFO_BY_TOPIC, fields).body)
    t.true("bare keys for an old client", b"{0:" in old, old.decode())
    t.true("quoted keys on request", b'{"0":' in new, new.decode())


@case(
    "ROUTE-012",
    "A deleted topic loses its route",
    source="protocol: DELETE_TOPIC_IN_NAMESRV",
    run_with=WIRE,
)
def deleted_topic(t: Trial) -> None:
    """After DELETE_TOPIC_IN_BROKER and DELETE_TOPIC_IN_NAMESRV the route is gone."""
    topic = t.topic()
    t.wire().call(RequestCode.DELETE_TOPIC_IN_BROKER, {"topic": topic})
    wire = t.namesrv_wire()
    reply = wire.call(RequestCode.DELETE_TOPIC_IN_NAMESRV, {"topic": topic})
    t.equal("code", reply.code, 0)
    t.eventually("the route", lambda: steps.route(wire, topic), None)
