"""A half message's changes of place: into the half topic, out of it, and back into it.

Java: TransactionalMessageBridge, EndTransactionProcessor.endMessageTransaction and the check
listener.  Pure functions; any thread.  Properties keep their names and meaning, so that a Java
broker can go on with our halves and we with its.
"""

from __future__ import annotations

from struct import Struct
from typing import TYPE_CHECKING

from pyritemq.compat.java_hash import tags_code
from pyritemq.compat.message_id import make_message_id
from pyritemq.protocol.codes import RequestCode
from pyritemq.protocol.command import FLAG_ONEWAY, Command
from pyritemq.protocol.fields import parse_int
from pyritemq.protocol.headers.transaction import CheckTransactionStateHeader
from pyritemq.protocol.record import (
    TRANSACTION_COMMIT,
    TRANSACTION_MASK,
    decode_properties,
    encode_properties,
)
from pyritemq.server.broker.delays.rewriting import (
    DELAY,
    REAL_QUEUE_ID,
    REAL_TOPIC,
    TAGS,
    delay,
)
from pyritemq.server.broker.state import names
from pyritemq.storage.messages import MessageToStore
from pyritemq.storage.record_codec import HEADS, HOSTS_V6, magic_for, topic_field

if TYPE_CHECKING:
    from pyritemq.protocol.record import Record
    from pyritemq.storage.messages import PutResult

HALF_TOPIC = names.TRANS_HALF_TOPIC.encode()
OP_TOPIC = names.TRANS_OP_HALF_TOPIC.encode()
QUEUE_ID = 0
"""All halves and all ops are in one queue each."""

PRODUCER_GROUP = "PGROUP"
UNIQ_KEY = "UNIQ_KEY"
TRANSACTION_ID = "__transactionId__"
TRANSACTION_MARK = "TRAN_MSG"
CHECK_TIMES = "TRANSACTION_CHECK_TIMES"
IMMUNITY_SECONDS = "CHECK_IMMUNITY_TIME_IN_SECONDS"
PREPARED_QUEUE_OFFSET = "TRAN_PREPARED_QUEUE_OFFSET"
WAIT_STORE = "WAIT"

REMOVE_TAG = "d"
OFFSET_SEPARATOR = ","

_LENGTH_I16 = Struct(">h")


def prepare(message: MessageToStore) -> None:
    """Make a half of a message that was sent as one."""
    properties = decode_properties(message.properties)
    unique_id = properties.get(UNIQ_KEY)
    if unique_id:
        properties[TRANSACTION_ID] = unique_id
    properties[REAL_TOPIC] = message.topic.decode()
    properties[REAL_QUEUE_ID] = str(message.queue_id)
    message.properties = encode_properties(properties)
    message.sys_flag &= ~TRANSACTION_MASK  # or it would be in no queue at all
    message.topic = HALF_TOPIC
    message.queue_id = QUEUE_ID


def committed(record: Record, *, level_max: int) -> MessageToStore:
    """The message that consumers get, by way of the schedule topic if it has a delay level.

    Raises ValueError for a record that is no half.  TRAN_MSG stays among the properties, as with
    Java, but for a delayed message, whose properties Java writes anew.
    """
    properties = decode_properties(record.properties)
    topic = properties.pop(REAL_TOPIC, None)
    if topic is None:
        raise ValueError("it does not say where it belongs")
    queue_id = parse_int(properties.pop(REAL_QUEUE_ID, ""))
    if DELAY in properties:
        properties.pop(TRANSACTION_MARK, None)
    message = _copy(record, properties, topic.encode(), queue_id)
    message.sys_flag = record.sys_flag & ~TRANSACTION_MASK | TRANSACTION_COMMIT
    message.prepared_transaction_offset = record.phy_offset
    delay(message, level_max=level_max)
    return message


def put_back(record: Record, properties: dict[str, str]) -> MessageToStore:
    """A half once more at the end of its queue, so that those behind it do not wait for it.

    Java forgets the message's flag here; we keep it.
    """
    return _copy(record, properties, HALF_TOPIC, QUEUE_ID)


def immune(record: Record, properties: dict[str, str]) -> MessageToStore:
    """A half whose time has not come: it remembers under which offset its producer knows it."""
    offset = str(record.queue_offset)
    known_as = properties.get(PREPARED_QUEUE_OFFSET, offset)
    return put_back(record, {**properties, WAIT_STORE: "false", PREPARED_QUEUE_OFFSET: known_as})


def discarded(record: Record) -> MessageToStore:
    """A half that nobody decides, for operators to look at."""
    topic = names.TRANS_CHECK_MAX_TIME_TOPIC.encode()
    return _copy(record, decode_properties(record.properties), topic, QUEUE_ID)


def resumed(record: Record) -> MessageToStore:
    """A half, or a discarded one, to be asked about from the beginning."""
    properties = decode_properties(record.properties)
    return put_back(record, {**properties, CHECK_TIMES: "0"})


def op_message(offsets: list[int], *, host: bytes, now_ms: int) -> MessageToStore:
    """The note that halves are decided; how is not said, since nothing is left to do for them."""
    text = "".join(f"{offset}{OFFSET_SEPARATOR}" for offset in offsets)
    return MessageToStore(
        OP_TOPIC,
        QUEUE_ID,
        text.encode(),
        encode_properties({WAIT_STORE: "true", TAGS: REMOVE_TAG}),
        tags_code=tags_code(REMOVE_TAG),
        born_timestamp=now_ms,
        born_host=host,
        store_host=host,
    )


def decided_offsets(op: Record) -> list[int]:
    """The halves that an op message decides; whatever is no number is passed over."""
    if decode_properties(op.properties).get(TAGS) != REMOVE_TAG:
        return []
    texts = op.body.decode("utf-8", "replace").split(OFFSET_SEPARATOR)
    return [int(text) for text in texts if text.isdecimal()]


def question(
    record: Record, properties: dict[str, str], place: PutResult, *, broker_name: str
) -> Command:
    """CHECK_TRANSACTION_STATE about a half that was put back at `place`.

    Raises ValueError for a half without a queue to go to.
    """
    unique_id = properties.get(UNIQ_KEY)
    header = CheckTransactionStateHeader(
        topic=record.topic,
        tran_state_table_offset=place.queue_offset,
        commit_log_offset=place.phy_offset,
        msg_id=unique_id,
        transaction_id=unique_id,
        offset_msg_id=make_message_id(record.store_host, place.phy_offset),
        broker_name=broker_name,
    )
    return Command(
        RequestCode.CHECK_TRANSACTION_STATE,
        flag=FLAG_ONEWAY,
        ext_fields=header.encode(),
        body=_as_sent(record, properties, place),
    )


def _as_sent(record: Record, properties: dict[str, str], place: PutResult) -> bytes:
    """The record as its producer knows it, under its own topic and queue."""
    topic = properties.get(REAL_TOPIC, "").encode()
    queue_id = parse_int(properties.get(REAL_QUEUE_ID, ""))
    text = encode_properties({**properties, WAIT_STORE: "false"})
    tail = topic_field(topic) + _LENGTH_I16.pack(len(text)) + text
    layout = HEADS[record.sys_flag & HOSTS_V6]
    head = layout.pack(
        layout.size + len(record.body) + len(tail),
        magic_for(topic),
        record.body_crc,
        queue_id,
        record.flag,
        place.queue_offset,
        place.phy_offset,
        record.sys_flag,
        record.born_timestamp,
        record.born_host,
        record.store_timestamp,
        record.store_host,
        record.reconsume_times,
        record.prepared_transaction_offset,
        len(record.body),
    )
    return head + record.body + tail


def _copy(
    record: Record, properties: dict[str, str], topic: bytes, queue_id: int
) -> MessageToStore:
    return MessageToStore(
        topic,
        queue_id,
        record.body,
        encode_properties(properties),
        tags_code=tags_code(properties.get(TAGS, "")),
        flag=record.flag,
        sys_flag=record.sys_flag,
        born_timestamp=record.born_timestamp,
        born_host=record.born_host,
        store_host=record.store_host,
        reconsume_times=record.reconsume_times,
    )
