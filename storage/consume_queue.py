"""One ConsumeQueue: where each message of a topic's queue lies in the CommitLog, in 20-byte units.

    unit    phy offset i64 | record size i32 | tags code i64          300,000 of them to a file

Three parties meet here:
  the send lane   stage() units at next_offset, then publish: the only writer of the two offsets;
  the flusher     write_out() published units to the files, then let go of the oldest blocks;
  readers         units() below max_offset, from the blocks in memory or else from the files.

No reader sees half a unit, with or without a GIL: a block is a bytearray that is never resized, nor
rewritten below max_offset; the tuple of blocks is replaced whole; and things happen in this order:
  1. send lane: unit into the block (a new block is in the tuple before its first unit is written)
  2. send lane: record into the CommitLog
  3. send lane: max_offset = next_offset
  4. reader:    reads max_offset, then the tuple: each unit below is in a block of it, unless
  5. flusher:   wrote it to its file before it took the block out of the tuple.
Both the send lane (new blocks) and the flusher (old blocks) replace the tuple: under the lock.
"""

import threading
from bisect import bisect_right
from collections.abc import Callable
from operator import itemgetter
from pathlib import Path
from struct import Struct
from typing import Final

from pyritemq.storage.block_sizes import BLOCK_UNITS_MIN, BlockSizes
from pyritemq.storage.disk import DiskFile
from pyritemq.storage.file_cache import FileCache
from pyritemq.storage.mapped_file import file_name
from pyritemq.storage.record_codec import HEAD_V4, LENGTH_I16, magic_for, topic_field

UNIT: Final = Struct(">qiq")
UNIT_SIZE: Final = 20
BLANK_SIZE: Final = 0x7FFFFFFF  # the size in units that stand before the first message of a queue
BLANK_UNIT: Final = UNIT.pack(0, BLANK_SIZE, 0)

BLANKS_READ: Final = 1024  # ours: units read at once while passing over blanks

_Block = tuple[int, bytearray]  # queue offset of the first unit, units
_base = itemgetter(0)


ReadUnits = Callable[[int, int], bytes | memoryview]
"""Units from an offset on, at most so many, and at least one."""


def first_live(read: ReadUnits, low: int, high: int, *, min_phy_offset: int) -> int:
    """The first unit in [low, high) whose record is still in the CommitLog; high if there is none.

    ConsumeQueue.correctMinOffset, except that blanks are passed over: Java counts those before a
    queue's first message as messages when the CommitLog starts at 0. Blanks also lie where messages
    were lost, so one in the middle says nothing: the next unit that is none decides.
    """
    end = high
    while low < high:
        middle = (low + high) // 2
        found, phy_offset = _next_real(read, middle, high)
        if found < high and phy_offset < min_phy_offset:
            low = found + 1
        else:
            high = middle
    return _next_real(read, low, end)[0]


def _next_real(read: ReadUnits, offset: int, end: int) -> tuple[int, int]:
    """Offset of the next unit that is no blank, and where its record lies; else (end, -1)."""
    count = 1
    while offset < end:
        for phy_offset, size, _ in UNIT.iter_unpack(read(offset, min(count, end - offset))):
            if size != BLANK_SIZE:
                return offset, phy_offset
            offset += 1
        count = BLANKS_READ
    return end, -1


class ConsumeQueue:
    """The units of one queue, identified by topic and queue id."""

    __slots__ = (
        "_block",
        "_block_base",
        "_block_units",
        "_blocks",
        "_files",
        "_lock",
        "_path",
        "_sizes",
        "_started_at",
        "dirty",
        "file_size",
        "file_units",
        "fixed_size",
        "folder",
        "magic",
        "max_offset",
        "min_offset",
        "next_offset",
        "queue_id",
        "synced",
        "topic",
        "topic_field",
        "written",
    )

    def __init__(
        self,
        topic: bytes,
        queue_id: int,
        *,
        folder: Path,
        files: FileCache,
        file_units: int,
        sizes: BlockSizes,
    ) -> None:
        self._sizes = sizes
        self.topic = topic
        self.queue_id = queue_id
        self.topic_field = topic_field(topic)
        self.magic = magic_for(topic)
        # a record of this queue with IPv4 hosts, less its body and properties
        self.fixed_size = HEAD_V4.size + len(self.topic_field) + LENGTH_I16.size
        self.folder = folder
        self._files = files
        self.file_units = file_units
        self.file_size = file_units * UNIT_SIZE
        self._lock = threading.Lock()
        self._path = (-1, folder)  # the file asked for last: its number and path
        self.dirty = False  # is in the flusher's list
        self.start_at(0, min_offset=0)

    def start_at(self, offset: int, *, min_offset: int) -> None:
        """Everything below offset is in the files, or nowhere; go on from here. Before any use."""
        self.min_offset = min_offset
        self.next_offset = self.max_offset = offset
        self.written = self.synced = offset
        self._started_at = offset
        self._blocks: tuple[_Block, ...] = ()
        self._block = bytearray()
        self._block_base = offset
        self._block_units = 0

    # -- send lane ----------------------------------------------------------------------------

    def stage(self, phy_offset: int, size: int, tags_code: int) -> int:
        """Put a unit behind the others, not yet visible; returns its queue offset."""
        offset = self.next_offset
        index = offset - self._block_base
        if index >= self._block_units:
            self._add_block(offset)
            index = 0
        UNIT.pack_into(self._block, index * UNIT_SIZE, phy_offset, size, tags_code)
        self.next_offset = offset + 1
        return offset

    def roll_back(self) -> None:
        """Take back what was staged since the last publish."""
        self.next_offset = self.max_offset
        if self.next_offset < self._block_base:
            self._add_block(self.next_offset)

    def _add_block(self, offset: int) -> None:
        most = self._sizes.units
        grown = min(max(BLOCK_UNITS_MIN, offset - self._started_at), most)
        units = min(grown, most - offset % most)
        block = bytearray(units * UNIT_SIZE)
        with self._lock:
            kept = tuple(item for item in self._blocks if item[0] < offset)
            self._blocks = (*kept, (offset, block))
        self._block = block
        self._block_base = offset
        self._block_units = units

    # -- readers ------------------------------------------------------------------------------

    def units(self, offset: int, count: int) -> bytes | memoryview:
        """Up to count units from offset on, all in one file: Java's iterator stops at its end.

        The offset lies in [min_offset, max_offset).
        """
        count = min(count, self.max_offset - offset, self.file_units - offset % self.file_units)
        blocks = self._blocks
        if blocks:
            base, block = blocks[-1]
            if offset >= base:  # by far the usual case: the reader is close behind the writer
                start = (offset - base) * UNIT_SIZE
                return memoryview(block)[start : start + count * UNIT_SIZE]
        return b"".join(self._gather(blocks, offset, offset + count))

    def _gather(
        self, blocks: tuple[_Block, ...], offset: int, end: int
    ) -> list[bytes | memoryview]:
        """Units of a range that no one block holds: from the file, then block after block."""
        parts: list[bytes | memoryview] = []
        index = bisect_right(blocks, offset, key=_base) - 1
        if index < 0:
            in_memory_from = min(blocks[0][0], end) if blocks else end
            parts.append(self._read(offset, in_memory_from - offset))
            offset, index = in_memory_from, 0
        while offset < end:
            base, block = blocks[index]
            index += 1
            stop = min(blocks[index][0], end) if index < len(blocks) else end
            parts.append(memoryview(block)[(offset - base) * UNIT_SIZE : (stop - base) * UNIT_SIZE])
            offset = stop
        return parts

    def _read(self, offset: int, count: int) -> bytes:
        file = self._files.open(self.file_path(offset))
        return file.read_at(offset % self.file_units * UNIT_SIZE, count * UNIT_SIZE)

    @property
    def in_memory_from(self) -> int:
        """From here on units are in one block of memory."""
        blocks = self._blocks
        return blocks[-1][0] if blocks else self.max_offset

    @property
    def is_expired(self) -> bool:
        """Whether it had messages, and none of them is left."""
        return 0 < self.max_offset == self.min_offset

    def unit(self, offset: int) -> tuple[int, int, int] | None:
        """(phy offset, size, tags code) of one unit, or None outside the queue."""
        if not self.min_offset <= offset < self.max_offset:
            return None
        phy_offset, size, tags_code = UNIT.unpack(self.units(offset, 1))
        return phy_offset, size, tags_code

    # -- flusher ------------------------------------------------------------------------------

    def write_out(self) -> None:
        """Write published units that are not in the files yet, then let go of old blocks."""
        end = self.max_offset
        while self.written < end:
            units = self.units(self.written, end - self.written)
            position = self.written % self.file_units * UNIT_SIZE
            self._file_to_write(self.written).write_at(position, units)
            self.written += len(units) // UNIT_SIZE
        if len(self._blocks) > self._sizes.blocks_kept:
            self._drop_blocks()

    def sync(self) -> None:
        """Make durable what was written."""
        target = self.written
        while self.synced < target:
            self._file_to_write(self.synced).sync()
            file_end = self.synced - self.synced % self.file_units + self.file_units
            self.synced = min(file_end, target)

    def fill_blanks(self, until: int) -> None:
        """Fill the file before the queue's first unit, as ConsumeQueue.fillPreBlank does."""
        count = until % self.file_units
        if count:
            self._file_to_write(until).write_at(0, BLANK_UNIT * count)

    def correct_min_offset(self, min_phy_offset: int) -> None:
        """Move the first offset to the first unit whose record is still there."""
        self.min_offset = first_live(
            self.units, self.min_offset, self.max_offset, min_phy_offset=min_phy_offset
        )

    def _drop_blocks(self) -> None:
        with self._lock:
            blocks = self._blocks
            needed = sum(base >= self.written for base, _ in blocks) + 1
            self._blocks = blocks[-max(self._sizes.blocks_kept // 2, needed) :]

    # -- files --------------------------------------------------------------------------------

    def file_path(self, offset: int) -> Path:
        """The file that the unit at this queue offset belongs to."""
        number = offset // self.file_units
        last = self._path  # one tuple, replaced whole: readers may come here at the same time
        if last[0] != number:  # making a path takes 3 µs, and a reader stays in one file for long
            last = self._path = (number, self.folder / file_name(number * self.file_size))
        return last[1]

    def _file_to_write(self, offset: int) -> DiskFile:
        return self._files.open_sized(self.file_path(offset), self.file_size)
