"""Lite pull consumers: assign, seek, subscribe, commit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyritemq.conformance import steps
from pyritemq.conformance.catalogue import case, family
from pyritemq.conformance.trial import bodies

if TYPE_CHECKING:
    from pyritemq.conformance.trial import Trial

family("LITE", "Lite pull consumers")
SOURCE = "client: DefaultLitePullConsumer"


@case("LITE-001", "Subscribe and poll", source=SOURCE, features="lite", core=True)
def subscribe(t: Trial) -> None:
    """A subscribed consumer polls everything that was sent."""
    topic = t.topic(queues=4)
    lite = t.lite(topic)
    t.producer().send_many(steps.numbered(topic, 12))
    t.equal("polled", sorted(bodies(lite.poll(12)), key=int), steps.numbers(12))


@case("LITE-002", "Assign and seek", source=SOURCE, features="lite")
def assign_and_seek(t: Trial) -> None:
    """An assigned queue can be read from an offset in its middle."""
    topic = t.topic(queues=2)
    steps.fill(t, topic, 10, queue_id=1)
    lite = t.lite()
    of = lite.queues(topic)[1]
    lite.call("assign", queues=[of])

    def polled() -> list[str]:
        """The client interrupts the pull under way, and at times the new one with it."""
        lite.call("seek", queue=of, to=6)
        return bodies(lite.poll(4, within=10))

    t.eventually("polled", polled, steps.numbers(4, first=6))


@case("LITE-003", "Seek to begin and end", source=SOURCE, features="lite")
def begin_and_end(t: Trial) -> None:
    """seekToBegin reads all again; seekToEnd only what comes later."""
    topic = t.topic(queues=1)
    steps.fill(t, topic, 4)
    lite = t.lite()
    of = lite.queues(topic)[0]
    lite.call("assign", queues=[of])
    lite.call("seek", queue=of, to="begin")
    t.equal("from the beginning", bodies(lite.poll(4)), steps.numbers(4))
    lite.call("seek", queue=of, to="end")
    steps.fill(t, topic, 1, first=4)
    t.equal("from the end", bodies(lite.poll(1)), ["4"])


@case("LITE-004", "What is committed is where the next one begins", source=SOURCE, features="lite")
def commit(t: Trial) -> None:
    """After commitSync and shutdown another consumer of the group polls only later messages."""
    topic, group = t.topic(queues=1), t.group()
    steps.fill(t, topic, 3)
    first = t.lite(topic, group=group, options={"autoCommit": False})
    first.poll(3)
    first.call("commit")
    first.shutdown()
    wire = t.wire()
    t.eventually("offset", lambda: steps.stored_offset(wire, group, topic), 3)
    steps.fill(t, topic, 2, first=3)
    t.equal("polled", bodies(t.lite(topic, group=group).poll(2)), ["3", "4"])


@case("LITE-005", "A queue can be paused", source=SOURCE, features="lite")
def pause(t: Trial) -> None:
    """A paused queue gives nothing; resumed, it gives what came meanwhile."""
    topic = t.topic(queues=1)
    lite = t.lite()
    of = lite.queues(topic)[0]
    lite.call("assign", queues=[of])
    lite.call("seek", queue=of, to="begin")
    lite.call("pause", queues=[of])
    steps.fill(t, topic, 1)
    before = bodies(lite.poll(1, within=1.5))  # by a pull that waited when the queue was paused
    steps.fill(t, topic, 2, first=1)
    t.equal("paused", bodies(lite.poll(1, within=1.5)), [])
    lite.call("resume", queues=[of])
    t.equal("resumed", before + bodies(lite.poll(3 - len(before))), steps.numbers(3))


@case("LITE-006", "A group shares the queues", source=SOURCE, features="lite")
def share(t: Trial) -> None:
    """Two subscribed consumers of one group poll each of forty messages once."""
    topic, group = t.topic(queues=4), t.group()
    one, two = t.lite(topic, group=group), t.lite(topic, group=group)
    one.poll(1, within=6)  # both have their share after the rebalance that the second one caused
    t.producer().send_many(steps.numbered(topic, 40))
    got = bodies(one.poll(20)) + bodies(two.poll(20))
    t.equal("each once", sorted(got, key=int), steps.numbers(40))


@case("LITE-007", "An offset is found by time", source=SOURCE, features="lite")
def by_time(t: Trial) -> None:
    """offsetForTimestamp gives the offset of the first message stored at that time or later."""
    topic = t.topic(queues=1)
    steps.fill(t, topic, 3)
    lite = t.lite()
    of = lite.queues(topic)[0]
    t.equal("long ago", lite.call("offsetForTimestamp", queue=of, timestamp=1000), 0)


@case("LITE-008", "Offsets are committed by themselves", source=SOURCE, features="lite")
def auto_commit(t: Trial) -> None:
    """With autoCommit the broker has the offset after a while of polling."""
    topic, group = t.topic(queues=1), t.group()
    steps.fill(t, topic, 3)
    lite = t.lite(topic, group=group, options={"autoCommitIntervalMillis": 1000})
    lite.poll(3)
    wire = t.wire()

    def stored() -> int | None:
        lite.poll(1, within=0.3)
        return steps.stored_offset(wire, group, topic)

    t.eventually("offset", stored, 3)


@case("LITE-009", "A lite consumer can filter by tag", source=SOURCE, features="lite tags")
def tags(t: Trial) -> None:
    """Only messages with the tag are polled."""
    topic, producer = t.topic(queues=2), t.producer()
    lite = t.lite(topic, "A || C")
    for tag in "ABCABC":
        producer.send(topic, tag, tags=tag)
    t.equal("polled", sorted(bodies(lite.poll(4))), ["A", "A", "C", "C"])
    t.equal("nothing else", lite.poll(1, within=1.0), [])


@case("LITE-010", "The committed offset can be asked for", source=SOURCE, features="lite")
def committed(t: Trial) -> None:
    """committed() is what the group committed."""
    topic, group, wire = t.topic(queues=1), t.group(), t.wire()
    steps.fill(t, topic, 5)
    lite = t.lite(group=group)
    of = lite.queues(topic)[0]
    lite.call("assign", queues=[of])
    lite.call("seek", queue=of, to="begin")
    t.equal("polled", len(lite.poll(5)), 5)
    lite.call("commit")
    t.eventually("at the broker", lambda: steps.stored_offset(wire, group, topic), 5)
    t.equal("committed()", lite.call("committed", queue=of), 5)
