"""The folder `timerlog`: one unit of 52 bytes for each timer, chained backwards by slot (TimerLog).

One thread appends: units are staged, then written together by write(). A unit names the unit before
it in the same slot, the time at which it was appended, how long it waits from then on, and where
the message lies. The layout is declared in layouts.py.
"""

from collections.abc import Iterator
from pathlib import Path
from struct import Struct
from typing import Final, NamedTuple

from pyritemq.storage.disk import Disk
from pyritemq.storage.mapped_file import MappedFile
from pyritemq.storage.mapped_file_queue import MappedFileQueue

UNIT: Final = Struct(">iqiqiqiiq")
BLANK: Final = Struct(">iqi")
BLANK_MAGIC: Final = -875286124
"""Marks the rest of a file that had no room for another unit."""

MAGIC_DEFAULT: Final = 1
MAGIC_ROLL: Final = 1 << 1
MAGIC_DELETE: Final = 1 << 2
_MAGIC_BITS: Final = 0xF


class TimerUnit(NamedTuple):
    """One timer."""

    size: int
    prev_pos: int
    magic: int
    enqueue_ms: int
    delay_ms: int
    phy_offset: int
    phy_size: int
    topic_hash: int
    reserved: int = 0

    @property
    def due_ms(self) -> int:
        return self.enqueue_ms + self.delay_ms

    @property
    def is_good(self) -> bool:
        return self.size == UNIT.size and self.magic | _MAGIC_BITS == _MAGIC_BITS


class TimerLog:
    """The files and their end."""

    def __init__(self, disk: Disk, folder: Path, *, file_size: int) -> None:
        self._files = MappedFileQueue(disk, (folder,), file_size=file_size)
        self._staged = bytearray()
        self._written = 0  # what readers may see
        self.flushed_where = 0
        self.end = 0  # the writer's, ahead of what is written

    def load(self) -> None:
        self._files.load()

    def recover(self, start: int) -> Iterator[tuple[int, int, int]]:
        """Go through the units from the file of `start` on; what does not check is cut off.

        For each its position, when it is due, and where its message lies.
        """
        files = [file for file in self._files.files if file.end_offset > start]
        end = files[0].from_offset if files else self._files.min_offset
        for file in files or self._files.files[-1:]:
            end = file.from_offset
            for found in _good_units(file):
                yield found
                end = found[0] + UNIT.size
            if not _is_blank(file, end):
                break
        self._files.truncate(end)
        self.end = self._written = self.flushed_where = end

    def append(
        self,
        *,
        prev_pos: int,
        magic: int,
        enqueue_ms: int,
        delay_ms: int,
        phy_offset: int,
        phy_size: int,
        topic_hash: int,
    ) -> int:
        """Stage a unit; returns its position."""
        file = self._files.find(self.end) or self._files.roll(self.end)
        room = file.end_offset - self.end
        if room < UNIT.size + BLANK.size:
            self._staged += BLANK.pack(room, 0, BLANK_MAGIC)
            self.write()
            self.end = self._written = file.end_offset
            self._files.roll(self.end)
        pos = self.end
        self._staged += UNIT.pack(
            UNIT.size, prev_pos, magic, enqueue_ms, delay_ms, phy_offset, phy_size, topic_hash, 0
        )
        self.end = pos + UNIT.size
        return pos

    def write(self) -> None:
        """Write what is staged; if that fails, nothing of it was appended. Raises OSError."""
        staged, self._staged = self._staged, bytearray()
        file = self._files.find(self._written)
        if not staged or file is None:
            return
        try:
            file.write(self._written - file.from_offset, bytes(staged))
        except BaseException:
            self.end = self._written
            raise
        self._written = self.end

    def read(self, pos: int) -> TimerUnit | None:
        """The unit at a position, if one lies there."""
        file = self._files.find(pos)
        if file is None or not 0 <= pos <= self._written - UNIT.size:
            return None
        if pos + UNIT.size > file.end_offset:
            return None
        unit = TimerUnit._make(UNIT.unpack_from(file.view, pos - file.from_offset))
        return unit if unit.is_good else None

    def sync(self) -> None:
        """Make durable what is written now."""
        target = self._written
        for file in self._files.files:
            if file.end_offset > self.flushed_where and file.from_offset < target:
                file.sync()
        self.flushed_where = target

    def expire(self, min_phy_offset: int) -> None:
        """Delete files whose last timer's message is no longer in the CommitLog."""
        size = self._files.file_size
        last_unit = size - (size - BLANK.size) % UNIT.size - BLANK.size - UNIT.size
        for file in self._files.files[:-1]:
            unit = self.read(file.from_offset + last_unit)
            if unit is None or unit.phy_offset >= min_phy_offset:
                return
            self._files.drop_first(file)

    def close(self) -> None:
        self._files.close()


def _good_units(file: MappedFile) -> Iterator[tuple[int, int, int]]:
    """Position, due time and CommitLog offset of each unit up to the first that does not check.

    Flat, because a start goes through a file of two million: 0.5 µs each (Python 3.11, 2026-11-18).
    """
    pos = file.from_offset
    whole = file.view[: file.size // UNIT.size * UNIT.size]
    for size, _, magic, enqueue_ms, delay_ms, phy_offset, _, _, _ in UNIT.iter_unpack(whole):
        if size != UNIT.size or magic | _MAGIC_BITS != _MAGIC_BITS:
            return
        yield pos, enqueue_ms + delay_ms, phy_offset
        pos += UNIT.size


def _is_blank(file: MappedFile, end: int) -> bool:
    """Whether the file's writer left the rest of it empty and went on in the next one."""
    position = end - file.from_offset
    if position + BLANK.size > file.size:
        return False
    return bool(BLANK.unpack_from(file.view, position)[2] == BLANK_MAGIC)
