"""Messages that are tried again: a popped record for its retry topic, and how a pop shows it.

Java: PopReviveService.reviveRetry, and the re-encoding in PopMessageProcessor.  Pure functions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyritemq.compat.java_hash import tags_code
from pyritemq.protocol.record import (
    BORNHOST_V6,
    STOREHOSTADDRESS_V6,
    decode_properties,
    encode_properties,
)
from pyritemq.storage.messages import MessageToStore
from pyritemq.storage.record_codec import HEADS, HOSTS_V6, LENGTH_I16, magic_for, topic_field

if TYPE_CHECKING:
    from pyritemq.protocol.record import Record
    from pyritemq.server.broker.pop.revive_records import CheckPoint

FIRST_POP_TIME = "1ST_POP_TIME"
POP_CK = "POP_CK"
ORIGIN_GROUP = "ORIGIN_GROUP"
TAGS = "TAGS"


def retry_message(
    record: Record, point: CheckPoint, *, retry_topic: str, queue_id: int, host: bytes
) -> MessageToStore:
    """The record for the retry topic, one attempt later."""
    properties = decode_properties(record.properties)
    if record.reconsume_times == 0 or FIRST_POP_TIME not in properties:
        properties[FIRST_POP_TIME] = str(point.pop_time)
    properties[ORIGIN_GROUP] = point.group
    # The host is the broker's own, so the address kinds of the old hosts no longer count.
    sys_flag = record.sys_flag & ~(BORNHOST_V6 | STOREHOSTADDRESS_V6)
    return MessageToStore(
        retry_topic.encode(),
        queue_id,
        record.body,
        encode_properties(properties),
        tags_code=tags_code(properties.get(TAGS, "")),
        flag=record.flag,
        sys_flag=sys_flag,
        born_timestamp=record.born_timestamp,
        born_host=host,
        store_host=host,
        reconsume_times=record.reconsume_times + (0 if point.suspend else 1),
    )


def shown_record(record: Record, *, topic: str, handle: str) -> bytes:
    """A record of the retry topic as a consumer sees it: of its first topic, with its handle."""
    properties = decode_properties(record.properties)
    properties.setdefault(POP_CK, handle)
    text = encode_properties(properties)
    name = topic.encode()
    topic_part = topic_field(name)
    head = HEADS[record.sys_flag & HOSTS_V6]
    size = head.size + len(record.body) + len(topic_part) + LENGTH_I16.size + len(text)
    packed = head.pack(
        size,
        magic_for(name),
        record.body_crc,
        record.queue_id,
        record.flag,
        record.queue_offset,
        record.phy_offset,
        record.sys_flag,
        record.born_timestamp,
        record.born_host,
        record.store_timestamp,
        record.store_host,
        record.reconsume_times,
        record.prepared_transaction_offset,
        len(record.body),
    )
    return b"".join((packed, record.body, topic_part, LENGTH_I16.pack(len(text)), text))
