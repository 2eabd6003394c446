"""Transactions: two phases, the check-back, and what is left when nobody decides."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from pyritemq.conformance import steps
from pyritemq.conformance import wire as wires
from pyritemq.conformance.catalogue import WIRE, case, family
from pyritemq.conformance.drivers.link import DriverError
from pyritemq.conformance.setup import with_properties
from pyritemq.conformance.trial import bodies
from pyritemq.protocol.codes import RequestCode, ResponseCode

if TYPE_CHECKING:
    from pyritemq.conformance.actors import Producer
    from pyritemq.conformance.trial import Trial
    from pyritemq.conformance.wire import Wire

family("TXN", "Transactions")
SOURCE = "client: TransactionMQProducer"
CHECK = "protocol: CHECK_TRANSACTION_STATE"
END = "protocol: END_TRANSACTION"
GIVEN_UP = "TRANS_CHECK_MAX_TIME_TOPIC"
PREPARED = 0x4
COMMIT, ROLLBACK = 0x8, 0xC


def _producer(t: Trial, **how: object) -> Producer:
    return t.producer(transactional=True, **how)


@case("TXN-001", "A committed message arrives", source=SOURCE, features="transaction", core=True)
def committed(t: Trial) -> None:
    """The send is SEND_OK with COMMIT_MESSAGE, and a consumer receives the message once."""
    topic = t.topic(queues=1)
    sent = _producer(t).send_in_transaction(topic, "yes", local="commit")
    t.equal("result", (sent["status"], sent["localState"]), ("SEND_OK", "COMMIT_MESSAGE"))
    consumer = t.consumer(topic)
    t.equal("received", bodies(consumer.received(1)), ["yes"])
    t.equal("once", len(consumer.quiet(1)), 1)


@case(
    "TXN-002",
    "A rolled back message never arrives",
    source=SOURCE,
    features="transaction",
    core=True,
)
def rolled_back(t: Trial) -> None:
    """The local state is ROLLBACK_MESSAGE; the topic stays empty and nobody is asked."""
    topic, producer = t.topic(queues=1), _producer(t)
    sent = producer.send_in_transaction(topic, "no", local="rollback", check="commit")
    t.equal("local state", sent["localState"], "ROLLBACK_MESSAGE")
    t.equal("nobody is asked", producer.checks(1, within=5), [])
    t.equal("stored in the topic", steps.max_offset(t.wire(), topic), 0)


@case(
    "TXN-003",
    "An undecided message is asked about and committed",
    source=CHECK,
    features="transaction",
    core=True,
)
def checked_and_committed(t: Trial) -> None:
    """After UNKNOW the broker asks the producer; its COMMIT_MESSAGE makes the message arrive."""
    topic, producer = t.topic(queues=1), _producer(t)
    sent = producer.send_in_transaction(topic, "late", local="unknown", check="commit")
    t.equal("local state", sent["localState"], "UNKNOW")
    asked = producer.checks(1)[0]
    t.equal("asked about", (asked["topic"], asked["body"]), (topic, "late"))
    t.equal("received", bodies(t.consumer(topic).received(1)), ["late"])


@case(
    "TXN-004",
    "An undecided message is asked about and rolled back",
    source=CHECK,
    features="transaction",
)
def checked_and_rolled_back(t: Trial) -> None:
    """After ROLLBACK_MESSAGE to the check, nothing arrives."""
    topic, producer = t.topic(queues=1), _producer(t)
    producer.send_in_transaction(topic, "never", local="unknown", check="rollback")
    t.equal("asked about", bodies(producer.checks(1)), ["never"])
    t.equal("received", t.consumer(topic).quiet(0, within=3), [])


@case(
    "TXN-005",
    "The broker asks again while nobody knows",
    source=CHECK,
    features="transaction",
)
def checked_again(t: Trial) -> None:
    """A producer that answers UNKNOW is asked again; a later COMMIT_MESSAGE counts, and the message
    arrives once."""
    topic, producer = t.topic(queues=1), _producer(t)
    producer.send_in_transaction(topic, "third", local="unknown", check="unknown,unknown,commit")
    t.equal("asked about", set(bodies(producer.checks(3, within=60))), {"third"})
    consumer = t.consumer(topic)
    t.equal("received", bodies(consumer.received(1)), ["third"])
    t.equal("once", len(consumer.quiet(1)), 1)


@case(
    "TXN-006",
    "A local transaction that throws is undecided",
    source=SOURCE,
    features="transaction",
)
def local_throws(t: Trial) -> None:
    """Nothing arrives before the check; after its COMMIT_MESSAGE the message does."""
    topic, producer = t.topic(queues=1), _producer(t)
    sent = producer.send_in_transaction(topic, "thrown", local="throw", check="commit")
    t.equal("local state", sent["localState"], "UNKNOW")
    t.equal("asked about", bodies(producer.checks(1)), ["thrown"])
    t.equal("received", bodies(t.consumer(topic).received(1)), ["thrown"])


@case(
    "TXN-007",
    "The broker gives up after transactionCheckMax checks",
    source="broker: transactionCheckMax",
    features="transaction",
    setup=with_properties(transactionCheckMax=2),
)
def given_up(t: Trial) -> None:
    """A message that nobody ever decides about lands in TRANS_CHECK_MAX_TIME_TOPIC, and not in its
    own topic."""
    topic, producer = t.topic(queues=1), _producer(t)
    sent = producer.send_in_transaction(topic, "open", local="unknown", check="unknown")
    wire = t.wire()
    group = t.group()

    def kept() -> list[str | None]:
        found = wires.pulled(wires.pull(wire, GIVEN_UP, 0, 0, group=group))
        keys = [wires.properties(record).get("UNIQ_KEY") for record in found]
        return [key for key in keys if key == sent["msgId"]]

    t.eventually("in the topic of the given up", kept, [sent["msgId"]], within=60)
    t.equal("stored in its own topic", steps.max_offset(wire, topic), 0)


@case(
    "TXN-008",
    "Another producer of the group is asked",
    source=CHECK,
    features="transaction",
)
def asked_another(t: Trial) -> None:
    """When the producer's process is killed, a second producer of the group is asked, and its
    COMMIT_MESSAGE makes the message arrive."""
    topic, group = t.topic(queues=1), t.name("P")
    stays = _producer(t, group=group, options={"heartbeatBrokerInterval": 1000})
    stays.send(topic, "hello")  # a producer says that it is there to brokers that it knows
    doomed = t.another_driver()
    dies = _producer(t, group=group, via=doomed)
    properties = {"CHECK_IMMUNITY_TIME_IN_SECONDS": "4", "local": "unknown", "check": "commit"}
    dies.send_in_transaction(topic, "orphan", **properties)
    doomed.kill()
    t.equal("asked about", set(bodies(stays.checks(1, within=100))), {"orphan"})
    t.equal("received", bodies(t.consumer(topic).received(2)), ["hello", "orphan"])


@case(
    "TXN-009",
    "A message may ask for time before the first check",
    source="client: CHECK_IMMUNITY_TIME_IN_SECONDS",
    features="transaction",
)
def immunity(t: Trial) -> None:
    """With CHECK_IMMUNITY_TIME_IN_SECONDS=6 nobody is asked in the first six seconds."""
    topic, producer = t.topic(queues=1), _producer(t)
    began = time.time()
    properties = {"local": "unknown", "check": "commit", "CHECK_IMMUNITY_TIME_IN_SECONDS": "6"}
    producer.send_in_transaction(topic, "patient", **properties)
    asked = producer.checks(1, within=60)
    t.equal("asked about", bodies(asked[:1]), ["patient"])
    t.true("after six seconds", time.time() - began >= 6, time.time() - began)


@case("TXN-010", "Keys, tags and ids survive both phases", source=SOURCE, features="transaction")
def whole_message(t: Trial) -> None:
    """The committed message has the producer's keys, tags and properties, its unique id is the id
    that the send gave, and nothing of the half topic shows."""
    topic = t.topic(queues=1)
    fields = {"tags": "TagT", "keys": "order1", "properties": {"local": "commit", "mine": "v"}}
    given = {"topic": topic, "body": "b", **fields}
    sent = _producer(t).call("sendTransaction", message=given)
    got = t.consumer(topic, "TagT").received(1)[0]
    t.equal("tags and keys", (got["tags"], got["keys"]), ("TagT", "order1"))
    t.equal("property", got["properties"].get("mine"), "v")
    t.equal("unique id", got["msgId"], sent["msgId"])
    hidden = [name for name in ("REAL_TOPIC", "REAL_QID") if name in got["properties"]]
    t.equal("traces of the half topic", hidden, [])
    t.equal("transaction bits", got["sysFlag"] & 0xC, COMMIT)


@case("TXN-011", "A delay level is ignored", source=SOURCE, features="transaction")
def delay_is_ignored(t: Trial) -> None:
    """A transactional message with delay level 4 (30 s) arrives at once when committed, or the
    client refuses to send it, as 5.x does."""
    topic, producer = t.topic(queues=1), _producer(t)
    given = {"topic": topic, "body": "now", "delayLevel": 4, "properties": {"local": "commit"}}
    try:
        producer.call("sendTransaction", message=given)
    except DriverError as refusal:
        t.true("says why", "do not support delayed delivery" in refusal.message, refusal)
    else:
        t.equal("received", bodies(t.consumer(topic).received(1, within=20)), ["now"])


def _half(t: Trial, wire: Wire, topic: str, group: str) -> dict[str, object]:
    """A prepared message by wire; gives the fields of its END_TRANSACTION."""
    properties = f"TRAN_MSG\x01true\x02PGROUP\x01{group}\x02UNIQ_KEY\x01{t.name('U')}\x02"
    fields = wires.send_fields(topic, properties=properties, group=group, f=PREPARED)
    reply = wire.call(RequestCode.SEND_MESSAGE_V2, fields, b"half")
    t.equal("code of the half message", reply.code, 0)
    message_id = reply.ext_fields["msgId"]
    return {
        "producerGroup": group,
        "tranStateTableOffset": reply.ext_fields["queueOffset"],
        "commitLogOffset": int(message_id[-16:], 16),
        "fromTransactionCheck": "false",
        "msgId": message_id,
        "transactionId": reply.ext_fields.get("transactionId", ""),
        "topic": topic,
    }


@case("TXN-012", "A half message is not in its topic", source=END, run_with=WIRE, core=True)
def half_is_hidden(t: Trial) -> None:
    """A send with the prepared flag leaves the topic empty; END_TRANSACTION with the commit type
    puts the message there."""
    topic, wire, group = t.topic(queues=1), t.wire(), t.name("P")
    end = _half(t, wire, topic, group)
    t.equal("before", steps.max_offset(wire, topic), 0)
    reply = wire.call(RequestCode.END_TRANSACTION, {**end, "commitOrRollback": COMMIT})
    t.equal("code", reply.code, 0)
    t.eventually("after", lambda: steps.max_offset(wire, topic), 1)


@case("TXN-013", "Only its own group may end a transaction", source=END, run_with=WIRE)
def wrong_group(t: Trial) -> None:
    """END_TRANSACTION from another producer group is refused with SYSTEM_ERROR, and the message
    stays hidden."""
    topic, wire, group = t.topic(queues=1), t.wire(), t.name("P")
    end = {**_half(t, wire, topic, group), "producerGroup": "somebody_else"}
    reply = wire.call(RequestCode.END_TRANSACTION, {**end, "commitOrRollback": COMMIT})
    t.equal("code", reply.code, 1)
    t.equal("remark", reply.remark, "The producer group wrong")
    t.equal("stored", steps.max_offset(wire, topic), 0)


@case("TXN-014", "An unknown half message cannot be ended", source=END, run_with=WIRE)
def unknown_half(t: Trial) -> None:
    """END_TRANSACTION for an offset without a message is SYSTEM_ERROR."""
    topic, wire, group = t.topic(queues=1), t.wire(), t.name("P")
    end = {**_half(t, wire, topic, group), "commitLogOffset": 2**40}
    reply = wire.call(RequestCode.END_TRANSACTION, {**end, "commitOrRollback": ROLLBACK})
    t.equal("code", reply.code, 1)


@case("TXN-015", "A wrong place in the half topic is refused", source=END, run_with=WIRE)
def wrong_table_offset(t: Trial) -> None:
    """END_TRANSACTION whose tranStateTableOffset is not the message's own is SYSTEM_ERROR."""
    topic, wire, group = t.topic(queues=1), t.wire(), t.name("P")
    end = _half(t, wire, topic, group)
    end["tranStateTableOffset"] = 10**9
    reply = wire.call(RequestCode.END_TRANSACTION, {**end, "commitOrRollback": COMMIT})
    t.equal(
        "code and remark",
        (reply.code, reply.remark),
        (1, "The transaction state table offset wrong"),
    )


@case("TXN-016", "A rollback by wire answers and stores nothing", source=END, run_with=WIRE)
def rollback_by_wire(t: Trial) -> None:
    """END_TRANSACTION with the rollback type succeeds, and the topic stays empty."""
    topic, wire, group = t.topic(queues=1), t.wire(), t.name("P")
    end = _half(t, wire, topic, group)
    reply = wire.call(RequestCode.END_TRANSACTION, {**end, "commitOrRollback": ROLLBACK})
    t.equal("code", reply.code, 0)
    t.equal("stored", steps.max_offset(wire, topic), 0)


@case(
    "TXN-017",
    "A broker may refuse transactions",
    source="broker: rejectTransactionMessage",
    features="transaction",
    setup=with_properties(rejectTransactionMessage="true"),
)
def rejected(t: Trial) -> None:
    """With rejectTransactionMessage=true the send is NO_PERMISSION, and a plain send is not."""
    topic, producer = t.topic(queues=1), _producer(t)
    code = ResponseCode.NO_PERMISSION
    t.refused("send", lambda: producer.send_in_transaction(topic, "no", local="commit"), code=code)
    t.equal("plain", t.producer().send(topic, "plain")["status"], "SEND_OK")


@case(
    "TXN-018",
    "Half messages survive a kill of the broker",
    source=CHECK,
    features="transaction",
    alone=True,
)
def survives_kill(t: Trial) -> None:
    """A message that was undecided at kill -9 is asked about after the restart, and arrives."""
    topic, producer = t.topic(queues=1), _producer(t)
    properties = {"local": "unknown", "check": "commit", "CHECK_IMMUNITY_TIME_IN_SECONDS": "4"}
    producer.send_in_transaction(topic, "survivor", **properties)
    t.servers.broker.restart(kill=True)
    t.equal("asked about", set(bodies(producer.checks(1, within=90))), {"survivor"})
    t.equal("received", bodies(t.consumer(topic).received(1)), ["survivor"])
