"""A timer message's changes of place: into the timer topic, back into it, and out when it is due.

Java: HookUtils.handleScheduleMessage and transformTimerMessage for the first, TimerMessageStore's
convert for the others, SendMessageProcessor.attachRecallHandle.  Pure functions; any thread.
"""

from __future__ import annotations

import base64
import binascii
from typing import TYPE_CHECKING, NamedTuple

from pyritemq.compat.java_hash import tags_code
from pyritemq.protocol.fields import parse_int, parse_long
from pyritemq.protocol.record import (
    TRANSACTION_COMMIT,
    TRANSACTION_MASK,
    TRANSACTION_NOT,
    decode_properties,
    encode_properties,
)
from pyritemq.server.broker.delays.rewriting import (
    REAL_QUEUE_ID,
    REAL_TOPIC,
    TAGS,
    TIMER_PROPERTIES,
    NotDeliverable,
)
from pyritemq.server.broker.state import names
from pyritemq.storage.messages import MessageToStore

if TYPE_CHECKING:
    from pyritemq.protocol.record import Record

TIMER_OUT_MS = "TIMER_OUT_MS"
TIMER_ENQUEUE_MS = "TIMER_ENQUEUE_MS"
TIMER_DEQUEUE_MS = "TIMER_DEQUEUE_MS"
TIMER_ROLL_TIMES = "TIMER_ROLL_TIMES"
TIMER_DEL_UNIQKEY = "TIMER_DEL_UNIQKEY"
UNIQ_KEY = "UNIQ_KEY"

NEVER_ENQUEUED_MS = (1 << 63) - 1
"""Java's mark for a message whose time had come before it reached the wheel."""

_TIMER_TOPIC = names.TIMER_TOPIC.encode()


class IllegalTimer(ValueError):  # noqa: N818 - says what the message is
    """A time that is no number, too far away, or a recall of what is already due."""


def asks_for_timer(message: MessageToStore, properties: dict[str, str]) -> bool:
    """Whether a message without a delay level is to wait; one that has waited is not."""
    if message.sys_flag & TRANSACTION_MASK not in (TRANSACTION_NOT, TRANSACTION_COMMIT):
        return False
    if TIMER_OUT_MS in properties or message.topic == _TIMER_TOPIC:
        return False
    return any(name in properties for name in TIMER_PROPERTIES)


def deliver_ms(properties: dict[str, str], now_ms: int) -> int:
    """The time that a message asks for.  Raises IllegalTimer."""
    try:
        if "TIMER_DELAY_SEC" in properties:
            return now_ms + parse_long(properties["TIMER_DELAY_SEC"]) * 1000
        if "TIMER_DELAY_MS" in properties:
            return now_ms + parse_long(properties["TIMER_DELAY_MS"])
        return parse_long(properties["TIMER_DELIVER_MS"])
    except ValueError as error:
        raise IllegalTimer(str(error)) from None


def out_ms(
    properties: dict[str, str], *, now_ms: int, max_delay_ms: int, precision_ms: int
) -> int | None:
    """The slot to wait in; None for a message that is due already.  Raises IllegalTimer."""
    wanted_ms = deliver_ms(properties, now_ms)
    if wanted_ms <= now_ms:
        if TIMER_DEL_UNIQKEY in properties:
            raise IllegalTimer("a recall of what is due")
        return None
    if wanted_ms - now_ms > max_delay_ms:
        raise IllegalTimer("too far away")
    # A slot is delivered when it is over: the one before brings a whole time without delay.
    return (wanted_ms - 1) // precision_ms * precision_ms


def to_timer_topic(message: MessageToStore, properties: dict[str, str], slot_ms: int) -> None:
    """Send a message to the timer topic."""
    properties[TIMER_OUT_MS] = str(slot_ms)
    properties[REAL_TOPIC] = message.topic.decode()
    properties[REAL_QUEUE_ID] = str(message.queue_id)
    message.properties = encode_properties(properties)
    message.topic = _TIMER_TOPIC
    message.queue_id = 0


def due_message(
    record: Record, properties: dict[str, str], *, enqueue_ms: int, now_ms: int
) -> MessageToStore:
    """The message for its real topic.  Raises NotDeliverable.

    REAL_TOPIC and REAL_QID stay: Java takes them from the map, not from the text that is stored.
    """
    topic = properties.get(REAL_TOPIC)
    queue_id = properties.get(REAL_QUEUE_ID)
    if not topic or queue_id is None:
        raise NotDeliverable("it does not say where it belongs")
    try:
        number = parse_int(queue_id)
    except ValueError:
        raise NotDeliverable(f"{queue_id!r} is no queue id") from None
    return _copy(record, properties, topic, number, enqueue_ms=enqueue_ms, now_ms=now_ms)


def rolled_message(
    record: Record, properties: dict[str, str], *, enqueue_ms: int, now_ms: int
) -> MessageToStore:
    """The message for the timer topic once more: its time was further away than the wheel holds."""
    times = properties.get(TIMER_ROLL_TIMES, "0")
    properties[TIMER_ROLL_TIMES] = str(int(times) + 1 if times.isdecimal() else 1)
    return _copy(
        record, properties, record.topic, record.queue_id, enqueue_ms=enqueue_ms, now_ms=now_ms
    )


def _copy(
    record: Record,
    properties: dict[str, str],
    topic: str,
    queue_id: int,
    *,
    enqueue_ms: int,
    now_ms: int,
) -> MessageToStore:
    properties[TIMER_ENQUEUE_MS] = str(enqueue_ms)
    properties[TIMER_DEQUEUE_MS] = str(now_ms)
    return MessageToStore(
        topic.encode(),
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


class RecallHandle(NamedTuple):
    """What a producer needs to recall a message: RecallMessageHandle.HandleV1."""

    topic: str
    broker_name: str
    timestamp: str
    message_id: str

    def encode(self) -> str:
        return base64.urlsafe_b64encode(" ".join(("v1", *self)).encode()).decode()

    @classmethod
    def decode(cls, text: str) -> RecallHandle:
        """Raises ValueError with Java's words."""
        try:
            raw = base64.b64decode(text.encode() + b"=" * (-len(text) % 4), b"-_", validate=True)
            items = raw.decode(errors="replace").rstrip(" ").split(" ")
        except (binascii.Error, UnicodeEncodeError):
            items = []
        if len(items) < 5 or items[0] != "v1":
            raise ValueError("recall handle is invalid")
        return cls(*items[1:5])


def recall_handle(message: MessageToStore, broker_name: str) -> str | None:
    """The handle that the reply to a send carries; None for a message that does not wait."""
    if message.topic != _TIMER_TOPIC:
        return None
    properties = decode_properties(message.properties)
    topic = properties[REAL_TOPIC]
    if topic.startswith(names.RETRY_TOPIC_PREFIX):
        return None
    timestamp = str(int(properties[TIMER_OUT_MS]) + 1)  # so that it is rounded to the same slot
    return RecallHandle(topic, broker_name, timestamp, properties.get(UNIQ_KEY, "")).encode()
