"""Numbers sorted into slots: how many were at most so large.  No lock of its own."""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


class Histogram:
    """Slots with the given upper bounds, and one above the last."""

    __slots__ = ("bounds", "slots", "sum")

    def __init__(self, bounds: Sequence[float]) -> None:
        self.bounds = bounds
        self.slots = [0] * (len(bounds) + 1)
        self.sum = 0.0

    def observe(self, value: float, times: int = 1) -> None:
        self.slots[bisect_left(self.bounds, value)] += times
        self.sum += value * times

    def copy(self) -> Histogram:
        copied = Histogram(self.bounds)
        copied.slots = list(self.slots)
        copied.sum = self.sum
        return copied

    def cumulative(self) -> Iterator[tuple[float, int]]:
        """Each bound, infinity last, and how many were not above it."""
        count = 0
        for bound, slot in zip((*self.bounds, float("inf")), self.slots, strict=True):
            count += slot
            yield bound, count
