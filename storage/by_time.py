"""Finds the queue offset that belongs to a time: ConsumeQueue.getOffsetInQueueByTime of 5.5.0.

LOWER means the first message stored at or after the time, UPPER the last one stored at or before
it; where no message fits, the answers are Java's. Runs on any lane; each probe reads a unit and
eight bytes of its record.

Java first picks a file by the store times of its first and last unit, then bisects in that file,
and finally steps over neighbours with the same time. As store times rise along a queue, one
bisection over the whole queue finds the same unit. The cases at the edges are Java's own and are
spelled out below.
"""

from enum import StrEnum

from pyritemq.storage.commit_log import CommitLog
from pyritemq.storage.consume_queue import ConsumeQueue


class Boundary(StrEnum):
    LOWER = "LOWER"
    UPPER = "UPPER"


def offset_by_time(log: CommitLog, queue: ConsumeQueue, timestamp: int, boundary: Boundary) -> int:
    """A queue offset in [min_offset, max_offset], also for times outside the queue's."""
    low, high = queue.min_offset, queue.max_offset
    if low == high:
        return high
    if boundary is Boundary.LOWER:
        return _first(log, queue, timestamp, low, high)
    return max(_first(log, queue, timestamp + 1, low, high) - 1, low)


def _first(log: CommitLog, queue: ConsumeQueue, timestamp: int, low: int, high: int) -> int:
    """The first offset in [low, high) stored at or after the time, or high."""
    while low < high:
        middle = (low + high) // 2
        if _store_time(log, queue, middle) < timestamp:
            low = middle + 1
        else:
            high = middle
    return low


def _store_time(log: CommitLog, queue: ConsumeQueue, offset: int) -> int:
    unit = queue.unit(offset)
    return -1 if unit is None else log.store_timestamp(unit[0], unit[1])
