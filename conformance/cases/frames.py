"""The wire: malformed frames, version gates, both serialisations, the VIP channel."""

from __future__ import annotations

import json
import struct
from typing import TYPE_CHECKING

from pyritemq.conformance import steps
from pyritemq.conformance import wire as wires
from pyritemq.conformance.catalogue import WIRE, case, family
from pyritemq.conformance.trial import bodies
from pyritemq.protocol.codes import RequestCode

if TYPE_CHECKING:
    from pyritemq.conformance.trial import Trial

family("FRAME", "Malformed frames and version gates")
family("SER", "JSON and binary serialisation")
family("VIP", "VIP channel")
FRAMES = "protocol: frame = length, header length, header, body"
BINARY = "protocol: serializeTypeCurrentRPC"
HUGE = struct.pack(">i", 0x7FFFFFFF)
NOT_SUPPORTED = 3


def _still_serves(t: Trial) -> None:
    """Another connection is served as before."""
    with t.wire() as other:
        t.equal("another connection", other.call(RequestCode.GET_BROKER_CONFIG).code, 0)


@case("FRAME-001", "A length beyond all bounds", source=FRAMES, run_with=WIRE, core=True)
def too_long(t: Trial) -> None:
    """The connection is closed; others are served."""
    wire = t.wire()
    wire.send_bytes(HUGE + b"\x00\x00\x00\x10" + b"x" * 64)
    t.true("closed", wire.closed_within(10))
    _still_serves(t)


@case("FRAME-002", "A header that is no JSON", source=FRAMES, run_with=WIRE)
def no_json(t: Trial) -> None:
    """A well-framed header of garbage is not answered with success; others are served."""
    wire = t.wire()
    header = b"{this is no json"
    wire.send_bytes(struct.pack(">ii", 4 + len(header), len(header)) + header)
    t.true("no reply, or closed", not wire.has_reply(1, within=1.0))
    _still_serves(t)


@case("FRAME-003", "A header longer than its frame", source=FRAMES, run_with=WIRE)
def header_too_long(t: Trial) -> None:
    """The header length exceeds the frame: no reply; others are served."""
    wire = t.wire()
    wire.send_bytes(struct.pack(">ii", 20, 1000) + b"x" * 16)
    t.true("no reply", not wire.has_reply(1, within=1.0))
    _still_serves(t)


@case(
    "FRAME-004",
    "An unknown request code",
    source="protocol: REQUEST_CODE_NOT_SUPPORTED",
    run_with=WIRE,
    core=True,
)
def unknown_code(t: Trial) -> None:
    """Code 29999 is REQUEST_CODE_NOT_SUPPORTED, at the broker and at the name server."""
    for wire in (t.wire(), t.namesrv_wire()):
        reply = wire.call(29999)
        t.equal("code", reply.code, NOT_SUPPORTED)
        t.true("remark", "29999 not supported" in (reply.remark or ""), reply.remark)


@case("FRAME-005", "A frame that comes byte by byte", source=FRAMES, run_with=WIRE)
def byte_by_byte(t: Trial) -> None:
    """A request cut into single bytes is answered as a whole one is."""
    wire = t.wire()
    header = json.dumps(
        {
            "code": int(RequestCode.GET_BROKER_CONFIG),
            "opaque": 77,
            "flag": 0,
            "language": "JAVA",
            "version": 400,
            "extFields": {},
        }
    ).encode()
    frame = struct.pack(">ii", 4 + len(header), len(header)) + header
    for byte in frame:
        wire.send_bytes(bytes([byte]))
    t.equal("code", wire.reply(77).code, 0)


@case("FRAME-006", "Many requests in one write", source=FRAMES, run_with=WIRE)
def pipelined(t: Trial) -> None:
    """Fifty requests sent at once are all answered, each with its own opaque."""
    wire, topic = t.wire(), t.topic(queues=1)
    fields = {"topic": topic, "queueId": 0}
    asked = [wire.ask(RequestCode.GET_MAX_OFFSET, fields) for _ in range(50)]
    codes = [wire.reply(opaque).code for opaque in asked]
    t.equal("codes", codes, [0] * 50)


@case("FRAME-007", "A required field is missing", source="protocol: @CFNotNull", run_with=WIRE)
def missing_field(t: Trial) -> None:
    """GET_MAX_OFFSET without its queueId is refused, and the connection goes on."""
    wire, topic = t.wire(), t.topic(queues=1)
    reply = wire.call(RequestCode.GET_MAX_OFFSET, {"topic": topic})
    t.equal("code", reply.code, 1)
    t.equal("goes on", wire.call(RequestCode.GET_BROKER_CONFIG).code, 0)


@case("FRAME-008", "A number that is none", source="protocol: field types", run_with=WIRE)
def not_a_number(t: Trial) -> None:
    """A queueId of "many" is SYSTEM_ERROR, and the connection goes on."""
    wire, topic = t.wire(), t.topic(queues=1)
    reply = wire.call(RequestCode.GET_MAX_OFFSET, {"topic": topic, "queueId": "many"})
    t.equal("code", reply.code, 1)
    t.equal("goes on", wire.call(RequestCode.GET_BROKER_CONFIG).code, 0)


@case("FRAME-009", "A body where none belongs", source=FRAMES, run_with=WIRE)
def unexpected_body(t: Trial) -> None:
    """A body on a request that has none is no matter."""
    wire, topic = t.wire(), t.topic(queues=1)
    fields = {"topic": topic, "queueId": 0}
    t.equal("code", wire.call(RequestCode.GET_MAX_OFFSET, fields, b"\x00\xffjunk").code, 0)


@case("FRAME-010", "Fields that nobody knows", source=FRAMES, run_with=WIRE)
def unknown_fields(t: Trial) -> None:
    """They are passed over."""
    wire, topic = t.wire(), t.topic(queues=1)
    fields = {"topic": topic, "queueId": 0, "fromTheFuture": "yes"}
    t.equal("code", wire.call(RequestCode.GET_MAX_OFFSET, fields).code, 0)


@case("FRAME-011", "A response that nobody asked for", source=FRAMES, run_with=WIRE)
def stray_response(t: Trial) -> None:
    """A frame with the response flag and an unknown opaque is ignored; the connection goes on."""
    wire = t.wire()
    wire.ask(0, flag=1)
    t.equal("goes on", wire.call(RequestCode.GET_BROKER_CONFIG).code, 0)


@case("FRAME-012", "A client that leaves in the middle", source=FRAMES, run_with=WIRE)
def half_a_frame(t: Trial) -> None:
    """Half a frame and a closed connection disturb nobody."""
    for _ in range(20):
        with t.wire() as wire:
            wire.send_bytes(struct.pack(">ii", 1000, 900) + b"{")
    _still_serves(t)


@case("FRAME-013", "A bad record in a batch", source="protocol: SEND_BATCH_MESSAGE", run_with=WIRE)
def bad_batch(t: Trial) -> None:
    """A batch body that is no batch is not SUCCESS, and the topic stays empty."""
    wire, topic = t.wire(), t.topic(queues=1)
    fields = wires.send_fields(topic, m="true")
    opaque = wire.ask(RequestCode.SEND_BATCH_MESSAGE, fields, b"\x7f\xff\xff\xffgarbage")
    if wire.has_reply(opaque, within=3):
        t.true("refused", wire.reply(opaque).code != 0)
    with t.wire() as other:
        t.equal("stored", steps.max_offset(other, topic), 0)


@case("FRAME-014", "A heartbeat that is no JSON", source="protocol: HEART_BEAT", run_with=WIRE)
def bad_heartbeat(t: Trial) -> None:
    """It is SYSTEM_ERROR, and the connection goes on."""
    wire = t.wire()
    t.equal("code", wire.call(RequestCode.HEART_BEAT, body=b"no heartbeat").code, 1)
    t.equal("goes on", wire.call(RequestCode.GET_BROKER_CONFIG).code, 0)


@case("SER-001", "Both header forms say the same", source=BINARY, run_with=WIRE, core=True)
def both_forms(t: Trial) -> None:
    """GET_MAX_OFFSET with a JSON and with a binary header is answered with the same code and
    fields."""
    topic = t.topic(queues=1)
    fields = {"topic": topic, "queueId": 0}
    replies = [
        t.wire(binary=binary).call(RequestCode.GET_MAX_OFFSET, fields) for binary in (False, True)
    ]
    t.equal("codes", [reply.code for reply in replies], [0, 0])
    t.equal("fields", [dict(reply.ext_fields) for reply in replies], [{"offset": "0"}] * 2)


@case("SER-002", "Binary sends and pulls", source=BINARY, run_with=WIRE)
def binary_messages(t: Trial) -> None:
    """A message sent with binary headers is pulled with JSON headers, and the reverse."""
    topic, group = t.topic(queues=1), t.group()
    json_wire, binary_wire = t.wire(), t.wire(binary=True)
    t.equal("send", wires.send(binary_wire, topic, "binary").code, 0)
    t.equal("send", wires.send(json_wire, topic, "json").code, 0)
    t.eventually("stored", lambda: steps.max_offset(json_wire, topic), 2)
    for wire in (json_wire, binary_wire):
        got = wires.pulled(wires.pull(wire, topic, 0, 0, group=group))
        t.equal("pulled", [bytes(one.body) for one in got], [b"binary", b"json"])


@case("SER-003", "A client with binary headers", source="client: rocketmq.serialize.type")
def binary_client(t: Trial) -> None:
    """With -Drocketmq.serialize.type=ROCKETMQ the client sends, receives, and retries as ever."""
    via = t.another_driver("-Drocketmq.serialize.type=ROCKETMQ")
    topic = t.topic(queues=2)
    consumer = t.consumer(topic, via=via)
    t.producer(via=via).send_many(steps.numbered(topic, 6))
    t.producer(via=via).send(topic, "6", properties={"fail": "1"})
    t.equal("received", sorted(bodies(consumer.received(8)), key=int), [*steps.numbers(7), "6"])


@case("SER-004", "Empty values in binary headers", source=BINARY, run_with=WIRE)
def empty_values(t: Trial) -> None:
    """Empty properties travel, and the name server answers binary requests too."""
    topic = t.topic(queues=1)
    t.equal("send", wires.send(t.wire(binary=True), topic, "x", properties="").code, 0)
    route = steps.route(t.namesrv_wire(binary=True), topic)
    t.true("route", route is not None)


@case(
    "VIP-001",
    "A producer on the VIP channel",
    source="client: vipChannelEnabled",
    features="vip",
    core=True,
)
def vip_producer(t: Trial) -> None:
    """With vipChannelEnabled sends go to the broker's port minus 2, and arrive."""
    topic = t.topic(queues=1)
    sent = t.producer(options={"vipChannelEnabled": "true"}).send(topic, "fast")
    t.equal("status", sent["status"], "SEND_OK")
    t.equal("received", bodies(t.consumer(topic).received(1)), ["fast"])


@case(
    "VIP-002", "A consumer on the VIP channel", source="client: vipChannelEnabled", features="vip"
)
def vip_consumer(t: Trial) -> None:
    """With vipChannelEnabled it receives, and a failed message comes again."""
    topic = t.topic(queues=1)
    consumer = t.consumer(topic, options={"vipChannelEnabled": "true"})
    t.producer().send(topic, "again", properties={"fail": "1"})
    t.equal("received", bodies(consumer.received(2)), ["again", "again"])


@case("VIP-003", "The VIP port speaks frames", source="broker: fastRemotingServer", run_with=WIRE)
def vip_port(t: Trial) -> None:
    """Sends and queries are answered on the port minus 2."""
    host, _, port = t.servers.broker.address.rpartition(":")
    topic = t.topic(queues=1)
    wire = t.wire(f"{host}:{int(port) - 2}")
    t.equal("send", wires.send(wire, topic, "x").code, 0)
    t.eventually("stored", lambda: steps.max_offset(t.wire(), topic), 1)
