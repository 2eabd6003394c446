"""A delayed message's two changes of place: into the schedule topic, and out of it when it is due.

Java does the first for every message that its store is given (HookUtils.handleScheduleMessage), the
second in ScheduleMessageService.messageTimeUp.  Here whoever makes a message calls `delay` before
it puts it; what `due_message` made is put as it is.  Pure functions; any thread.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyritemq.compat.java_hash import tags_code
from pyritemq.protocol.fields import parse_int
from pyritemq.protocol.record import (
    TRANSACTION_COMMIT,
    TRANSACTION_MASK,
    TRANSACTION_NOT,
    decode_properties,
    encode_properties,
)
from pyritemq.server.broker.state import names
from pyritemq.storage.messages import MessageToStore

if TYPE_CHECKING:
    from pyritemq.protocol.record import Record

DELAY = "DELAY"
REAL_TOPIC = "REAL_TOPIC"
REAL_QUEUE_ID = "REAL_QID"
TAGS = "TAGS"
TIMER_PROPERTIES = ("TIMER_DELIVER_MS", "TIMER_DELAY_SEC", "TIMER_DELAY_MS")
"""A message with a level has no other time of delivery."""

_SCHEDULE_TOPIC = names.SCHEDULE_TOPIC.encode()


class NotDeliverable(ValueError):  # noqa: N818 - says what a record is, nobody has failed
    """A record of the schedule topic that no queue can take."""


def delay(message: MessageToStore, *, level_max: int) -> bool:
    """Send a message that has a delay level to the schedule topic; False if it has none.

    Halves of transactions are never delayed; a level above the last one counts as the last one.
    Raises ValueError for a level that is no number.
    """
    if message.sys_flag & TRANSACTION_MASK not in (TRANSACTION_NOT, TRANSACTION_COMMIT):
        return False
    properties = decode_properties(message.properties)
    level = min(delay_level(properties), level_max)
    if level <= 0:
        return False
    for name in TIMER_PROPERTIES:
        properties.pop(name, None)
    properties[DELAY] = str(level)
    properties[REAL_TOPIC] = message.topic.decode()
    properties[REAL_QUEUE_ID] = str(message.queue_id)
    message.properties = encode_properties(properties)
    message.topic = _SCHEDULE_TOPIC
    message.queue_id = level - 1
    message.tags_code = None  # the store's: the time of delivery, counted from its timestamp
    return True


def delay_level(properties: dict[str, str]) -> int:
    """The level that a message asks for, 0 for none.  Raises ValueError, as Java's parseInt."""
    text = properties.get(DELAY)
    return 0 if text is None else parse_int(text)


def due_message(record: Record) -> MessageToStore:
    """The message that goes to the real topic.  Raises NotDeliverable.

    Its properties stay as they are: Java clears DELAY from the map, which keeps its store from
    delaying the message again, but not from the text that is stored.  Consumers see the level.
    """
    properties = decode_properties(record.properties)
    topic = properties.get(REAL_TOPIC)
    queue_id = properties.get(REAL_QUEUE_ID)
    if not topic or queue_id is None:
        raise NotDeliverable("it does not say where it belongs")
    if topic == names.TRANS_HALF_TOPIC:
        raise NotDeliverable(f"it belongs to {topic}")
    try:
        number = parse_int(queue_id)
    except ValueError:
        raise NotDeliverable(f"{queue_id!r} is no queue id") from None
    return MessageToStore(
        topic.encode(),
        number,
        record.body,
        record.properties,
        tags_code=tags_code(properties.get(TAGS, "")),
        flag=record.flag,
        sys_flag=record.sys_flag,
        born_timestamp=record.born_timestamp,
        born_host=record.born_host,
        store_host=record.store_host,
        reconsume_times=record.reconsume_times,
    )
