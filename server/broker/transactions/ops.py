"""What the op topic says: which halves are decided, and which op messages are done with.

One `OpReader` serves one round of checks, on the check's thread.  An op message is done with when
the round has passed all the halves that it names.  One that names a half which an earlier round
passed is kept a little longer: a half with an immunity time is put back under a new offset while
its producer goes on to use the first one, so its copy has to be met before the op may go.  The
copy was stored before the op (the send lane keeps their order); once the next half to look at is
younger than the op, the copy has been met.  Java lets such an op go at once and asks again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyritemq.protocol.record import decode_records
from pyritemq.server.broker.state import names
from pyritemq.server.broker.transactions.halves import QUEUE_ID, decided_offsets
from pyritemq.storage.messages import GetStatus

if TYPE_CHECKING:
    from pyritemq.protocol.record import Record
    from pyritemq.storage.message_store import MessageStore
    from pyritemq.storage.messages import GetResult

READ_COUNT = 32
"""Java's OP_MSG_PULL_NUMS."""

NOTHING_NEW = frozenset({GetStatus.NO_MESSAGE_IN_QUEUE, GetStatus.OFFSET_OVERFLOW_ONE})
"""There is nothing at the offset yet; all else but FOUND means that the offset is wrong."""


class OpReader:
    """The op queue from an offset on, as far as it has been read."""

    def __init__(self, store: MessageStore, *, offset: int, half_offset: int) -> None:
        self._store = store
        self._first = offset
        self._next = offset
        self._half_offset = half_offset
        self._op_of: dict[int, int] = {}  # decided half -> the op that says so
        self._left: dict[int, set[int]] = {}  # op -> its halves that the round has not passed
        self._late: dict[int, int] = {}  # op that names a half passed earlier -> its store time

    def read_on(self) -> None:
        """Read to the queue's end."""
        corrected = False
        while True:
            found = self._store.get(
                names.TRANS_OP_HALF_TOPIC, QUEUE_ID, self._next, count_max=READ_COUNT
            )
            if found.status is GetStatus.FOUND:
                for record in records_of(found):
                    self._take(record)
            elif found.status in NOTHING_NEW or corrected:
                return
            else:
                corrected = True
                if self._next == self._first:
                    self._first = found.next_begin_offset
            self._next = found.next_begin_offset

    def decides(self, offset: int) -> bool:
        """Whether an op that was read names the half."""
        return offset in self._op_of

    def passed(self, offset: int) -> None:
        """The round has passed a half that `decides` is true of."""
        left = self._left.get(self._op_of[offset])
        if left is not None:
            left.discard(offset)

    def next_offset(self, front_ms: int | None) -> int:
        """Where the next round has to begin; `front_ms` is the store time of its first half."""
        offset = self._first
        while offset in self._left and self._is_done(offset, front_ms):
            offset += 1
        return offset

    def _take(self, op: Record) -> None:
        offsets = decided_offsets(op)
        self._left[op.queue_offset] = {half for half in offsets if half >= self._half_offset}
        if len(self._left[op.queue_offset]) < len(offsets):
            self._late[op.queue_offset] = op.store_timestamp
        self._op_of.update(dict.fromkeys(offsets, op.queue_offset))

    def _is_done(self, op_offset: int, front_ms: int | None) -> bool:
        if self._left[op_offset]:
            return False
        stored_ms = self._late.get(op_offset)
        return stored_ms is None or front_ms is None or stored_ms < front_ms


def records_of(found: GetResult) -> list[Record]:
    """The records of a get.  Raises RecordError."""
    return [record for piece in found.slices for record in decode_records(piece)]
