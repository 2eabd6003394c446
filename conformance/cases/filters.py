"""Filters: by tag and by SQL92."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyritemq.conformance import steps
from pyritemq.conformance import wire as wires
from pyritemq.conformance.actors import queue
from pyritemq.conformance.catalogue import WIRE, case, family
from pyritemq.conformance.setup import relying_on, with_properties
from pyritemq.conformance.trial import bodies

if TYPE_CHECKING:
    from pyritemq.conformance.trial import Trial

family("TAG", "Filtering by tag")
family("SQL", "Filtering by SQL92")
SQL_ON = relying_on("enablePropertyFilter")
TAGS = "client: subscribe(topic, expression)"
SELECTOR = "client: MessageSelector.bySql"
TWINS = ("AaAa", "BBBB")
"""Two tags with one String.hashCode."""


def _send(t: Trial, topic: str, tags: list[str]) -> None:
    producer = t.producer()
    for tag in tags:
        given: dict[str, Any] = {"tags": tag} if tag else {}
        producer.send(topic, tag or "none", **given)


@case("TAG-001", "One tag", source=TAGS, features="tags", core=True)
def one_tag(t: Trial) -> None:
    """A consumer of tag A receives the messages with tag A and no others."""
    topic = t.topic()
    _send(t, topic, ["A", "B", "A", "C", ""])
    consumer = t.consumer(topic, "A")
    t.equal("received", bodies(consumer.received(2)), ["A", "A"])
    t.equal("nothing else", len(consumer.quiet(2)), 2)


@case("TAG-002", "One of several tags", source=TAGS, features="tags", core=True)
def several_tags(t: Trial) -> None:
    """A || B gives both and no third."""
    topic = t.topic()
    _send(t, topic, ["A", "B", "C"])
    consumer = t.consumer(topic, "A || B")
    t.equal("received", sorted(bodies(consumer.received(2))), ["A", "B"])
    t.equal("nothing else", len(consumer.quiet(2)), 2)


@case("TAG-003", "The star gives everything", source=TAGS, features="tags")
def star(t: Trial) -> None:
    """Messages without a tag as well."""
    topic = t.topic()
    _send(t, topic, ["A", ""])
    t.equal("received", sorted(bodies(t.consumer(topic, "*").received(2))), ["A", "none"])


@case(
    "TAG-004",
    "Tags with one hash are told apart",
    source="client: filter by tag after the pull",
    features="tags",
)
def twins(t: Trial) -> None:
    """Of two tags with the same String.hashCode only the right one reaches the listener."""
    topic = t.topic()
    _send(t, topic, list(TWINS))
    consumer = t.consumer(topic, TWINS[0])
    t.equal("received", bodies(consumer.received(1)), [TWINS[0]])
    t.equal("nothing else", len(consumer.quiet(1)), 1)


@case(
    "TAG-005",
    "The broker filters by hash",
    source="broker: tagsCode in the ConsumeQueue",
    run_with=WIRE,
)
def by_hash(t: Trial) -> None:
    """A pull for one of two tags with the same hash gives both, and no third."""
    topic, wire = t.topic(queues=1), t.wire()
    for tag in (*TWINS, "other"):
        wires.send(wire, topic, tag, properties=f"TAGS\x01{tag}\x02")
    reply = wires.pull(wire, topic, 0, 0, group=t.group(), subscription=TWINS[0])
    got = [bytes(one.body).decode() for one in wires.pulled(reply)]
    t.equal("pulled", got, list(TWINS))


@case("TAG-006", "A filter does not hold up the offset", source=TAGS, features="tags")
def offset_moves(t: Trial) -> None:
    """Messages that do not match are passed: the group's offset is the queue's end in the end."""
    topic, group, wire = t.topic(queues=1), t.group(), t.wire()
    consumer = t.consumer(topic, "A", group=group)
    _send(t, topic, ["B", "B", "A", "B"])
    consumer.received(1)

    def stored() -> int | None:
        consumer.call("persist")
        return steps.stored_offset(wire, group, topic)

    t.eventually("offset", stored, 4)


@case("TAG-007", "A tag outside ASCII", source=TAGS, features="tags")
def unicode_tag(t: Trial) -> None:
    """The hash of a tag is Java's, whatever its letters."""
    topic = t.topic()
    _send(t, topic, ["标签", "żółć"])
    t.equal("received", bodies(t.consumer(topic, "标签").received(1)), ["标签"])


def _with_values(t: Trial, topic: str) -> None:
    """Messages 0 to 9 with property a = number, and b only on even ones."""
    producer = t.producer()
    for number in range(10):
        properties = {"a": str(number), **({"b": "even"} if number % 2 == 0 else {})}
        producer.send(topic, str(number), properties=properties, tags=f"T{number % 3}")


def _expect(t: Trial, sql: str, expected: list[str]) -> None:
    topic = t.topic(queues=2)
    _with_values(t, topic)
    consumer = t.consumer(topic, sql=sql)
    t.equal(sql, sorted(bodies(consumer.received(len(expected)))), expected)
    t.equal("nothing else", len(consumer.quiet(len(expected), within=1.0)), len(expected))


@case("SQL-001", "Comparing numbers", source=SELECTOR, features="sql", core=True, setup=SQL_ON)
def comparison(t: Trial) -> None:
    """a > 3 AND a <= 6."""
    _expect(t, "a > 3 AND a <= 6", ["4", "5", "6"])


@case("SQL-002", "BETWEEN", source=SELECTOR, features="sql", setup=SQL_ON)
def between(t: Trial) -> None:
    """a BETWEEN 2 AND 4 has both ends."""
    _expect(t, "a BETWEEN 2 AND 4", ["2", "3", "4"])


@case("SQL-003", "IN and strings", source=SELECTOR, features="sql", setup=SQL_ON)
def in_list(t: Trial) -> None:
    """b IN ('even', 'odd') leaves out messages without b."""
    _expect(t, "b IN ('even', 'odd')", ["0", "2", "4", "6", "8"])


@case("SQL-004", "IS NULL", source=SELECTOR, features="sql", setup=SQL_ON)
def is_null(t: Trial) -> None:
    """b IS NULL AND a < 6."""
    _expect(t, "b IS NULL AND a < 6", ["1", "3", "5"])


@case("SQL-005", "NOT, OR and brackets", source=SELECTOR, features="sql", setup=SQL_ON)
def boolean(t: Trial) -> None:
    """NOT (a > 1) OR a = 9."""
    _expect(t, "NOT (a > 1) OR a = 9", ["0", "1", "9"])


@case("SQL-006", "TAGS can be asked for", source=SELECTOR, features="sql", setup=SQL_ON)
def tags_in_sql(t: Trial) -> None:
    """TAGS is a property like others."""
    _expect(t, "TAGS = 'T0' AND a >= 3", ["3", "6", "9"])


@case(
    "SQL-007",
    "A wrong expression is refused at the start",
    source="client: checkClientInBroker",
    features="sql",
    setup=SQL_ON,
)
def wrong(t: Trial) -> None:
    """The consumer does not start: the broker refuses to parse."""
    topic = t.topic()
    t.refused("start", lambda: t.consumer(topic, sql="a >>> 3 AND"), kind="MQClientException")


@case(
    "SQL-008",
    "Without enablePropertyFilter SQL is refused",
    source="broker: enablePropertyFilter",
    features="sql",
    setup=with_properties(enablePropertyFilter="false"),
)
def disabled(t: Trial) -> None:
    """The consumer does not start: the broker does not support the expression type."""
    topic = t.topic()
    error = t.refused("start", lambda: t.consumer(topic, sql="a > 3"), kind="MQClientException")
    t.true("the reason", "SQL92" in error.message, error.message)


@case(
    "SQL-009",
    "A lite consumer can filter by SQL",
    source=SELECTOR,
    features="sql lite",
    setup=SQL_ON,
)
def in_lite(t: Trial) -> None:
    """Only matching messages are polled."""
    topic = t.topic(queues=2)
    lite = t.lite(topic, sql="a >= 8")
    _with_values(t, topic)
    t.equal("polled", sorted(bodies(lite.poll(2))), ["8", "9"])


@case(
    "SQL-010",
    "A pull consumer can filter by SQL",
    source=SELECTOR,
    features="sql pull selector",
    setup=SQL_ON,
)
def in_pull(t: Trial) -> None:
    """A pull with an expression gives what matches, and the next offset is behind all."""
    topic = t.topic(queues=1)
    _with_values(t, topic)
    puller, of = t.puller(), queue(topic, 0, t.servers.broker.name)

    def pulled() -> tuple[list[str], int]:
        """The client refuses until a heartbeat told it the broker's version."""
        result = puller.pull(of, 0, sql="a = 5")
        return bodies(result["messages"]), result["nextBeginOffset"]

    t.eventually("bodies and next offset", pulled, (["5"], 10), within=60)
