"""The file `timerwheel`: a slot for each tick of 14 days, with its last timer (TimerWheel).

Slots are written through with positional writes: the file stays sparse, and nothing is kept in
memory, where Java holds all 38,707,200 bytes. A slot is found by its time modulo the wheel and
counts only if it carries that very time; nobody clears it. One thread writes; any thread may read
a slot. The layout is declared in layouts.py.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path
from struct import Struct
from typing import Final, NamedTuple

from pyritemq.storage.disk import Disk
from pyritemq.storage.errors import StoreUnusableError

SLOT: Final = Struct(">qqqii")
SLOTS_TOTAL: Final = 7 * 86_400
"""Slots that timers may be ahead, whatever a tick is; the wheel has twice as many."""

NOWHERE: Final = -1
_CHUNK_SLOTS: Final = 2048
_ZEROES: Final = bytes(_CHUNK_SLOTS * SLOT.size)


class Slot(NamedTuple):
    """One tick: its time, its first and last unit in the timer log, and how many there are."""

    time_ms: int
    first_pos: int
    last_pos: int
    num: int = 0
    magic: int = 0


_EMPTY: Final = Slot(-1, NOWHERE, NOWHERE)


class TimerWheel:
    """The wheel; times are rounded down to the precision."""

    def __init__(
        self, disk: Disk, path: Path, *, precision_ms: int, slots_total: int = SLOTS_TOTAL
    ) -> None:
        self.precision_ms = precision_ms
        self._slots = slots_total * 2
        size = self._slots * SLOT.size
        self._file = disk.open(path, create=True)
        found = self._file.size()
        if found not in (0, size):
            raise StoreUnusableError(f"the file {path} has {found} bytes, but must have {size}")
        if found == 0:
            self._file.resize(size)

    def slot(self, time_ms: int) -> Slot:
        """The slot of a time; one without timers has no positions."""
        tick = time_ms // self.precision_ms
        number, first, last, num, magic = SLOT.unpack(
            self._file.read_at(self._position(tick), SLOT.size)
        )
        if number != tick:
            return _EMPTY
        return Slot(tick * self.precision_ms, first, last, num, magic)

    def put(self, slot: Slot) -> None:
        tick = slot.time_ms // self.precision_ms
        self._file.write_at(self._position(tick), SLOT.pack(tick, *slot[1:]))

    def revise(self, found: Iterable[tuple[int, int]]) -> None:
        """Units were found in the log while it was recovered, as (due time, position), in order.

        The last one of a slot is its last, and the first one its first if the slot knew of none. A
        slot that has come round to a later time since then keeps that.
        """
        ends: dict[int, list[int]] = {}  # of a slot: its tick, and the units at both ends
        for time_ms, pos in found:
            tick = time_ms // self.precision_ms
            end = ends.get(tick % self._slots)
            if end is None or end[0] < tick:
                ends[tick % self._slots] = [tick, pos, pos]
            elif end[0] == tick:
                end[2] = pos
        chunks: dict[int, list[int]] = {}
        for index in ends:
            chunks.setdefault(index // _CHUNK_SLOTS, []).append(index)
        for number, indexes in chunks.items():
            base = number * _CHUNK_SLOTS * SLOT.size
            chunk = bytearray(self._file.read_at(base, _CHUNK_SLOTS * SLOT.size))
            revised = [_revise(chunk, index * SLOT.size - base, *ends[index]) for index in indexes]
            if any(revised):
                self._file.write_at(base, bytes(chunk))

    def slots(self, start_ms: int, end_ms: int) -> Iterator[Slot]:
        """Slots with timers from one time to another, by time; long stretches of nothing are cheap.

        A look at an empty wheel reads 38 MB of holes: some milliseconds.
        """
        tick = start_ms // self.precision_ms
        end = min(end_ms // self.precision_ms, tick + self._slots)
        while tick < end:
            index = tick % self._slots
            count = min(_CHUNK_SLOTS, end - tick, self._slots - index)
            data = self._file.read_at(index * SLOT.size, count * SLOT.size)
            if data != _ZEROES[: len(data)]:
                for number, slot in enumerate(SLOT.iter_unpack(data), tick):
                    if slot[0] == number:
                        yield Slot(number * self.precision_ms, *slot[1:])
            tick += count

    def slots_from(self, start_ms: int) -> Iterator[Slot]:
        """All slots with timers from a time on."""
        return self.slots(start_ms, start_ms + self._slots * self.precision_ms)

    def sync(self) -> None:
        self._file.sync()

    def _position(self, tick: int) -> int:
        return tick % self._slots * SLOT.size


def _revise(chunk: bytearray, at: int, tick: int, first_pos: int, last_pos: int) -> bool:
    """Bring the slot at a place to what the log says; False if it was so already."""
    number, first, last, num, magic = SLOT.unpack_from(chunk, at)
    if number > tick or (number == tick and last == last_pos):
        return False
    if number != tick or last == NOWHERE:
        first, num, magic = first_pos, 0, 0
    SLOT.pack_into(chunk, at, tick, first, last_pos, num, magic)
    return True
