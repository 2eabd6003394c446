"""Retry and dead letters: what becomes of a message that its consumer could not handle."""

from __future__ import annotations

import itertools
import time
from typing import TYPE_CHECKING

from pyritemq.conformance import steps
from pyritemq.conformance import wire as wires
from pyritemq.conformance.catalogue import WIRE, case, family
from pyritemq.conformance.trial import bodies
from pyritemq.protocol.codes import RequestCode

if TYPE_CHECKING:
    from pyritemq.conformance.trial import Trial
    from pyritemq.conformance.wire import Wire

family("RETRY", "Retry")
family("DLQ", "Dead letters")
SOURCE = "client: RECONSUME_LATER"
BACK = "protocol: CONSUMER_SEND_MSG_BACK"


@case("RETRY-001", "What failed comes again", source=SOURCE, features="retry", core=True)
def comes_again(t: Trial) -> None:
    """A message whose listener says RECONSUME_LATER once is delivered twice, the second time with
    reconsumeTimes 1."""
    topic = t.topic(queues=1)
    consumer = t.consumer(topic)
    t.producer().send(topic, "again", properties={"fail": "1"})
    got = consumer.received(2)
    t.equal("bodies", bodies(got), ["again", "again"])
    t.equal("reconsumeTimes", [one["reconsumeTimes"] for one in got], [0, 1])
    t.equal("no third time", len(consumer.quiet(2)), 2)


@case("RETRY-002", "A listener that throws is a failure", source=SOURCE, features="retry options")
def throws(t: Trial) -> None:
    """An exception of the listener brings the message again, as RECONSUME_LATER does."""
    topic = t.topic(queues=1)
    consumer = t.consumer(topic)
    t.producer().send(topic, "boom", properties={"fail": "1", "throw": "yes"})
    t.equal("reconsumeTimes", [one["reconsumeTimes"] for one in consumer.received(2)], [0, 1])


@case("RETRY-003", "A retried message keeps its face", source=SOURCE, features="retry")
def keeps_its_face(t: Trial) -> None:
    """The second delivery has the original topic, keys, tags, properties and unique id; its
    ORIGIN_MESSAGE_ID names the place of the first."""
    topic = t.topic(queues=1)
    consumer = t.consumer(topic)
    properties = {"fail": "1", "mine": "v"}
    t.producer().send(topic, "b", keys="k", tags="T", properties=properties)
    first, second = consumer.received(2)[:2]
    for field in ("topic", "keys", "tags", "msgId", "bornTimestamp"):
        t.equal(field, second[field], first[field])
    t.equal("property", second["properties"].get("mine"), "v")
    t.equal("origin", second["properties"].get("ORIGIN_MESSAGE_ID"), first["offsetMsgId"])


@case(
    "RETRY-004",
    "Only the group that failed gets it again",
    source=SOURCE,
    features="retry broadcast",
)
def only_that_group(t: Trial) -> None:
    """While one group retries a message, another group, which does not, receives it once."""
    topic = t.topic(queues=1)
    fails, broadcasts = (
        t.consumer(topic),
        t.consumer(topic, options={"messageModel": "BROADCASTING"}),
    )
    t.producer().send(topic, "one of two", properties={"fail": "1"})
    t.equal("failing group", len(fails.received(2)), 2)
    t.equal("the other group", len(broadcasts.quiet(1)), 1)


@case("RETRY-005", "Waits grow from level to level", source=SOURCE, features="retry")
def second_retry(t: Trial) -> None:
    """A message that fails twice with delay level 1 comes three times, with reconsumeTimes 0, 1, 2,
    a second or more between them."""
    topic = t.topic(queues=1)
    consumer = t.consumer(topic)
    t.producer().send(topic, "twice", properties={"fail": "2", "failDelay": "1"})
    got = consumer.received(3)
    t.equal("reconsumeTimes", [one["reconsumeTimes"] for one in got], [0, 1, 2])
    times = [one["receivedAt"] for one in got]
    gaps = [later - earlier for earlier, later in itertools.pairwise(times)]
    t.true("a second between", all(gap >= 950 for gap in gaps), gaps)


@case("RETRY-006", "Level 0 leaves the wait to the broker", source=BACK, features="retry")
def brokers_wait(t: Trial) -> None:
    """With delayLevelWhenNextConsume 0 the first retry comes after ten seconds (level 3)."""
    topic = t.topic(queues=1)
    consumer = t.consumer(topic)
    t.producer().send(topic, "ten", properties={"fail": "1", "failDelay": "0"})
    times = [one["receivedAt"] for one in consumer.received(2, within=60)]
    t.equal("deliveries", len(times), 2)
    t.true("ten seconds", times[1] - times[0] >= 9_900, times)


@case("RETRY-007", "A tag filter still lets it through", source=SOURCE, features="retry tags")
def with_a_tag(t: Trial) -> None:
    """A consumer of tag A receives its failed message again."""
    topic = t.topic(queues=1)
    consumer = t.consumer(topic, "A")
    t.producer().send(topic, "tagged", tags="A", properties={"fail": "1"})
    t.equal("reconsumeTimes", [one["reconsumeTimes"] for one in consumer.received(2)], [0, 1])


@case(
    "RETRY-008",
    "Broadcasting does not retry",
    source="client: ConsumeMessageConcurrentlyService",
    features="retry broadcast",
)
def broadcasting(t: Trial) -> None:
    """A message that fails with a broadcasting consumer is dropped."""
    topic = t.topic(queues=1)
    consumer = t.consumer(topic, options={"messageModel": "BROADCASTING"})
    t.producer().send(topic, "once", properties={"fail": "9"})
    t.equal("received", len(consumer.received(1)), 1)
    t.equal("not again", len(consumer.quiet(1, within=4)), 1)


@case("RETRY-009", "A failed message does not hold up others", source=SOURCE, features="retry")
def others_pass(t: Trial) -> None:
    """Nine messages behind a failing one are received, and the failing one comes again."""
    topic = t.topic(queues=1)
    consumer, producer = t.consumer(topic), t.producer()
    producer.send(topic, "0", properties={"fail": "1"})
    producer.send_many(steps.numbered(topic, 9, first=1))
    got = consumer.received(11)
    t.equal("all", sorted(set(bodies(got)), key=int), steps.numbers(10))
    t.equal("again", bodies([one for one in got if one["reconsumeTimes"] == 1]), ["0"])


def _send_back(
    t: Trial, wire: Wire, topic: str, group: str, **fields: object
) -> tuple[int, str | None]:
    reply = wires.send(wire, topic, "back")
    offset = int(reply.ext_fields["msgId"][-16:], 16)
    given: dict[str, object] = {"offset": offset, "group": group, "delayLevel": 1}
    given |= {"originMsgId": reply.ext_fields["msgId"], "originTopic": topic, "unitMode": "false"}
    answer = wire.call(RequestCode.CONSUMER_SEND_MSG_BACK, {**given, **fields})
    return answer.code, answer.remark


@case("RETRY-010", "A message sent back is in the retry topic", source=BACK, run_with=WIRE)
def sent_back(t: Trial) -> None:
    """CONSUMER_SEND_MSG_BACK with delay level 1 puts it into %RETRY%group after a second, with
    reconsumeTimes 1 and RETRY_TOPIC."""
    topic, wire, group = t.topic(queues=1), t.wire(), t.group()
    began = time.time()
    t.equal("code", _send_back(t, wire, topic, group)[0], 0)
    retry = f"%RETRY%{group}"
    t.eventually("in the retry topic", lambda: steps.max_offset(wire, retry), 1)
    t.true("after a second", time.time() - began >= 1, time.time() - began)
    got = wires.pulled(wires.pull(wire, retry, 0, 0, group=group))
    t.equal("reconsumeTimes", [one.reconsume_times for one in got], [1])
    t.equal("RETRY_TOPIC", wires.properties(got[0]).get("RETRY_TOPIC"), topic)


@case("RETRY-011", "An unknown offset cannot be sent back", source=BACK, run_with=WIRE)
def unknown_offset(t: Trial) -> None:
    """CONSUMER_SEND_MSG_BACK for an offset without a message is SYSTEM_ERROR."""
    topic, wire, group = t.topic(queues=1), t.wire(), t.group()
    code, remark = _send_back(t, wire, topic, group, offset=2**40)
    t.equal("answer", (code, remark), (1, f"look message by offset failed, {2**40}"))


@case("RETRY-012", "A group may have no retry queues", source=BACK, run_with=WIRE)
def no_retry_queues(t: Trial) -> None:
    """With retryQueueNums=0 sending back succeeds, and nothing is stored."""
    topic, wire, group = t.topic(queues=1), t.wire(), t.group(retryQueueNums=0)
    t.equal("code", _send_back(t, wire, topic, group)[0], 0)
    time.sleep(1.5)
    t.true("nothing stored", steps.max_offset(wire, f"%RETRY%{group}") <= 0)


def _dead(t: Trial, wire: Wire, group: str, count: int) -> list[str]:
    """The bodies in the group's dead letter queue, once there are so many."""
    topic = f"%DLQ%{group}"
    t.eventually("in the dead letter queue", lambda: steps.max_offset(wire, topic), count)
    t.create_topic(t.servers.broker.address, topic, 1)  # some versions make it write-only
    found = wires.pulled(wires.pull(wire, topic, 0, 0, group=group))
    return [bytes(one.body).decode() for one in found]


@case(
    "DLQ-001",
    "After maxReconsumeTimes it is a dead letter",
    source="client: maxReconsumeTimes",
    features="retry options",
    core=True,
)
def dead_letter(t: Trial) -> None:
    """With maxReconsumeTimes=1 a message that always fails comes twice and then lies in
    %DLQ%group."""
    topic, group = t.topic(queues=1), t.group()
    consumer = t.consumer(topic, group=group, options={"maxReconsumeTimes": 1})
    t.producer().send(topic, "doomed", properties={"fail": "9"})
    t.equal("deliveries", len(consumer.received(2)), 2)
    t.equal("dead letters", _dead(t, t.wire(), group, 1), ["doomed"])
    t.equal("no third time", len(consumer.quiet(2)), 2)


@case(
    "DLQ-002",
    "An ordered consumer gives up as well",
    source="client: ConsumeMessageOrderlyService",
    features="retry order options",
)
def ordered(t: Trial) -> None:
    """With maxReconsumeTimes=2 an ordered consumer tries three times in place, then the message is
    a dead letter and the next one is delivered."""
    topic, group = t.topic(queues=1), t.group()
    options = {"maxReconsumeTimes": 2}
    consumer = t.consumer(topic, group=group, mode="orderly", options=options)
    producer = t.producer()
    producer.send(topic, "stuck", properties={"fail": "99", "suspendMs": "100"})
    producer.send(topic, "next")
    t.eventually("the next one", lambda: "next" in bodies(consumer.received(0)), True)
    t.equal("tries", bodies(consumer.received(0)).count("stuck"), 3)
    t.equal("dead letters", _dead(t, t.wire(), group, 1), ["stuck"])


@case("DLQ-003", "A negative level goes there at once", source=BACK, run_with=WIRE)
def at_once(t: Trial) -> None:
    """CONSUMER_SEND_MSG_BACK with delay level -1 puts the message into %DLQ%group."""
    topic, wire, group = t.topic(queues=1), t.wire(), t.group()
    t.equal("code", _send_back(t, wire, topic, group, delayLevel=-1)[0], 0)
    t.equal("dead letters", _dead(t, wire, group, 1), ["back"])


@case("DLQ-004", "The group's own limit counts", source="group: retryMaxTimes", run_with=WIRE)
def limit_of_the_group(t: Trial) -> None:
    """With retryMaxTimes=0 in the group's settings a message sent back is a dead letter at once."""
    topic, wire, group = t.topic(queues=1), t.wire(), t.group(retryMaxTimes=0)
    t.equal("code", _send_back(t, wire, topic, group)[0], 0)
    t.equal("dead letters", _dead(t, wire, group, 1), ["back"])


@case("DLQ-005", "A dead letter tells where it came from", source=BACK, run_with=WIRE)
def tells_origin(t: Trial) -> None:
    """It has RETRY_TOPIC with the first topic, and ORIGIN_MESSAGE_ID with the first place."""
    topic, wire, group = t.topic(queues=1), t.wire(), t.group()
    t.equal("code", _send_back(t, wire, topic, group, delayLevel=-1)[0], 0)
    _dead(t, wire, group, 1)
    record = wires.pulled(wires.pull(wire, f"%DLQ%{group}", 0, 0, group=group))[0]
    t.equal("RETRY_TOPIC", wires.properties(record).get("RETRY_TOPIC"), topic)
    first = wires.pulled(wires.pull(wire, topic, 0, 0, group=group))[0]
    origin = wires.properties(record).get("ORIGIN_MESSAGE_ID", "")
    t.equal("origin's offset", int(origin[-16:] or "0", 16), first.phy_offset)


@case(
    "DLQ-006",
    "A dead letter can be found by its key",
    source="protocol: QUERY_MESSAGE",
    features="retry options query",
)
def found_by_key(t: Trial) -> None:
    """A query for the key in %DLQ%group gives the message."""
    topic, group, key = t.topic(queues=1), t.group(), t.name("key")
    consumer = t.consumer(topic, group=group, options={"maxReconsumeTimes": 0})
    producer = t.producer()
    producer.send(topic, "lost", keys=key, properties={"fail": "9"})
    consumer.received(1)
    t.eventually("found", lambda: bodies(producer.query(f"%DLQ%{group}", key)), ["lost"])
