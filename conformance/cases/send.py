"""Sending: how each kind of send is answered, stored, and read back."""

from __future__ import annotations

import socket
import time
import zlib
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from pyritemq.conformance import steps
from pyritemq.conformance import wire as wires
from pyritemq.conformance.actors import queue
from pyritemq.conformance.catalogue import WIRE, case, family
from pyritemq.conformance.trial import bodies
from pyritemq.protocol.codes import RequestCode

if TYPE_CHECKING:
    from pyritemq.conformance.trial import Trial

family("SEND", "Send")
PRODUCER = "client: DefaultMQProducer.send"


@case("SEND-001", "A synchronous send is stored", source=PRODUCER, core=True)
def sync_send(t: Trial) -> None:
    """The result is SEND_OK with offset 0 in an empty queue, and a consumer receives the body."""
    topic = t.topic(queues=1)
    sent = t.producer().send(topic, "hello")
    t.equal("status", sent["status"], "SEND_OK")
    t.equal("queue offset", sent["queueOffset"], 0)
    t.equal("received", bodies(t.consumer(topic).received(1)), ["hello"])


@case("SEND-002", "An asynchronous send calls back", source=PRODUCER, features="async", core=True)
def async_send(t: Trial) -> None:
    """The callback has SEND_OK, and a consumer receives the body."""
    topic = t.topic()
    sent = t.producer().send(topic, "later", how={"mode": "async"})
    t.equal("status", sent["status"], "SEND_OK")
    t.equal("received", bodies(t.consumer(topic).received(1)), ["later"])


@case("SEND-003", "A one-way send is stored", source=PRODUCER, features="oneway", core=True)
def oneway_send(t: Trial) -> None:
    """Nothing is answered, and a consumer receives the body."""
    topic = t.topic()
    t.producer().send(topic, "away", how={"mode": "oneway"})
    t.equal("received", bodies(t.consumer(topic).received(1)), ["away"])


@case(
    "SEND-004",
    "A send to a given queue goes there",
    source=PRODUCER,
    features="selector",
    core=True,
)
def send_to_a_queue(t: Trial) -> None:
    """Result and received message both name the queue that was asked for."""
    topic = t.topic(queues=4)
    how = {"queue": queue(topic, 2, t.servers.broker.name)}
    sent = t.producer().send(topic, "to two", how=how)
    t.equal("queue of the result", sent["queueId"], 2)
    t.equal("queue received", t.consumer(topic).received(1)[0]["queueId"], 2)


@case("SEND-005", "A selector keeps a key in one queue", source=PRODUCER, features="selector")
def send_by_hash(t: Trial) -> None:
    """Twelve messages with one hash key lie in one queue, at offsets 0 to 11."""
    topic = t.topic(queues=4)
    sent = t.producer().send_many(steps.numbered(topic, 12), hashKey="customer")
    t.equal("queues", len({one["queueId"] for one in sent}), 1)
    t.equal("offsets", [one["queueOffset"] for one in sent], list(range(12)))


@case("SEND-006", "Tags, keys, properties and flag come back", source=PRODUCER, core=True)
def whole_message(t: Trial) -> None:
    """The received message has the tags, keys, user properties and flag that were sent."""
    topic = t.topic()
    t.producer().send(topic, "b", tags="TagA", keys="k1 k2", flag=7, properties={"user": "v"})
    got = t.consumer(topic).received(1)[0]
    t.equal("tags", got["tags"], "TagA")
    t.equal("keys", got["keys"], "k1 k2")
    t.equal("flag", got["flag"], 7)
    t.equal("user property", got["properties"].get("user"), "v")


@case("SEND-007", "A large body comes back whole", source="client: compressMsgBodyOverHowmuch")
def large_body(t: Trial) -> None:
    """A body that the client compresses arrives with its size and checksum."""
    topic = t.topic()
    t.producer().send(topic, bodySize=100_000)
    got = t.consumer(topic).received(1)[0]
    t.equal("size", got["bodySize"], 100_000)
    t.equal("checksum", got["bodyCrc"], zlib.crc32(b"x" * 100_000))


@case("SEND-008", "Text of every kind survives", source=PRODUCER)
def unicode_text(t: Trial) -> None:
    """Body, keys, tags and properties outside ASCII, and outside the BMP, come back unchanged."""
    topic = t.topic()
    text = "żółć 客户 🚀"
    t.producer().send(topic, text, keys="ключ", tags="标签", properties={"p": text})
    got = t.consumer(topic).received(1)[0]
    t.equal("body", got["body"], text)
    t.equal("tags and keys", (got["tags"], got["keys"]), ("标签", "ключ"))
    t.equal("property", got["properties"].get("p"), text)


@case("SEND-009", "Offsets of a queue are consecutive", source=PRODUCER, features="selector")
def consecutive_offsets(t: Trial) -> None:
    """Twenty sends to one queue are told the offsets 0 to 19, in order."""
    topic = t.topic(queues=1)
    sent = steps.fill(t, topic, 20)
    t.equal("offsets", [one["queueOffset"] for one in sent], list(range(20)))


@case("SEND-010", "Ids name the client's key and the store's place", source=PRODUCER)
def message_ids(t: Trial) -> None:
    """msgId is the UNIQ_KEY of the message; offsetMsgId begins with the broker's address in hex."""
    topic = t.topic()
    sent = t.producer().send(topic, "x")
    t.equal("msgId", sent["msgId"], sent["uniqKey"])
    host, _, port = t.servers.broker.address.rpartition(":")
    place = socket.inet_aton(socket.gethostbyname(host)).hex() + f"{int(port):08x}"
    t.equal("address in offsetMsgId", sent["offsetMsgId"][:16].lower(), place)
    got = t.consumer(topic).received(1)[0]
    t.equal("received", (got["msgId"], got["offsetMsgId"]), (sent["msgId"], sent["offsetMsgId"]))


@case("SEND-011", "Sends spread over all queues", source=PRODUCER)
def round_robin(t: Trial) -> None:
    """Forty sends without a queue use each of four queues ten times."""
    topic = t.topic(queues=4)
    sent = t.producer().send_many(steps.numbered(topic, 40))
    used = Counter(one["queueId"] for one in sent)
    t.equal("queues", dict(sorted(used.items())), {0: 10, 1: 10, 2: 10, 3: 10})


@case("SEND-012", "A send need not wait for the disk", source="client: Message.setWaitStoreMsgOK")
def without_waiting(t: Trial) -> None:
    """waitStoreMsgOK=false is SEND_OK as well, and the message arrives."""
    topic = t.topic()
    sent = t.producer().send(topic, "quick", waitStoreMsgOK=False)
    t.equal("status", sent["status"], "SEND_OK")
    t.equal("received", bodies(t.consumer(topic).received(1)), ["quick"])


@case(
    "SEND-013", "The old send request is answered", source="protocol: SEND_MESSAGE", run_with=WIRE
)
def first_version(t: Trial) -> None:
    """SEND_MESSAGE, with header fields by their full names, stores as SEND_MESSAGE_V2 does."""
    topic, wire = t.topic(queues=1), t.wire()
    fields = {"producerGroup": "p", "topic": topic, "defaultTopic": "TBW102", "queueId": 0}
    fields |= {"defaultTopicQueueNums": 4, "sysFlag": 0, "bornTimestamp": 1, "flag": 0}
    fields |= {"properties": "", "reconsumeTimes": 0, "unitMode": "false", "batch": "false"}
    reply = wire.call(RequestCode.SEND_MESSAGE, fields, b"old")
    t.equal("code", reply.code, 0)
    t.equal("queue", (reply.ext_fields["queueId"], reply.ext_fields["queueOffset"]), ("0", "0"))
    got = wires.pulled(wires.pull(wire, topic, 0, 0, group=t.group()))
    t.equal("body", [bytes(one.body) for one in got], [b"old"])


@case("SEND-014", "Many sends at once lose nothing", source=PRODUCER, features="async")
def parallel_sends(t: Trial) -> None:
    """Sixty sends from six threads get sixty different places, and all sixty arrive."""
    topic, producer = t.topic(queues=4), t.producer()
    groups = [steps.numbered(topic, 10, first=10 * number) for number in range(6)]
    with ThreadPoolExecutor(6) as pool:
        sent = [one for many in pool.map(producer.send_many, groups) for one in many]
    t.equal("places", len({(one["queueId"], one["queueOffset"]) for one in sent}), 60)
    got = bodies(t.consumer(topic).received(60))
    t.equal("received", sorted(got, key=int), steps.numbers(60))


@case("SEND-015", "Times and hosts are those of the send", source=PRODUCER)
def times(t: Trial) -> None:
    """bornTimestamp is not after storeTimestamp, and neither is a minute off."""
    topic = t.topic()
    t.producer().send(topic, "x")
    got = t.consumer(topic).received(1)[0]
    now = time.time() * 1000
    t.true("born before stored", got["bornTimestamp"] <= got["storeTimestamp"] + 50, got)
    t.true("stored lately", abs(now - got["storeTimestamp"]) < 60_000, got["storeTimestamp"])


@case(
    "SEND-016", "An empty body is refused by the client", source="client: Validators.checkMessage"
)
def empty_body(t: Trial) -> None:
    """MESSAGE_ILLEGAL, and nothing is stored."""
    topic = t.topic(queues=1)
    t.refused("send", lambda: t.producer().send(topic, ""), code=13)
    t.equal("stored", steps.max_offset(t.wire(), topic), 0)


@case(
    "SEND-017",
    "The reply names the region and the switch",
    source="protocol: MSG_REGION, TRACE_ON",
    run_with=WIRE,
)
def reply_fields(t: Trial) -> None:
    """A send's reply has msgId, queueId, queueOffset, MSG_REGION and TRACE_ON."""
    reply = wires.send(t.wire(), t.topic(), "x")
    wanted = {"msgId", "queueId", "queueOffset", "MSG_REGION", "TRACE_ON"}
    t.equal("missing fields", sorted(wanted - set(reply.ext_fields)), [])
    t.equal("region", reply.ext_fields["MSG_REGION"], "DefaultRegion")


@case("SEND-018", "A one-way frame has no answer", source="protocol: flag bit 1", run_with=WIRE)
def oneway_frame(t: Trial) -> None:
    """A request with the one-way flag is done and not answered; the next request is answered."""
    topic, wire = t.topic(queues=1), t.wire()
    asked = wire.ask(RequestCode.SEND_MESSAGE_V2, wires.send_fields(topic), b"x", flag=2)
    t.eventually("stored", lambda: steps.max_offset(wire, topic), 1)
    t.true("no answer", not wire.has_reply(asked, within=0.5))
