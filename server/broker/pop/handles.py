"""The texts by which a client and the broker name popped messages (Java: ExtraInfoUtil).

A pop's reply says where each queue's part begins and which offsets it holds; from it the client
makes one handle for each message, and gives it back to ack.  Pure functions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from pyritemq.protocol.fields import parse_int, parse_long
from pyritemq.server.broker.pop.retry_topics import kind_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

ORDER_REVIVE_QUEUE = 999
"""Java's POP_ORDER_REVIVE_QUEUE: stands in a handle of what was popped in order."""

HANDLE_PARTS_MIN = 6
HANDLE_LENGTH_MAX = 1024
"""Ours: longer than any handle with names of legal length."""


class Handle(NamedTuple):
    """A message as its consumer names it; `start_offset` is that of its check point."""

    start_offset: int
    pop_time: int
    invisible_time: int
    revive_queue_id: int
    topic_kind: str
    broker_name: str

    @property
    def is_order(self) -> bool:
        return self.revive_queue_id == ORDER_REVIVE_QUEUE

    @property
    def revive_time(self) -> int:
        return self.pop_time + self.invisible_time


def parse_handle(text: str) -> Handle:
    """Raises ValueError.  Queue id and offset, which follow, stand in the request as well."""
    if len(text) > HANDLE_LENGTH_MAX:
        raise ValueError("extraInfo is too long")
    parts = text.split(" ")
    if len(parts) < HANDLE_PARTS_MIN:
        raise ValueError(f"extraInfo has {len(parts)} parts, fewer than {HANDLE_PARTS_MIN}")
    return Handle(
        parse_long(parts[0]),
        parse_long(parts[1]),
        parse_long(parts[2]),
        parse_int(parts[3]),
        parts[4],
        parts[5],
    )


def handle_text(handle: Handle, queue_id: int, queue_offset: int) -> str:
    """The handle of one message."""
    return " ".join(str(part) for part in (*handle, queue_id, queue_offset))


def start_offset_info(topic: str, queue_id: int, start_offset: int) -> str:
    return f"{kind_of(topic)} {queue_id} {start_offset}"


def msg_offset_info(topic: str, queue_id: int, offsets: Sequence[int]) -> str:
    return f"{kind_of(topic)} {queue_id} {','.join(map(str, offsets))}"


def order_count_infos(
    topic: str, queue_id: int, counts: Iterable[tuple[int, int]], count_min: int
) -> list[str]:
    """How often each offset, and at least each of the queue, was popped before."""
    kind = kind_of(topic)
    infos = [f"{kind} qo{queue_id}%{offset} {count}" for offset, count in counts]
    return [*infos, f"{kind} {queue_id} {count_min}"]
