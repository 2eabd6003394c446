"""What the revive log holds: check points and acks, as Java writes them (store/pop of 5.5.0).

A check point says which messages of a queue one pop has handed out and until when they are not to
be seen; an ack says that one of them was consumed.  Both are messages with a time of delivery: the
timers bring the check point into the revive topic a second before the messages become visible
again, and the ack at that moment, so whoever reads the revive topic in order has both together.
The members are those of Java's JSON, sorted by name as fastjson2 writes them.  Pure functions.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import orjson

from pyritemq.compat import fastjson
from pyritemq.compat.java_hash import tags_code
from pyritemq.protocol.record import encode_properties
from pyritemq.storage.messages import MessageToStore

if TYPE_CHECKING:
    from collections.abc import Iterable

CK_TAG = "ck"
ACK_TAG = "ack"
BATCH_ACK_TAG = "bAck"

REVIVE_GROUP = "CID_RMQ_SYS_REVIVE_GROUP"
"""Under this group the revive topic's progress is kept in consumerOffset.json."""

ACK_TIME_INTERVAL_MS = 1000
"""Java's ackTimeInterval: how much earlier than an ack its check point is delivered."""

NUM_MAX = 127
"""A check point's number of messages is a Java byte."""

PopKey = tuple[str, str, int, int, int, str]
"""What ties an ack to its check point: topic, group, queue, start offset, pop time, broker."""


class ReviveRecordError(ValueError):
    """The body of a revive message is not what Java or we write."""


@dataclass(slots=True)
class CheckPoint:
    """One pop of one queue.  `bit_map` marks what was acked; `revive_offset` is its own place."""

    topic: str
    group: str
    queue_id: int
    start_offset: int
    pop_time: int
    invisible_time: int
    broker_name: str
    diffs: list[int] = field(default_factory=list)
    num: int = 0
    bit_map: int = 0
    revive_offset: int = 0
    re_put_times: int = 0
    suspend: bool = False

    @property
    def revive_time(self) -> int:
        return self.pop_time + self.invisible_time

    @property
    def key(self) -> PopKey:
        return (
            self.topic,
            self.group,
            self.queue_id,
            self.start_offset,
            self.pop_time,
            self.broker_name,
        )

    @property
    def offsets(self) -> list[int]:
        """Of all its messages; a check point of an old broker has no differences."""
        if self.diffs:
            return [self.start_offset + diff for diff in self.diffs[: self.num]]
        return list(range(self.start_offset, self.start_offset + self.num))

    @property
    def unacked(self) -> list[int]:
        return [offset for i, offset in enumerate(self.offsets) if not self.bit_map >> i & 1]

    def ack(self, offset: int) -> bool:
        """Mark one message; False if it is none of this pop."""
        try:
            index = self.offsets.index(offset)
        except ValueError:
            return False
        self.bit_map |= 1 << index
        return True

    @property
    def all_acked(self) -> bool:
        return self.bit_map == (1 << self.num) - 1

    def body(self) -> bytes:
        members: dict[str, Any] = {
            "bm": 0,
            "bn": self.broker_name,
            "c": self.group,
            "d": self.diffs,
            "it": self.invisible_time,
            "n": self.num,
            "pt": self.pop_time,
            "q": self.queue_id,
            "reviveTime": self.revive_time,
            "ro": 0,
            "rp": str(self.re_put_times),
            "so": self.start_offset,
            "sp": self.suspend,
            "t": self.topic,
        }
        if not self.re_put_times:
            del members["rp"]
        return orjson.dumps(members)

    @property
    def unique_id(self) -> str:
        parts = (self.topic, self.queue_id, self.start_offset, self.group, self.pop_time)
        return "@".join(map(str, (*parts, self.broker_name, CK_TAG)))


def check_point(
    *,
    topic: str,
    group: str,
    queue_id: int,
    start_offset: int,
    offsets: Iterable[int],
    pop_time: int,
    invisible_time: int,
    broker_name: str,
    re_put_times: int = 0,
    suspend: bool = False,
) -> CheckPoint:
    """A new check point of these offsets."""
    diffs = [offset - start_offset for offset in offsets]
    return CheckPoint(
        topic,
        group,
        queue_id,
        start_offset,
        pop_time,
        invisible_time,
        broker_name,
        diffs,
        len(diffs),
        re_put_times=re_put_times,
        suspend=suspend,
    )


@dataclass(frozen=True, slots=True)
class Ack:
    """One message of a pop was consumed, or several (then Java's BatchAckMsg)."""

    topic: str
    group: str
    queue_id: int
    start_offset: int
    pop_time: int
    broker_name: str
    offsets: tuple[int, ...]
    is_batch: bool = False

    @property
    def key(self) -> PopKey:
        return (
            self.topic,
            self.group,
            self.queue_id,
            self.start_offset,
            self.pop_time,
            self.broker_name,
        )

    def body(self) -> bytes:
        members: dict[str, Any] = {"ao": -1 if self.is_batch else self.offsets[0]}
        if self.is_batch:
            members["aol"] = self.offsets
        members |= {
            "bn": self.broker_name,
            "c": self.group,
            "pt": self.pop_time,
            "q": self.queue_id,
            "so": self.start_offset,
            "t": self.topic,
        }
        return orjson.dumps(members)

    @property
    def tag(self) -> str:
        return BATCH_ACK_TAG if self.is_batch else ACK_TAG

    @property
    def unique_id(self) -> str:
        """Java sets a batch's own id and then overwrites it with this form."""
        offset = -1 if self.is_batch else self.offsets[0]
        parts = (self.topic, self.queue_id, offset, self.group, self.pop_time, self.broker_name)
        return "@".join(map(str, (*parts, ACK_TAG)))


def decode_check_point(body: bytes | memoryview) -> CheckPoint:
    """Raises ReviveRecordError."""
    members = _members(body)
    try:
        diffs = [int(diff) for diff in members.get("d") or ()]
        num = int(members["n"])
        if not 0 <= num <= NUM_MAX or (diffs and len(diffs) < num):
            raise ReviveRecordError(f"a check point of {num} messages with {len(diffs)} offsets")
        return CheckPoint(
            str(members["t"]),
            str(members["c"]),
            int(members["q"]),
            int(members["so"]),
            int(members["pt"]),
            int(members["it"]),
            str(members.get("bn") or ""),
            diffs,
            num,
            int(members.get("bm") or 0),
            re_put_times=_re_put_times(members.get("rp")),
            suspend=bool(members.get("sp")),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise ReviveRecordError(f"not a check point: {error!r}") from None


def decode_ack(body: bytes | memoryview, *, own_broker: str) -> Ack:
    """Of either kind; an ack of an old broker does not name one.  Raises ReviveRecordError."""
    members = _members(body)
    try:
        offsets = _first(members, "aol", "ackOffsetList")
        is_batch = offsets is not None
        if not is_batch:
            offsets = [_first(members, "ao", "ackOffset")]
        return Ack(
            str(_first(members, "t", "topic")),
            str(_first(members, "c", "consumerGroup")),
            int(_first(members, "q", "queueId")),
            int(_first(members, "so", "startOffset")),
            int(_first(members, "pt", "popTime")),
            str(_first(members, "bn", "brokerName") or own_broker),
            tuple(int(offset) for offset in offsets),
            is_batch,
        )
    except (TypeError, ValueError) as error:
        raise ReviveRecordError(f"not an ack: {error!r}") from None


def revive_message(
    record: CheckPoint | Ack,
    *,
    revive_topic: str,
    revive_queue_id: int,
    deliver_ms: int,
    now_ms: int,
    host: bytes,
) -> MessageToStore:
    """A record of the revive log, before the timers have seen it."""
    tag = CK_TAG if isinstance(record, CheckPoint) else record.tag
    properties = {
        "TAGS": tag,
        "TIMER_DELIVER_MS": str(deliver_ms),
        "UNIQ_KEY": record.unique_id,
    }
    return MessageToStore(
        revive_topic.encode(),
        revive_queue_id,
        record.body(),
        encode_properties(properties),
        tags_code=tags_code(tag),
        born_timestamp=now_ms,
        born_host=host,
        store_host=host,
    )


def _members(body: bytes | memoryview) -> dict[str, Any]:
    try:
        members = fastjson.loads(bytes(body))
    except fastjson.FastjsonError as error:
        raise ReviveRecordError(str(error)) from None
    if not isinstance(members, dict):
        raise ReviveRecordError("not a JSON object")
    return members


def _first(members: dict[str, Any], *names: str) -> Any:  # noqa: ANN401 - JSON holds anything
    return next((members[name] for name in names if name in members), None)


def _re_put_times(text: object) -> int:
    """Java counts an unreadable number as very often."""
    if text is None:
        return 0
    try:
        return int(str(text))
    except ValueError:
        return NUM_MAX
