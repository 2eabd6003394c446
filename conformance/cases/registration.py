"""Registration and expiry: how brokers come into the route tables, and leave them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyritemq.conformance import steps
from pyritemq.conformance.catalogue import WIRE, case, family
from pyritemq.conformance.wire import Wire
from pyritemq.protocol.codes import RequestCode, ResponseCode

if TYPE_CHECKING:
    from pyritemq.conformance.trial import Trial

family("REG", "Registration and expiry of brokers")
REGISTER = "protocol: REGISTER_BROKER"
KV = "protocol: PUT_KV_CONFIG"


@case(
    "REG-001",
    "A broker that stops leaves the routes",
    source="protocol: UNREGISTER_BROKER",
    run_with=WIRE,
    alone=True,
)
def clean_stop(t: Trial) -> None:
    """After a clean stop the broker is neither in the cluster nor in the topic's route."""
    topic, wire = t.topic(), t.namesrv_wire()
    t.servers.broker.stop()
    t.eventually("brokers", lambda: steps.cluster_brokers(wire), [])
    t.equal("route", steps.route(wire, topic), None)


@case(
    "REG-002",
    "A killed broker leaves the routes",
    source="name server: closed channels",
    run_with=WIRE,
    alone=True,
)
def killed(t: Trial) -> None:
    """The name server notices the closed connection: the broker is gone long before the two minutes
    after which it would expire."""
    wire = t.namesrv_wire()
    t.servers.broker.kill()
    t.eventually("brokers", lambda: steps.cluster_brokers(wire), [])


@case(
    "REG-003", "A broker that returns brings its topics", source=REGISTER, run_with=WIRE, alone=True
)
def returned(t: Trial) -> None:
    """After a restart the topic's route is as it was."""
    topic, wire = t.topic(queues=3), t.namesrv_wire()
    before = steps.route(wire, topic)
    t.servers.broker.restart()
    t.eventually("route", lambda: steps.route(wire, topic), before)


def _register(wire: Wire, name: str, address: str) -> int:
    fields = {"brokerName": name, "brokerAddr": address, "clusterName": f"cluster-{name}"}
    fields |= {"haServerAddr": address, "brokerId": "0", "compressed": "false", "bodyCrc32": "0"}
    version = {"stateVersion": 0, "timestamp": 1, "counter": 1}
    topics = f'{{"dataVersion":{version},"topicConfigTable":{{}}}}'.replace("'", '"')
    body = f'{{"filterServerList":[],"topicConfigSerializeWrapper":{topics}}}'.encode()
    return wire.call(RequestCode.REGISTER_BROKER, fields, body).code


@case("REG-004", "A registration shows at once", source=REGISTER, run_with=WIRE)
def registered(t: Trial) -> None:
    """A broker is in the cluster info from REGISTER_BROKER to UNREGISTER_BROKER."""
    wire, name = t.namesrv_wire(), t.name("broker")
    t.equal("code", _register(wire, name, "127.0.0.1:1"), 0)
    t.true("in the cluster", name in steps.cluster_brokers(wire))
    fields = {"brokerName": name, "brokerAddr": "127.0.0.1:1", "brokerId": 0}
    fields["clusterName"] = f"cluster-{name}"
    t.equal("code", wire.call(RequestCode.UNREGISTER_BROKER, fields).code, 0)
    t.eventually("in the cluster", lambda: name in steps.cluster_brokers(wire), False)


@case(
    "REG-005",
    "A broker whose connection closes is forgotten",
    source="name server: closed channels",
    run_with=WIRE,
)
def closed(t: Trial) -> None:
    """Registered over a connection that then closes: gone without waiting for its expiry."""
    wire, name = t.namesrv_wire(), t.name("broker")
    with Wire(t.namesrv.split(";")[0]) as other:
        _register(other, name, "127.0.0.1:1")
        t.true("in the cluster", name in steps.cluster_brokers(wire))
    t.eventually("in the cluster", lambda: name in steps.cluster_brokers(wire), False)


@case(
    "REG-006",
    "Write permission is wiped and given back",
    source="protocol: WIPE_WRITE_PERM_OF_BROKER",
    run_with=WIRE,
    alone=True,
)
def write_permission(t: Trial) -> None:
    """WIPE leaves read permission in every route of the broker; ADD gives writing back."""
    topic, wire = t.topic(), t.namesrv_wire()
    fields = {"brokerName": t.servers.broker.name}

    def perm() -> int:
        return int((steps.route(wire, topic) or {})["queueDatas"][0]["perm"])

    t.equal("code", wire.call(RequestCode.WIPE_WRITE_PERM_OF_BROKER, fields).code, 0)
    t.equal("permission", perm(), 4)
    t.equal("code", wire.call(RequestCode.ADD_WRITE_PERM_OF_BROKER, fields).code, 0)
    t.equal("permission", perm(), 6)


@case("REG-007", "Values are put, read and deleted", source=KV, run_with=WIRE)
def kv_config(t: Trial) -> None:
    """What PUT_KV_CONFIG stored GET_KV_CONFIG gives, until DELETE_KV_CONFIG."""
    wire = t.namesrv_wire()
    fields = {"namespace": t.name("ns"), "key": "k"}
    t.equal("put", wire.call(RequestCode.PUT_KV_CONFIG, {**fields, "value": "v"}).code, 0)
    t.equal("value", wire.call(RequestCode.GET_KV_CONFIG, fields).ext_fields.get("value"), "v")
    t.equal("delete", wire.call(RequestCode.DELETE_KV_CONFIG, fields).code, 0)
    gone = wire.call(RequestCode.GET_KV_CONFIG, fields).code
    t.equal("get", gone, ResponseCode.QUERY_NOT_FOUND)


@case(
    "REG-008",
    "Members of a broker group",
    source="protocol: GET_BROKER_MEMBER_GROUP",
    since="5.0.0",
    run_with=WIRE,
)
def member_group(t: Trial) -> None:
    """The group of a broker name has its master's address under id 0."""
    broker = t.servers.broker
    fields = {"clusterName": "DefaultCluster", "brokerName": broker.name}
    reply = t.namesrv_wire().call(RequestCode.GET_BROKER_MEMBER_GROUP, fields)
    t.equal("code", reply.code, 0)
    t.true("its address", broker.address.encode() in bytes(reply.body), bytes(reply.body))
