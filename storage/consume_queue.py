"""One ConsumeQueue: for each message of a topic's queue where it lies in the CommitLog, in 20-byte units.

    unit   phy offset i64 | record size i32 | tags code i64        300,000 of them to a file

Three parties meet here:
  the send lane      stage() units at next_offset, then publish(): the only writer of next_offset and max_offset;
  the flusher        write_out(): brings published units into the files, then forgets the oldest blocks in memory;
  readers            units() below max_offset, from the blocks if they are still there, else from the files.

Why no reader ever sees half a unit, GIL or not: a block is a bytearray that is never resized and never
rewritten below max_offset; the tuple of blocks is replaced whole; and the order of events is
  1. send lane: unit into the block (a new block is in the tuple before its first unit is written)
  2. send lane: record bytes into the CommitLog
  3. send lane: max_offset = next_offset
  4. reader:    reads max_offset, then the tuple: every unit below is in a block, or
  5. flusher:   was written to its file before its block left the tuple.
Both the send lane (a new block) and the flusher (old blocks) replace the tuple, so each does it under the lock.
"""

import threading
from pathlib import Path
from struct import Struct
from typing import Final

from pyritemq.storage.file_cache import FileCache
from pyritemq.storage.mapped_file import file_name
from pyritemq.storage.record_codec import HEAD_V4, magic_for, topic_field

UNIT: Final = Struct(">qiq")
UNIT_SIZE: Final = 20
BLANK_SIZE: Final = 0x7FFFFFFF  # the record size in units that fill a file before its first message
BLANK_UNIT: Final = UNIT.pack(0, BLANK_SIZE, 0)

BLOCK_UNITS_MIN: Final = 16  # ours: most of 50,000 queues hold a few messages
BLOCK_UNITS_MAX: Final = 128  # ours: 2.5 KB stay with a queue that was busy once
BLOCKS_KEPT_MAX: Final = 64  # ours: written blocks that stay for readers close behind

_Block = tuple[int, bytearray]  # queue offset of its first unit, units


class ConsumeQueue:
    """The units of one queue, identified by topic and queue id."""

    __slots__ = (
        "_block",
        "_block_base",
        "_block_units",
        "_blocks",
        "_file_units",
        "_files",
        "_folder",
        "_lock",
        "dirty",
        "file_size",
        "first_offset",
        "fixed_size",
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
        self, topic: bytes, queue_id: int, *, folder: Path, files: FileCache, file_units: int
    ) -> None:
        self.topic = topic
        self.queue_id = queue_id
        self.topic_field = topic_field(topic)
        self.magic = magic_for(topic)
        # size of a record of this queue with IPv4 hosts, less body and properties
        self.fixed_size = HEAD_V4.size + len(self.topic_field) + 2
        self._folder = folder
        self._files = files
        self._file_units = file_units
        self.file_size = file_units * UNIT_SIZE
        self._lock = threading.Lock()
        self.dirty = False  # in the flusher's list
        self.start_at(0)

    def start_at(self, offset: int) -> None:
        """The queue is empty, or all in files, and goes on at this offset."""
        self.first_offset = self.min_offset = offset
        self.next_offset = self.max_offset = self.written = self.synced = offset
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

    def publish(self) -> None:
        self.max_offset = self.next_offset

    def roll_back(self) -> None:
        """Take back what was staged since the last publish."""
        self.next_offset = self.max_offset
        if self.next_offset < self._block_base:
            self._add_block(self.next_offset)

    def _add_block(self, offset: int) -> None:
        units = min(max(BLOCK_UNITS_MIN, self._block_units * 2), BLOCK_UNITS_MAX)
        block = bytearray(units * UNIT_SIZE)
        with self._lock:
            kept = tuple(item for item in self._blocks if item[0] < offset)
            self._blocks = (*kept, (offset, block))
        self._block = block
        self._block_base = offset
        self._block_units = units

    # -- readers ------------------------------------------------------------------------------

    def units(self, offset: int, count: int) -> bytes | memoryview:
        """Up to count units from offset on, all in one file as Java's iterator; offset lies in [min, max)."""
        count = min(count, self.max_offset - offset, self._file_units - offset % self._file_units)
        blocks = self._blocks
        if blocks:
            base, block = blocks[-1]
            if offset >= base:  # by far the usual case: the reader is close behind the writer
                start = (offset - base) * UNIT_SIZE
                return memoryview(block)[start : start + count * UNIT_SIZE]
        return self._older_units(blocks, offset, count)

    def _older_units(self, blocks: tuple[_Block, ...], offset: int, count: int) -> bytes:
        end = offset + count
        parts: list[bytes | memoryview] = []
        first_base = blocks[0][0] if blocks else end
        if offset < first_base:
            parts.append(self._read(offset, min(end, first_base) - offset))
            offset = min(end, first_base)
        for index, (base, block) in enumerate(blocks):
            if offset >= end:
                break
            block_end = blocks[index + 1][0] if index + 1 < len(blocks) else end
            if offset < block_end:
                stop = min(end, block_end)
                parts.append(
                    memoryview(block)[(offset - base) * UNIT_SIZE : (stop - base) * UNIT_SIZE]
                )
                offset = stop
        return b"".join(parts)

    def _read(self, offset: int, count: int) -> bytes:
        position = offset % self._file_units * UNIT_SIZE
        return self._file_of(offset).read_at(position, count * UNIT_SIZE)

    def unit(self, offset: int) -> tuple[int, int, int] | None:
        """(phy offset, size, tags code) of one unit, or None outside the queue."""
        if not self.min_offset <= offset < self.max_offset:
            return None
        phy_offset, size, tags_code = UNIT.unpack(self.units(offset, 1))
        return phy_offset, size, tags_code

    # -- flusher ------------------------------------------------------------------------------

    def write_out(self) -> None:
        """Write the published units that are not in the files yet, then let go of old blocks."""
        end = self.max_offset
        while self.written < end:
            data = self.units(self.written, end - self.written)
            position = self.written % self._file_units * UNIT_SIZE
            self._file_of(self.written).write_at(position, data)
            self.written += len(data) // UNIT_SIZE
        if len(self._blocks) > BLOCKS_KEPT_MAX:
            self._drop_blocks()

    def sync(self) -> None:
        """Make what was written durable."""
        target = self.written
        offset = self.synced
        while offset < target:
            self._file_of(offset).sync()
            offset += self._file_units - offset % self._file_units
        self.synced = target

    def _drop_blocks(self) -> None:
        written = self.written
        with self._lock:
            blocks = self._blocks
            ends = [*(base for base, _ in blocks[1:]), written + 1]
            in_memory_only = sum(end > written for end in ends)
            self._blocks = blocks[-max(BLOCKS_KEPT_MAX // 2, in_memory_only) :]

    def _file_of(self, offset: int):  # type: ignore[no-untyped-def]
        start = offset // self._file_units * self.file_size
        return self._files.open(self._folder / file_name(start), size=self.file_size)
