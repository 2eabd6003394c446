"""Delay levels, timers at any time, and their recall."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from pyritemq.conformance import steps
from pyritemq.conformance import wire as wires
from pyritemq.conformance.catalogue import WIRE, case, family
from pyritemq.conformance.setup import with_properties
from pyritemq.conformance.trial import bodies
from pyritemq.protocol.codes import ResponseCode

if TYPE_CHECKING:
    from pyritemq.conformance.actors import Json
    from pyritemq.conformance.trial import Trial

family("DELAY", "Delay levels")
family("TIMER", "Timers and recall")
LEVELS = "client: Message.setDelayTimeLevel"
TIMERS = "broker: TimerMessageStore"


def _waited(one: Json) -> float:
    """Seconds from the send to the listener."""
    return float(one["receivedAt"] - one["bornTimestamp"]) / 1000


@case("DELAY-001", "Level 1 is a second", source=LEVELS, features="delay", core=True)
def one_second(t: Trial) -> None:
    """Received not before a second after the send, and soon after it."""
    topic = t.topic()
    consumer = t.consumer(topic)
    t.producer().send(topic, "later", delayLevel=1)
    got = consumer.received(1)
    t.equal("received", bodies(got), ["later"])
    t.true("waited a second", 0.9 <= _waited(got[0]) < 10, _waited(got[0]))


@case("DELAY-002", "Level 2 is five seconds", source=LEVELS, features="delay")
def five_seconds(t: Trial) -> None:
    """Received not before five seconds after the send."""
    topic = t.topic()
    consumer = t.consumer(topic)
    t.producer().send(topic, "later", delayLevel=2)
    waited = _waited(consumer.received(1)[0])
    t.true("waited five seconds", 4.9 <= waited < 15, waited)


@case("DELAY-003", "Before its time it is in no queue", source=LEVELS, features="delay")
def invisible(t: Trial) -> None:
    """Right after the send the topic's queue is empty; when the time has come it holds one."""
    topic, wire = t.topic(queues=1), t.wire()
    t.producer().send(topic, "later", delayLevel=2)
    t.equal("at once", steps.max_offset(wire, topic), 0)
    t.eventually("later", lambda: steps.max_offset(wire, topic), 1)


@case("DELAY-004", "A delayed message is whole", source=LEVELS, features="delay")
def whole(t: Trial) -> None:
    """Tags, keys, properties and topic are the sender's."""
    topic = t.topic()
    consumer = t.consumer(topic, "TagA")
    fields: dict[str, Any] = {
        "tags": "TagA",
        "keys": "k",
        "properties": {"p": "v"},
        "delayLevel": 1,
    }
    t.producer().send(topic, "later", **fields)
    got = consumer.received(1)[0]
    t.equal("tags, keys", (got["tags"], got["keys"]), ("TagA", "k"))
    t.equal("property", got["properties"].get("p"), "v")
    t.equal("topic", (got["topic"], got["properties"].get("REAL_TOPIC")), (topic, topic))


@case("DELAY-005", "A shorter delay overtakes", source=LEVELS, features="delay")
def overtaking(t: Trial) -> None:
    """Level 2 sent before level 1 arrives after it."""
    topic = t.topic()
    consumer, producer = t.consumer(topic), t.producer()
    producer.send(topic, "five", delayLevel=2)
    producer.send(topic, "one", delayLevel=1)
    t.equal("order", bodies(consumer.received(2)), ["one", "five"])


@case(
    "DELAY-006", "A level above the last is the last", source="broker: maxDelayLevel", run_with=WIRE
)
def above_the_last(t: Trial) -> None:
    """Level 99 is stored with level 18: queue 17 of SCHEDULE_TOPIC_XXXX grows."""
    topic, wire = t.topic(queues=1), t.wire()
    before = steps.max_offset(wire, "SCHEDULE_TOPIC_XXXX", 17)
    reply = wires.send(wire, topic, "x", properties="DELAY\x0199\x02")
    t.equal("code", reply.code, 0)
    t.eventually(
        "queue 17", lambda: steps.max_offset(wire, "SCHEDULE_TOPIC_XXXX", 17) > before, True
    )
    t.equal("the topic's own queue", steps.max_offset(wire, topic), 0)


@case(
    "DELAY-007", "A delayed message outlives a restart", source=LEVELS, features="delay", alone=True
)
def restart(t: Trial) -> None:
    """Sent with level 3 (10 s), the broker killed and started: it arrives all the same."""
    topic = t.topic()
    t.producer().send(topic, "later", delayLevel=3)
    t.servers.broker.restart(kill=True)
    t.equal("received", bodies(t.consumer(topic).received(1, within=60)), ["later"])


@case("TIMER-001", "Deliver at a time", source=TIMERS, features="timer", since="4.9.8", core=True)
def at_a_time(t: Trial) -> None:
    """TIMER_DELIVER_MS three seconds from now is kept to within seconds, and never early."""
    topic = t.topic()
    consumer = t.consumer(topic)
    at = int(time.time() * 1000) + 3000
    t.producer().send(topic, "timed", properties={"TIMER_DELIVER_MS": str(at)})
    late = consumer.received(1)[0]["receivedAt"] - at
    t.true("not early, not late", -1000 <= late < 10_000, late)


@case("TIMER-002", "Deliver after seconds", source=TIMERS, features="timer")
def after_seconds(t: Trial) -> None:
    """TIMER_DELAY_SEC=2 waits two seconds."""
    topic = t.topic()
    consumer = t.consumer(topic)
    t.producer().send(topic, "timed", properties={"TIMER_DELAY_SEC": "2"})
    waited = _waited(consumer.received(1)[0])
    t.true("waited", 1.0 <= waited < 12, waited)


@case("TIMER-003", "Deliver after milliseconds", source=TIMERS, features="timer")
def after_milliseconds(t: Trial) -> None:
    """TIMER_DELAY_MS=2500 waits about that long."""
    topic = t.topic()
    consumer = t.consumer(topic)
    t.producer().send(topic, "timed", properties={"TIMER_DELAY_MS": "2500"})
    waited = _waited(consumer.received(1)[0])
    t.true("waited", 1.4 <= waited < 12, waited)


@case("TIMER-004", "A time that is over", source=TIMERS, features="timer")
def in_the_past(t: Trial) -> None:
    """Delivered at once."""
    topic = t.topic()
    consumer = t.consumer(topic)
    past = str(int(time.time() * 1000) - 60_000)
    t.producer().send(topic, "over", properties={"TIMER_DELIVER_MS": past})
    t.equal("received", bodies(consumer.received(1)), ["over"])


@case("TIMER-005", "Too far away is refused", source="broker: timerMaxDelaySec", features="timer")
def too_far(t: Trial) -> None:
    """Four days ahead is MESSAGE_ILLEGAL with the default limit of three."""
    topic, producer = t.topic(), t.producer()
    far = {"TIMER_DELAY_SEC": str(4 * 24 * 3600)}
    t.refused("send", lambda: producer.send(topic, "far", properties=far), code=13)


@case(
    "TIMER-006",
    "A recalled timer never comes",
    source="protocol: RECALL_MESSAGE",
    since="5.5.0",
    features="timer recall",
    setup=with_properties(recallMessageEnable="true"),
)
def recalled(t: Trial) -> None:
    """Of two timers the recalled one is not delivered, the other is."""
    topic, producer = t.topic(queues=1), t.producer()
    consumer = t.consumer(topic)
    at = str(int(time.time() * 1000) + 5000)
    handle = producer.send(topic, "no", properties={"TIMER_DELIVER_MS": at})["recallHandle"]
    producer.send(topic, "yes", properties={"TIMER_DELIVER_MS": at})
    t.true("a handle", bool(handle), handle)
    t.true("recalled", bool(producer.call("recall", topic=topic, handle=handle)))
    t.equal("received", bodies(consumer.received(1)), ["yes"])
    t.equal("nothing else", bodies(consumer.quiet(1, within=3)), ["yes"])


@case(
    "TIMER-007",
    "A wrong handle is refused",
    source="protocol: RECALL_MESSAGE",
    since="5.5.0",
    features="recall",
)
def wrong_handle(t: Trial) -> None:
    """A handle that nobody gave out raises."""
    topic, producer = t.topic(), t.producer()
    t.refused("recall", lambda: producer.call("recall", topic=topic, handle="bm9uc2Vuc2U="))


@case("TIMER-008", "A timer outlives a kill", source=TIMERS, features="timer", alone=True)
def killed(t: Trial) -> None:
    """The broker is killed while a timer waits; it is delivered after the restart, perhaps twice:
    what the timers had done since their last checkpoint is done again."""
    topic = t.topic()
    t.producer().send(topic, "timed", properties={"TIMER_DELAY_SEC": "8"})
    t.servers.broker.restart(kill=True)
    got = bodies(t.consumer(topic).received(1, within=60))
    t.equal("received", set(got), {"timed"})


@case(
    "TIMER-009",
    "A normal message has no recall handle",
    source="client: SendResult.getRecallHandle",
    since="5.5.0",
    features="recall",
)
def no_handle(t: Trial) -> None:
    """The result of an ordinary send has none."""
    t.equal("handle", t.producer().send(t.topic(), "x").get("recallHandle"), None)


@case(
    "TIMER-010",
    "The broker says no to a far timer",
    source="broker: timerMaxDelaySec",
    run_with=WIRE,
)
def far_frame(t: Trial) -> None:
    """MESSAGE_ILLEGAL, and nothing is stored."""
    topic, wire = t.topic(queues=1), t.wire()
    reply = wires.send(wire, topic, "x", properties=f"TIMER_DELAY_SEC\x01{4 * 86400}\x02")
    t.equal("code", reply.code, ResponseCode.MESSAGE_ILLEGAL)
