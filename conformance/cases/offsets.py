"""Offsets and where consumers begin; back-tracking to earlier times."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from pyritemq.conformance import steps
from pyritemq.conformance.actors import BY_TIME, FROM_FIRST, FROM_LAST, queue
from pyritemq.conformance.catalogue import WIRE, case, family
from pyritemq.conformance.trial import bodies
from pyritemq.protocol.codes import RequestCode, ResponseCode

if TYPE_CHECKING:
    from pyritemq.conformance.trial import Trial

family("OFFSET", "Offsets and where consumers begin")
family("BACK", "Back-tracking")
WHERE = "client: ConsumeFromWhere"
PROTOCOL = "protocol: UPDATE_CONSUMER_OFFSET, QUERY_CONSUMER_OFFSET"


@case("OFFSET-001", "A new group can begin at the first message", source=WHERE, core=True)
def from_first(t: Trial) -> None:
    """CONSUME_FROM_FIRST_OFFSET gives what was sent before the group existed."""
    topic = t.topic(queues=1)
    steps.fill(t, topic, 5)
    got = t.consumer(topic, start=FROM_FIRST).received(5)
    t.equal("received", sorted(bodies(got)), steps.numbers(5))


@case(
    "OFFSET-002",
    "On a young queue the last offset is the first",
    source="broker: ConsumerManageProcessor.queryConsumerOffset",
)
def from_last_on_a_young_queue(t: Trial) -> None:
    """CONSUME_FROM_LAST_OFFSET begins at 0 where the queue's first message is still in memory: the
    broker answers 0 for the unknown group."""
    topic = t.topic(queues=1)
    steps.fill(t, topic, 3)
    got = t.consumer(topic, start=FROM_LAST).received(3)
    t.equal("received", sorted(bodies(got)), steps.numbers(3))


@case("OFFSET-003", "A new group can begin at a time", source=WHERE)
def from_time(t: Trial) -> None:
    """CONSUME_FROM_TIMESTAMP with a time long ago gives everything."""
    topic = t.topic(queues=1)
    steps.fill(t, topic, 3)
    options = {"consumeTimestamp": "20200101000000"}
    got = t.consumer(topic, start=BY_TIME, options=options).received(3)
    t.equal("received", sorted(bodies(got)), steps.numbers(3))


@case("OFFSET-004", "An unknown group has no offset", source=PROTOCOL, run_with=WIRE)
def unknown_group(t: Trial) -> None:
    """With setZeroIfNotFound=false: QUERY_NOT_FOUND for a queue that holds messages."""
    topic, wire = t.topic(queues=1), t.wire()
    steps.fill_by_wire(wire, topic, 1)
    fields = {"consumerGroup": t.group(), "topic": topic, "queueId": 0}
    reply = wire.call(RequestCode.QUERY_CONSUMER_OFFSET, {**fields, "setZeroIfNotFound": "false"})
    t.equal("code", reply.code, ResponseCode.QUERY_NOT_FOUND)


@case("OFFSET-005", "An unknown group begins at zero when asked so", source=PROTOCOL, run_with=WIRE)
def zero_if_not_found(t: Trial) -> None:
    """Without the switch the broker answers 0 for a young queue."""
    topic, wire = t.topic(queues=1), t.wire()
    steps.fill_by_wire(wire, topic, 1)
    fields = {"consumerGroup": t.group(), "topic": topic, "queueId": 0}
    reply = wire.call(RequestCode.QUERY_CONSUMER_OFFSET, fields)
    t.equal("code and offset", (reply.code, reply.ext_fields.get("offset")), (0, "0"))


@case("OFFSET-006", "What was committed is answered", source=PROTOCOL, run_with=WIRE, core=True)
def committed(t: Trial) -> None:
    """After UPDATE_CONSUMER_OFFSET the query gives that offset; a lower one replaces it."""
    topic, wire, group = t.topic(queues=1), t.wire(), t.group()
    steps.fill_by_wire(wire, topic, 5)
    for offset in (4, 2):
        fields = {"consumerGroup": group, "topic": topic, "queueId": 0, "commitOffset": offset}
        t.equal("code", wire.call(RequestCode.UPDATE_CONSUMER_OFFSET, fields).code, 0)
        t.equal("offset", steps.stored_offset(wire, group, topic), offset)


@case(
    "OFFSET-007",
    "A pull consumer stores and fetches its offset",
    source="client: updateConsumeOffset",
    features="pull selector",
)
def pull_consumer(t: Trial) -> None:
    """What one pull consumer updated and persisted, another of the group fetches from the store."""
    topic, group = t.topic(queues=1), t.group()
    steps.fill(t, topic, 6)
    of = queue(topic, 0, t.servers.broker.name)
    one = t.puller(group=group)
    one.call("update", queue=of, offset=3)
    t.equal("fetched", t.puller(group=group).offset("stored", of), 3)


@case("OFFSET-008", "Offsets are stored queue by queue", source=PROTOCOL, run_with=WIRE)
def by_queue(t: Trial) -> None:
    """Committing for one queue leaves the other unknown."""
    topic, wire, group = t.topic(queues=2), t.wire(), t.group()
    for queue_id in (0, 1):
        steps.fill_by_wire(wire, topic, 2, queue_id=queue_id)
    fields = {"consumerGroup": group, "topic": topic, "queueId": 1, "commitOffset": 2}
    wire.call(RequestCode.UPDATE_CONSUMER_OFFSET, fields)
    got = [steps.stored_offset(wire, group, topic, number) for number in (0, 1)]
    t.equal("offsets", got, [None, 2])


@case(
    "OFFSET-009",
    "Consumers store their offset at the broker",
    source="client: RemoteBrokerOffsetStore",
)
def stored_by_consumer(t: Trial) -> None:
    """After a shutdown the broker has the offset behind the last consumed message."""
    topic, group = t.topic(queues=1), t.group()
    steps.fill(t, topic, 7)
    consumer = t.consumer(topic, group=group)
    consumer.received(7)
    time.sleep(1.0)  # a listener is done a moment before its consumer notes that
    consumer.shutdown()
    wire = t.wire()
    t.eventually("offset", lambda: steps.stored_offset(wire, group, topic), 7)


@case("OFFSET-010", "Offsets can be cloned", source="protocol: CLONE_GROUP_OFFSET", run_with=WIRE)
def cloned(t: Trial) -> None:
    """CLONE_GROUP_OFFSET gives another group the offsets of the first."""
    topic, wire, one, two = t.topic(queues=1), t.wire(), t.group(), t.group()
    steps.fill_by_wire(wire, topic, 3)
    fields = {"consumerGroup": one, "topic": topic, "queueId": 0, "commitOffset": 2}
    wire.call(RequestCode.UPDATE_CONSUMER_OFFSET, fields)
    fields = {"srcGroup": one, "destGroup": two, "topic": topic, "offline": "true"}
    t.equal("code", wire.call(RequestCode.CLONE_GROUP_OFFSET, fields).code, 0)
    t.equal("cloned", steps.stored_offset(wire, two, topic), 2)


@case(
    "BACK-001",
    "An offset is found by time",
    source="protocol: SEARCH_OFFSET_BY_TIMESTAMP",
    features="pull selector",
    core=True,
)
def by_time(t: Trial) -> None:
    """The offset of a time is that of the first message stored at it or later; before all it is 0,
    after all the end."""
    topic = t.topic(queues=1)
    steps.fill(t, topic, 3)
    time.sleep(0.05)  # store times have millisecond steps: the two parts must not share one
    steps.fill(t, topic, 3, first=3)
    puller, of = t.puller(), queue(topic, 0, t.servers.broker.name)
    stamps = [one["storeTimestamp"] for one in puller.pull(of, 0)["messages"]]
    t.equal("middle", puller.offset("search", of, timestamp=stamps[3]), 3)
    t.equal("before all", puller.offset("search", of, timestamp=stamps[0] - 10_000), 0)
    t.equal("after all", puller.offset("search", of, timestamp=stamps[5] + 10_000), 6)


@case("BACK-002", "An offline group is set back", source="mqadmin: resetOffsetByTime")
def offline(t: Trial) -> None:
    """After resetOffsetByTime to a time before all messages, the group's next consumer receives
    everything again."""
    topic, group = t.topic(queues=1), t.group()
    steps.fill(t, topic, 5)
    first = t.consumer(topic, group=group)
    first.received(5)
    steps.settled(t, first, topic, 1, 5)
    first.shutdown()
    t.mqadmin("resetOffsetByTime", "-g", group, "-t", topic, "-s", "1000000")
    again = t.consumer(topic, group=group).received(5)
    t.equal("again", sorted(bodies(again)), steps.numbers(5))


@case("BACK-003", "A running consumer is set back", source="protocol: RESET_CONSUMER_CLIENT_OFFSET")
def online(t: Trial) -> None:
    """resetOffsetByTime reaches a consumer that runs: it receives everything again."""
    topic, group = t.topic(queues=1), t.group()
    steps.fill(t, topic, 5)
    consumer = t.consumer(topic, group=group)
    t.equal("first time", len(consumer.received(5)), 5)
    consumer.call("persist")
    t.mqadmin("resetOffsetByTime", "-g", group, "-t", topic, "-s", "1000000")
    t.equal("second time", len(consumer.received(10, within=60)), 10)


@case("BACK-004", "A backlog can be skipped", source="mqadmin: skipAccumulatedMessage")
def skipped(t: Trial) -> None:
    """After skipAccumulatedMessage the group's consumer receives only what comes later."""
    topic, group = t.topic(queues=1), t.group()
    consumer = t.consumer(topic, group=group)
    steps.fill(t, topic, 2)
    consumer.received(2)
    steps.settled(t, consumer, topic, 1, 2)
    consumer.shutdown()
    steps.fill(t, topic, 5, first=2)
    t.mqadmin("skipAccumulatedMessage", "-g", group, "-t", topic)
    steps.fill(t, topic, 1, first=7)
    got = t.consumer(topic, group=group)
    t.equal("received", bodies(got.received(1)), ["7"])
    t.equal("nothing else", len(got.quiet(1)), 1)
