"""Several name servers, several brokers: what clients do when one of them is gone."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from pyritemq.conformance import steps
from pyritemq.conformance.catalogue import WIRE, case, family
from pyritemq.conformance.setup import Setup
from pyritemq.conformance.trial import bodies

if TYPE_CHECKING:
    from pyritemq.conformance.trial import Trial

family("NAMESRV", "Several name servers")
family("CLUSTER", "Several brokers and failover")
TWO_NAMESRVS = Setup(namesrvs=2)
TWO_BROKERS = Setup(brokers=2)


@case(
    "NAMESRV-001",
    "A broker registers with all",
    source="broker: namesrvAddr",
    run_with=WIRE,
    setup=TWO_NAMESRVS,
)
def registers_with_all(t: Trial) -> None:
    """Both name servers list the broker, and both have the route of a new topic."""
    topic = t.topic(queues=2)
    for node in t.servers.namesrvs:
        wire = t.wire(node.address)
        t.equal("brokers", steps.cluster_brokers(wire), [t.servers.broker.name])
        t.true("route", steps.route(wire, topic) is not None)


@case(
    "NAMESRV-002", "A client uses either", source="client: NettyRemotingClient", setup=TWO_NAMESRVS
)
def either(t: Trial) -> None:
    """A producer that knows the first and a consumer that knows the second meet."""
    topic = t.topic(queues=1)
    first, second = t.namesrv.split(";")
    t.producer(namesrv=first).send(topic, "meet")
    t.equal("received", bodies(t.consumer(topic, namesrv=second).received(1)), ["meet"])


@case(
    "NAMESRV-003",
    "One of two is killed",
    source="client: NettyRemotingClient",
    setup=TWO_NAMESRVS,
    alone=True,
)
def one_is_killed(t: Trial) -> None:
    """A new topic is found through the other, by new clients and by those that ran before."""
    topic, producer = t.topic(queues=1), t.producer()
    producer.send(topic, "before")
    t.servers.namesrvs[0].kill()
    later = t.name("T")
    t.create_topic(t.servers.broker.address, later, 1)
    look = t.wire(t.servers.namesrvs[1].address)
    t.eventually("route at the other", lambda: steps.route(look, later) is not None, True)
    t.eventually("old client", lambda: producer.send(later, "1")["status"], "SEND_OK", within=60)

    def new_client() -> bool:
        """Its start fails where it tries the dead one first, and so does the driver's command."""
        return "1" in bodies(t.consumer(later).received(1))

    t.eventually("new client", new_client, True, within=60)


@case(
    "NAMESRV-004",
    "A name server comes back empty",
    source="broker: registerNameServerPeriod",
    setup=TWO_NAMESRVS,
    alone=True,
    run_with=WIRE,
)
def comes_back(t: Trial) -> None:
    """Restarted, it has the broker and its topics again within the broker's 30 s period."""
    topic = t.topic(queues=1)
    node = t.servers.namesrvs[1]
    node.restart(kill=True)

    def known() -> bool:
        with t.wire(node.address) as wire:
            return steps.route(wire, topic) is not None

    t.eventually("route", known, True, within=60)


@case("NAMESRV-005", "Clients outlive their name server", source="client: route cache", alone=True)
def outlive(t: Trial) -> None:
    """With the only name server gone, a producer and a consumer that know their routes go on."""
    topic, producer = t.topic(queues=1), t.producer()
    consumer = t.consumer(topic)
    producer.send(topic, "before")
    t.equal("before", bodies(consumer.received(1)), ["before"])
    t.servers.namesrvs[0].kill()
    t.eventually("sent", lambda: producer.send(topic, "after")["status"], "SEND_OK")
    t.true("received", "after" in bodies(consumer.received(2)))
    t.servers.namesrvs[0].start()


@case("CLUSTER-001", "Sends use both brokers", source="client: TopicPublishInfo", setup=TWO_BROKERS)
def both_brokers(t: Trial) -> None:
    """Sixteen sends to a topic of two brokers with four queues each use every queue twice."""
    topic = t.topic(queues=4)
    sent = t.producer().send_many(steps.numbered(topic, 16))
    used = Counter((one["brokerName"], one["queueId"]) for one in sent)
    t.equal("queues", len(used), 8)
    t.equal("each", set(used.values()), {2})


@case(
    "CLUSTER-002",
    "A consumer reads both brokers",
    source="client: RebalanceImpl",
    setup=TWO_BROKERS,
)
def reads_both(t: Trial) -> None:
    """One consumer holds the queues of both and receives everything."""
    topic = t.topic(queues=2)
    consumer = t.consumer(topic)
    t.eventually("queues", lambda: len(consumer.queues()), 4)
    t.producer().send_many(steps.numbered(topic, 12))
    t.equal("received", sorted(bodies(consumer.received(12)), key=int), steps.numbers(12))


@case(
    "CLUSTER-003", "A topic of one broker only", source="client: TopicRouteData", setup=TWO_BROKERS
)
def on_one(t: Trial) -> None:
    """A topic that only the second broker has is sent to and read there."""
    topic = t.topic(queues=2, broker=1)
    sent = t.producer().send_many(steps.numbered(topic, 4))
    t.equal("brokers", {one["brokerName"] for one in sent}, {t.servers.brokers[1].name})
    t.equal("received", len(t.consumer(topic).received(4)), 4)


@case(
    "CLUSTER-004",
    "A send fails over",
    source="client: retryTimesWhenSendFailed",
    setup=TWO_BROKERS,
    alone=True,
    core=False,
)
def fails_over(t: Trial) -> None:
    """After one broker was killed every send succeeds, on the other."""
    topic, producer = t.topic(queues=2), t.producer()
    producer.send_many(steps.numbered(topic, 4))
    t.servers.brokers[0].kill()
    sent = [producer.send(topic, str(number)) for number in range(8)]
    t.equal("status", {one["status"] for one in sent}, {"SEND_OK"})
    t.equal("brokers", {one["brokerName"] for one in sent}, {t.servers.brokers[1].name})


@case(
    "CLUSTER-005",
    "A broker comes back with its messages",
    source="broker: recovery",
    setup=TWO_BROKERS,
    alone=True,
)
def comes_back_with_messages(t: Trial) -> None:
    """What lay on a killed broker is received after its restart, once."""
    topic, producer = t.topic(queues=1), t.producer()
    producer.send_many(steps.numbered(topic, 10))
    t.servers.brokers[0].kill()
    consumer = t.consumer(topic)
    t.servers.brokers[0].start()
    got = bodies(consumer.received(10, within=90))
    t.equal("received", sorted(set(got), key=int), steps.numbers(10))


@case(
    "CLUSTER-006",
    "A stopped broker leaves the routes",
    source="protocol: UNREGISTER_BROKER",
    setup=TWO_BROKERS,
    alone=True,
    run_with=WIRE,
)
def leaves(t: Trial) -> None:
    """After a clean stop the name server lists the other broker only."""
    topic, wire = t.topic(queues=1), t.namesrv_wire()
    t.servers.brokers[0].stop()
    other = t.servers.brokers[1].name
    t.eventually("brokers", lambda: steps.cluster_brokers(wire), [other])
    found = steps.route(wire, topic) or {"brokerDatas": []}
    t.equal("route", [one["brokerName"] for one in found["brokerDatas"]], [other])


@case(
    "CLUSTER-007",
    "Order across brokers",
    source="client: MessageListenerOrderly",
    setup=TWO_BROKERS,
    features="order selector",
)
def ordered(t: Trial) -> None:
    """Keys spread over two brokers, read by an ordered consumer: each key's messages in order."""
    topic, producer = t.topic(queues=2), t.producer()
    consumer = t.consumer(topic, mode="orderly")
    keys = [f"key{number}" for number in range(6)]
    for number in range(5):
        for key in keys:
            producer.send(topic, f"{key}:{number}", how={"hashKey": key})
    got = bodies(consumer.received(30, within=60))
    for key in keys:
        mine = [body for body in got if body.startswith(f"{key}:")]
        t.equal(key, mine, [f"{key}:{number}" for number in range(5)])


@case(
    "CLUSTER-008",
    "A latency-aware producer avoids the dead",
    source="client: sendLatencyFaultEnable",
    setup=TWO_BROKERS,
    alone=True,
    features="options",
)
def latency_aware(t: Trial) -> None:
    """With sendLatencyFaultEnable sends succeed on the other broker while one is dead."""
    topic = t.topic(queues=2)
    producer = t.producer(options={"sendLatencyFaultEnable": "true"})
    producer.send_many(steps.numbered(topic, 4))
    t.servers.brokers[0].kill()
    sent = [producer.send(topic, str(number)) for number in range(6)]
    t.equal("status", {one["status"] for one in sent}, {"SEND_OK"})
    t.equal("brokers", {one["brokerName"] for one in sent}, {t.servers.brokers[1].name})
