"""Queries: a message found by id, unique id, key and time."""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING

from pyritemq.conformance import steps
from pyritemq.conformance import wire as wires
from pyritemq.conformance.catalogue import WIRE, case, family
from pyritemq.conformance.trial import bodies
from pyritemq.protocol.codes import RequestCode
from pyritemq.protocol.record import decode_records

if TYPE_CHECKING:
    from pyritemq.conformance.trial import Trial

family("QUERY", "Query by id, key and time")
BY_ID = "protocol: VIEW_MESSAGE_BY_ID"
BY_KEY = "protocol: QUERY_MESSAGE"
NO_MESSAGE = 208
QUERY_NOT_FOUND = 22


@case("QUERY-001", "By the store's id", source=BY_ID, features="query", core=True)
def by_offset_id(t: Trial) -> None:
    """viewMessage with offsetMsgId gives the message, at its queue and offset."""
    topic, producer = t.topic(queues=1), t.producer()
    sent = producer.send(topic, "here", keys="k")
    got = producer.view(topic, sent["offsetMsgId"])
    t.equal("message", (got["body"], got["keys"], got["topic"]), ("here", "k", topic))
    t.equal("place", (got["queueId"], got["queueOffset"]), (0, 0))


@case("QUERY-002", "By the unique id", source=BY_KEY, features="query", core=True)
def by_unique_id(t: Trial) -> None:
    """viewMessage with msgId finds it through the index."""
    topic, producer = t.topic(queues=1), t.producer()
    sent = producer.send(topic, "unique")
    t.eventually("found", lambda: producer.view(topic, sent["msgId"])["body"], "unique")


@case("QUERY-003", "By key", source=BY_KEY, features="query", core=True)
def by_key(t: Trial) -> None:
    """queryMessage gives the messages with the key, and no others of the topic."""
    topic, producer, key = t.topic(queues=1), t.producer(), t.name("key")
    for number in range(3):
        producer.send(topic, f"mine{number}", keys=key)
        producer.send(topic, f"other{number}", keys=f"{key}x")
    wanted = [f"mine{number}" for number in range(3)]
    t.eventually("found", lambda: sorted(bodies(producer.query(topic, key))), wanted)


@case("QUERY-004", "By each of several keys", source=BY_KEY, features="query")
def several_keys(t: Trial) -> None:
    """A message with keys "a b" is found by a and by b, and not by "a b"."""
    topic, producer = t.topic(queues=1), t.producer()
    one, two = t.name("a"), t.name("b")
    producer.send(topic, "two keys", keys=f"{one} {two}")
    t.eventually("by the first", lambda: bodies(producer.query(topic, one)), ["two keys"])
    t.eventually("by the second", lambda: bodies(producer.query(topic, two)), ["two keys"])
    t.refused("both as one", lambda: producer.query(topic, f"{one} {two}"), code=NO_MESSAGE)


@case("QUERY-005", "Nothing has the key", source=BY_KEY, features="query")
def no_such_key(t: Trial) -> None:
    """The client raises NO_MESSAGE."""
    topic, producer = t.topic(queues=1), t.producer()
    producer.send(topic, "x", keys="there")
    t.refused("query", lambda: producer.query(topic, t.name("absent")), code=NO_MESSAGE)


@case("QUERY-006", "A key belongs to its topic", source=BY_KEY, features="query")
def other_topic(t: Trial) -> None:
    """The same key in another topic is not found here."""
    here, there, producer, key = t.topic(queues=1), t.topic(queues=1), t.producer(), t.name("key")
    producer.send(here, "here", keys=key)
    producer.send(there, "there", keys=key)
    t.eventually("here", lambda: bodies(producer.query(here, key)), ["here"])
    t.eventually("there", lambda: bodies(producer.query(there, key)), ["there"])


@case("QUERY-007", "Within a time", source=BY_KEY, features="query")
def within_time(t: Trial) -> None:
    """Only messages stored between begin and end are found."""
    topic, producer, key = t.topic(queues=1), t.producer(), t.name("key")
    producer.send(topic, "early", keys=key)
    time.sleep(2.2)  # the index keeps whole seconds
    middle = int(time.time() * 1000)
    time.sleep(2.2)
    producer.send(topic, "late", keys=key)
    t.eventually("both", lambda: sorted(bodies(producer.query(topic, key))), ["early", "late"])
    t.equal("first half", bodies(producer.query(topic, key, end=middle)), ["early"])
    t.equal("second half", bodies(producer.query(topic, key, begin=middle)), ["late"])


@case("QUERY-008", "At most so many", source=BY_KEY, run_with=WIRE)
def at_most(t: Trial) -> None:
    """maxNum 2 gives the two newest of five."""
    topic, wire, key = t.topic(queues=1), t.wire(), t.name("key")
    for number in range(5):
        wires.send(wire, topic, str(number), properties=f"KEYS\x01{key}\x02")
    fields = {"topic": topic, "key": key, "beginTimestamp": 0, "endTimestamp": 2**62}

    def found(count: int) -> list[str]:
        reply = wire.call(RequestCode.QUERY_MESSAGE, {**fields, "maxNum": count})
        records = decode_records(bytes(reply.body)) if reply.code == 0 else []
        return [bytes(record.body).decode() for record in records]

    t.eventually("all", lambda: sorted(found(32)), steps.numbers(5))
    t.equal("two", sorted(found(2)), ["3", "4"])


@case("QUERY-009", "An index reply tells how far it is", source=BY_KEY, run_with=WIRE)
def index_fields(t: Trial) -> None:
    """QUERY_NOT_FOUND has indexLastUpdateTimestamp and indexLastUpdatePhyoffset as well."""
    topic, wire = t.topic(queues=1), t.wire()
    wires.send(wire, topic, "x", properties="KEYS\x01k\x02")
    fields = {"topic": topic, "key": t.name("absent"), "maxNum": 32}
    fields |= {"beginTimestamp": 0, "endTimestamp": 2**62}
    reply = wire.call(RequestCode.QUERY_MESSAGE, fields)
    t.equal("code", reply.code, QUERY_NOT_FOUND)
    t.equal("remark", reply.remark, "can not find message, maybe time range not correct")
    wanted = ["indexLastUpdatePhyoffset", "indexLastUpdateTimestamp"]
    t.equal("fields", sorted(reply.ext_fields), wanted)


@case("QUERY-010", "An offset without a message", source=BY_ID, run_with=WIRE)
def no_such_offset(t: Trial) -> None:
    """VIEW_MESSAGE_BY_ID beyond the log is SYSTEM_ERROR with a remark that names the offset."""
    reply = t.wire().call(RequestCode.VIEW_MESSAGE_BY_ID, {"offset": 2**40})
    wanted = f"can not find message by the offset, {2**40}"
    t.equal("answer", (reply.code, reply.remark), (1, wanted))


@case("QUERY-011", "Every message of a batch has its key", source=BY_KEY, features="query batch")
def batch_keys(t: Trial) -> None:
    """Three messages of one batch are found by their own keys."""
    topic, producer, key = t.topic(queues=1), t.producer(), t.name("key")
    batch = [{"topic": topic, "body": str(n), "keys": f"{key}_{n}"} for n in range(3)]
    producer.send_batch(batch)

    def found() -> list[list[str]]:
        return [bodies(producer.query(topic, f"{key}_{number}")) for number in range(3)]

    t.eventually("by their keys", found, [["0"], ["1"], ["2"]])


@case("QUERY-012", "mqadmin finds by every id", source="mqadmin: queryMsgById and its kin")
def by_mqadmin(t: Trial) -> None:
    """queryMsgById, queryMsgByUniqueKey, queryMsgByKey and queryMsgByOffset show the message."""
    topic, producer, key = t.topic(queues=1), t.producer(), t.name("key")
    sent = producer.send(topic, "shown", keys=key)
    t.eventually("indexed", lambda: bodies(producer.query(topic, key)), ["shown"])
    broker = t.servers.broker.name
    asked = {
        "queryMsgById": ("-i", sent["offsetMsgId"], "-t", topic),
        "queryMsgByUniqueKey": ("-i", sent["msgId"], "-t", topic),
        "queryMsgByKey": ("-k", key, "-t", topic),
        "queryMsgByOffset": ("-t", topic, "-b", broker, "-i", "0", "-o", "0"),
    }
    for command, arguments in asked.items():
        shown = partial(_shows, t, command, arguments, (sent["msgId"], sent["offsetMsgId"]))
        t.eventually(command, shown, True)


def _shows(t: Trial, command: str, arguments: tuple[str, ...], ids: tuple[str, str]) -> bool:
    said = t.mqadmin(command, *arguments)
    return any(one in said for one in ids)


@case(
    "QUERY-013", "Keys are indexed anew after a kill", source=BY_KEY, features="query", alone=True
)
def after_kill(t: Trial) -> None:
    """What was sent before kill -9 is found by its key and by its ids after the restart."""
    topic, producer, key = t.topic(queues=1), t.producer(), t.name("key")
    sent = [producer.send(topic, str(number), keys=key) for number in range(5)]
    t.servers.broker.restart(kill=True)
    wanted = steps.numbers(5)
    t.eventually("by key", lambda: sorted(bodies(producer.query(topic, key))), wanted, within=60)
    t.equal("by id", producer.view(topic, sent[2]["offsetMsgId"])["body"], "2")
