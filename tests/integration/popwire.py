"""POP over the bare client: pops, acks, and handles as the official client makes them."""

from typing import NamedTuple

from pyritemq.protocol.codes import RequestCode, ResponseCode
from pyritemq.protocol.record import decode_properties, decode_records


class Popped(NamedTuple):
    """A popped message and the handle that its consumer has of it."""

    record: object
    handle: str
    fields: dict

    @property
    def body(self):
        return self.record.body


def pop_fields(topic="Topic", *, group="G", queue_id=-1, count=32, invisible_ms=60_000, **more):
    return {
        "consumerGroup": group,
        "topic": topic,
        "queueId": queue_id,
        "maxMsgNums": count,
        "invisibleTime": invisible_ms,
        "pollTime": 0,
        "bornTime": 0,
        "initMode": 0,
        "order": "false",
    } | more


async def pop_reply(wire, topic="Topic", **options):
    return await wire.call(RequestCode.POP_MESSAGE, pop_fields(topic, **options))


async def pop(wire, topic="Topic", **options):
    """The popped messages; none if there were none."""
    reply = await pop_reply(wire, topic, **options)
    if reply.code != ResponseCode.SUCCESS:
        assert reply.code == ResponseCode.POLLING_TIMEOUT, reply.remark
        return []
    return popped_of(reply, topic, options.get("group", "G"))


def popped_of(reply, topic="Topic", group="G"):
    starts = {}
    for info in reply.ext_fields["startOffsetInfo"].split(";"):
        kind, queue_id, start = info.split(" ")
        starts[kind, int(queue_id)] = int(start)
    found = []
    for record in decode_records(bytes(reply.body)):
        handle = decode_properties(record.properties).get("POP_CK")
        if handle is None:
            fields = reply.ext_fields
            start = starts["0", record.queue_id]
            handle = (
                f"{start} {fields['popTime']} {fields['invisibleTime']} {fields['reviveQid']} 0 "
                f"broker-a {record.queue_id} {record.queue_offset}"
            )
        kind = handle.split(" ")[4]
        real_topic = {"0": topic, "1": f"%RETRY%{group}_{topic}", "2": f"%RETRY%{group}+{topic}"}
        fields = {
            "consumerGroup": group,
            "topic": real_topic[kind],
            "queueId": handle.split(" ")[6],
            "offset": handle.split(" ")[7],
            "extraInfo": handle,
        }
        found.append(Popped(record, handle, fields))
    return found


async def ack(wire, popped):
    return await wire.call(RequestCode.ACK_MESSAGE, popped.fields)


async def change_invisible(wire, popped, invisible_ms, **more):
    fields = popped.fields | {"invisibleTime": invisible_ms} | more
    return await wire.call(RequestCode.CHANGE_MESSAGE_INVISIBLETIME, fields)
