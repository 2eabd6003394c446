"""POP over the wire: pops, acks, and the handles that a consumer has of what it popped.

Only what the official client does with a reply; used by the cases of the POP family.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyritemq.conformance.wire import properties
from pyritemq.protocol.codes import RequestCode
from pyritemq.protocol.record import Record, decode_records

if TYPE_CHECKING:
    from pyritemq.conformance.wire import Wire
    from pyritemq.protocol.command import Command

ANY_QUEUE = -1
INVISIBLE_MS = 60_000
"""Longer than any case takes: what is popped so stays hidden."""


@dataclass(frozen=True)
class Popped:
    """A popped message, and what an ack of it says."""

    record: Record
    fields: dict[str, Any]

    @property
    def body(self) -> str:
        return bytes(self.record.body).decode()


def pop_fields(topic: str, group: str, **more: object) -> dict[str, object]:
    """Ext fields of POP_MESSAGE; a new group begins with the first message."""
    fields: dict[str, object] = {"consumerGroup": group, "topic": topic, "queueId": ANY_QUEUE}
    fields |= {"maxMsgNums": 32, "invisibleTime": INVISIBLE_MS, "pollTime": 0, "bornTime": 0}
    return {**fields, "initMode": 0, "order": "false", **more}


def pop_reply(wire: Wire, topic: str, group: str, **more: object) -> Command:
    return wire.call(RequestCode.POP_MESSAGE, pop_fields(topic, group, **more))


def pop(wire: Wire, topic: str, group: str, **more: object) -> list[Popped]:
    """What one pop gives; nothing where it was told that there is nothing."""
    return popped(wire, pop_reply(wire, topic, group, **more), topic, group)


def popped(wire: Wire, reply: Command, topic: str, group: str) -> list[Popped]:
    if reply.code != 0:
        return []
    records = decode_records(bytes(reply.body))
    return [
        Popped(one, _ack_fields(_handle(one, reply, wire.broker), topic, group)) for one in records
    ]


def _ack_fields(handle: str, topic: str, group: str) -> dict[str, Any]:
    kind, broker_queue, offset = (handle.split(" ")[place] for place in (4, 6, 7))
    real_topic = {"0": topic, "1": f"%RETRY%{group}_{topic}", "2": f"%RETRY%{group}+{topic}"}
    fields = {"consumerGroup": group, "topic": real_topic[kind], "queueId": broker_queue}
    return {**fields, "offset": offset, "extraInfo": handle}


def _handle(record: Record, reply: Command, broker: str) -> str:
    """Messages of the topic itself come without a handle: the client makes it of the reply."""
    given = properties(record).get("POP_CK")
    if given is not None:
        return given
    fields = reply.ext_fields
    starts = dict(_start(info) for info in fields["startOffsetInfo"].split(";"))
    start = starts["0", str(record.queue_id)]
    times = f"{fields['popTime']} {fields['invisibleTime']} {fields['reviveQid']}"
    return f"{start} {times} 0 {broker} {record.queue_id} {record.queue_offset}"


def _start(info: str) -> tuple[tuple[str, str], str]:
    kind, queue_id, start = info.split(" ")
    return (kind, queue_id), start


def ack(wire: Wire, message: Popped) -> Command:
    return wire.call(RequestCode.ACK_MESSAGE, message.fields)


def change_invisible(wire: Wire, message: Popped, invisible_ms: int) -> Command:
    fields = {**message.fields, "invisibleTime": invisible_ms}
    return wire.call(RequestCode.CHANGE_MESSAGE_INVISIBLETIME, fields)


def notified(wire: Wire, topic: str, group: str, **more: object) -> bool:
    """Whether there is something to pop."""
    asked = {"consumerGroup": group, "topic": topic, "queueId": ANY_QUEUE, "pollTime": 0}
    reply = wire.call(RequestCode.NOTIFICATION, {**asked, "bornTime": 0, **more})
    return reply.code == 0 and reply.ext_fields["hasMsg"] == "true"


def set_mode(wire: Wire, topic: str, group: str, mode: str, share: int = 8) -> Command:
    body = {"topic": topic, "consumerGroup": group, "mode": mode, "popShareQueueNum": share}
    return wire.call(RequestCode.SET_MESSAGE_REQUEST_MODE, body=json.dumps(body).encode())


def assignments(wire: Wire, topic: str, group: str, client_id: str) -> list[tuple[int, str]]:
    """The queues that the broker assigns to a client, with the mode of each."""
    asked = {"topic": topic, "consumerGroup": group, "clientId": client_id}
    body = json.dumps({**asked, "strategyName": "AVG", "messageModel": "CLUSTERING"}).encode()
    reply = wire.call(RequestCode.QUERY_ASSIGNMENT, body=body)
    found = json.loads(bytes(reply.body))["messageQueueAssignments"] if reply.code == 0 else []
    return sorted((one["messageQueue"]["queueId"], one["mode"]) for one in found)
