"""Restarts and kills of the broker under each kind of client; slow consumers and backlogs."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from pyritemq.conformance import steps
from pyritemq.conformance.actors import queue
from pyritemq.conformance.catalogue import case, family
from pyritemq.conformance.trial import bodies

if TYPE_CHECKING:
    from pyritemq.conformance.trial import Trial

family("CRASH", "Restart and kill -9 under clients")
family("SLOW", "Slow consumers and backlogs")
RECOVERY = "broker: recovery"
LONG = 90.0


def _all(got: list[str]) -> list[str]:
    """What came, each once: a kill may make a consumer receive again what it had not committed."""
    return sorted(set(got), key=int)


def _push_survives(t: Trial, *, kill: bool) -> None:
    topic, producer = t.topic(queues=2), t.producer()
    consumer = t.consumer(topic)
    producer.send_many(steps.numbered(topic, 10))
    t.equal("before", len(consumer.received(10)), 10)
    t.servers.broker.restart(kill=kill)
    last = steps.numbered(topic, 1, first=10)
    t.eventually("sent", lambda: producer.send_many(last)[0]["status"], "SEND_OK", within=LONG)
    t.eventually(
        "after", lambda: _all(bodies(consumer.received(0))), steps.numbers(11), within=LONG
    )


@case("CRASH-001", "A push consumer outlives a restart", source=RECOVERY, alone=True)
def push_restart(t: Trial) -> None:
    """After a clean restart the same producer and consumer go on by themselves."""
    _push_survives(t, kill=False)


@case("CRASH-002", "A push consumer outlives a kill", source=RECOVERY, alone=True)
def push_kill(t: Trial) -> None:
    """After kill -9 and a start the same producer and consumer go on by themselves."""
    _push_survives(t, kill=True)


@case("CRASH-003", "What was acknowledged survives a kill", source=RECOVERY, alone=True)
def acknowledged(t: Trial) -> None:
    """Two hundred messages told as SEND_OK before kill -9 are all received after the start, at the
    offsets that were told."""
    topic = t.topic(queues=4)
    sent = t.producer().send_many(steps.numbered(topic, 200))
    t.servers.broker.restart(kill=True)
    got = t.consumer(topic).received(200, within=LONG)
    t.equal("received", _all(bodies(got)), steps.numbers(200))
    told = {(one["queueId"], one["queueOffset"]) for one in sent}
    t.equal("places", {(one["queueId"], one["queueOffset"]) for one in got}, told)


@case("CRASH-004", "A lite consumer outlives a kill", source=RECOVERY, alone=True, features="lite")
def lite_kill(t: Trial) -> None:
    """It polls what came after the start."""
    topic, producer = t.topic(queues=1), t.producer()
    lite = t.lite(topic)
    producer.send_many(steps.numbered(topic, 3))
    t.equal("before", len(lite.poll(3)), 3)
    t.servers.broker.restart(kill=True)
    last = steps.numbered(topic, 1, first=3)
    t.eventually("sent", lambda: producer.send_many(last)[0]["status"], "SEND_OK", within=LONG)
    t.true("after", "3" in bodies(lite.poll(1, within=LONG)))


@case(
    "CRASH-005",
    "An ordered consumer outlives a kill",
    source=RECOVERY,
    alone=True,
    features="order",
)
def ordered_kill(t: Trial) -> None:
    """Its lock is taken anew, and what it receives is still in order."""
    topic, producer = t.topic(queues=1), t.producer()
    consumer = t.consumer(topic, mode="orderly")
    producer.send_many(steps.numbered(topic, 5))
    t.equal("before", bodies(consumer.received(5)), steps.numbers(5))
    t.servers.broker.restart(kill=True)
    for number in range(5, 10):
        one = steps.numbered(topic, 1, first=number)
        t.eventually("sent", lambda one=one: len(producer.send_many(one)), 1, within=LONG)  # type: ignore[misc]
    t.eventually("all", lambda: _all(bodies(consumer.received(0))), steps.numbers(10), within=LONG)
    after = bodies(consumer.received(0))[5:]
    firsts = [body for place, body in enumerate(after) if body not in after[:place]]
    t.equal("in order", firsts, sorted(firsts, key=int))


@case(
    "CRASH-006",
    "A broadcasting consumer outlives a kill",
    source=RECOVERY,
    alone=True,
    features="broadcast",
)
def broadcast_kill(t: Trial) -> None:
    """Both members receive what came after the start."""
    topic, producer, group = t.topic(queues=1), t.producer(), t.group()
    options = {"messageModel": "BROADCASTING"}
    both = [t.consumer(topic, group=group, options=options) for _ in range(2)]
    t.servers.broker.restart(kill=True)
    one = steps.numbered(topic, 1)
    t.eventually("sent", lambda: len(producer.send_many(one)), 1, within=LONG)
    for consumer in both:
        t.true("received", "0" in bodies(consumer.received(1, within=LONG)))


@case(
    "CRASH-007", "Offsets survive a clean restart", source="broker: consumerOffset.json", alone=True
)
def offsets_restart(t: Trial) -> None:
    """A group's next consumer receives only what came later."""
    topic, group, producer = t.topic(queues=1), t.group(), t.producer()
    producer.send_many(steps.numbered(topic, 5))
    first = t.consumer(topic, group=group)
    first.received(5)
    steps.settled(t, first, topic, 1, 5)
    first.shutdown()
    t.servers.broker.restart()
    one = steps.numbered(topic, 1, first=5)
    t.eventually("sent", lambda: len(producer.send_many(one)), 1, within=LONG)
    second = t.consumer(topic, group=group)
    t.equal("received", bodies(second.received(1, within=LONG)), ["5"])
    t.equal("nothing else", len(second.quiet(1)), 1)


@case("CRASH-008", "Topics and groups survive a kill", source="broker: topics.json", alone=True)
def tables_kill(t: Trial) -> None:
    """The topic is served and routed with its queues, and the group keeps its settings."""
    topic, group = t.topic(queues=3), t.group(retryMaxTimes=0)
    t.servers.broker.restart(kill=True)
    t.eventually("queues", lambda: steps.write_queues(t.namesrv_wire(), topic), 3, within=60)
    consumer = t.consumer(topic, group=group)
    producer = t.producer()
    one = steps.numbered(topic, 1)
    t.eventually("sent", lambda: len(producer.send_many(one)), 1, within=LONG)
    t.equal("received", bodies(consumer.received(1, within=LONG)), ["0"])


@case("CRASH-009", "Dead in the middle of sends", source=RECOVERY, alone=True)
def mid_sends(t: Trial) -> None:
    """A producer that sends while the broker is killed and started: what it was told is stored is
    received."""
    topic, producer = t.topic(queues=2), t.producer(options={"sendMsgTimeout": 3000})
    told: list[str] = []

    def send_on() -> None:
        for number in range(400):
            one = steps.numbered(topic, 1, first=number)
            if t.attempt(lambda one=one: producer.send_many(one)):  # type: ignore[misc]
                told.append(str(number))
            if len(told) > 150 and number > 300:
                return

    thread = steps.in_background(send_on)
    t.eventually("sends under way", lambda: len(told) > 50, True)
    t.servers.broker.restart(kill=True)
    thread.join(LONG)
    before = list(told)
    t.true("some were told", len(before) > 50, len(before))
    got = set(bodies(t.consumer(topic).received(len(before), within=LONG)))
    t.equal("told and lost", sorted(set(before) - got, key=int), [])


@case("SLOW-001", "A slow listener loses nothing", source="client: ProcessQueue")
def slow_listener(t: Trial) -> None:
    """Thirty messages of 50 ms each, with one thread, all arrive in the end, each once."""
    topic, producer = t.topic(queues=2), t.producer()
    options = {"consumeThreadMin": 1, "consumeThreadMax": 1}
    consumer = t.consumer(topic, options=options)
    many = steps.numbered(topic, 30, properties={"sleepMs": "50"})
    producer.send_many(many)
    t.equal("received", sorted(bodies(consumer.received(30)), key=int), steps.numbers(30))
    t.equal("each once", len(consumer.quiet(30)), 30)


@case(
    "SLOW-002",
    "The client holds back its pulls",
    source="client: pullThresholdForQueue",
    features="options",
)
def flow_control(t: Trial) -> None:
    """With pullThresholdForQueue=10 and a backlog of 100, all arrive, and sends go on meanwhile."""
    topic = t.topic(queues=1)
    steps.fill(t, topic, 100)
    options = {"pullThresholdForQueue": 10, "consumeThreadMin": 2, "consumeThreadMax": 2}
    consumer = t.consumer(topic, options=options)
    t.equal("sent meanwhile", t.producer().send(topic, "100")["status"], "SEND_OK")
    got = bodies(consumer.received(101, within=60))
    t.equal("received", sorted(got, key=int), steps.numbers(101))


@case("SLOW-003", "A slow group does not slow another", source="broker: long polling")
def other_group(t: Trial) -> None:
    """While one group sleeps in its listener, another receives everything."""
    topic, producer = t.topic(queues=1), t.producer()
    options = {"consumeThreadMin": 1, "consumeThreadMax": 1}
    t.consumer(topic, options=options)
    quick = t.puller()
    producer.send_many(steps.numbered(topic, 20, properties={"sleepMs": "500"}))
    of = queue(topic, 0, t.servers.broker.name)

    def pulled() -> list[str]:
        return bodies(quick.pull(of, 0)["messages"])

    t.eventually("by the other", pulled, steps.numbers(20), within=5)


@case(
    "SLOW-004",
    "A backlog is read in order of its offsets",
    source="protocol: PULL_MESSAGE",
    features="pull selector",
)
def backlog(t: Trial) -> None:
    """Five hundred messages read in pulls of 32 come at the offsets 0 to 499."""
    topic = t.topic(queues=1)
    for first in range(0, 500, 100):
        steps.fill(t, topic, 100, first=first)
    puller, of = t.puller(), queue(topic, 0, t.servers.broker.name)
    offsets: list[int] = []
    deadline = time.monotonic() + 60
    while len(offsets) < 500 and time.monotonic() < deadline:
        found = puller.pull(of, len(offsets))["messages"]
        t.true("at most 32", len(found) <= 32, len(found))
        offsets += [one["queueOffset"] for one in found]
    t.equal("offsets", offsets, list(range(500)))


@case(
    "SLOW-005", "A listener that takes very long is not asked twice", source="client: ProcessQueue"
)
def very_long(t: Trial) -> None:
    """A message whose listener sleeps for six seconds is delivered once."""
    topic = t.topic(queues=1)
    consumer = t.consumer(topic)
    t.producer().send(topic, "long", properties={"sleepMs": "6000"})
    t.equal("received", bodies(consumer.received(1)), ["long"])
    t.equal("once", len(consumer.quiet(1, within=8)), 1)
