"""One task's read of a store: ranges of queues to Arrow batches, in the order of the CommitLog.

Runs in a Spark worker. Units come from the ConsumeQueues in blocks, file by file of the CommitLog;
their records are decoded through one mapping of at most MAP_BYTES at a time, so that neither the
mapped pages nor the units of a large store weigh on the worker's memory.
"""

import mmap
import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pyritemq.spark.decode import Rows, make_batch
from pyritemq.spark.errors import DataLossError, StoreReadError
from pyritemq.spark.gather import AnyArray, Bytes, Positions
from pyritemq.spark.queues import LIGHT_QUEUE, QueueRange
from pyritemq.spark.record_heads import BadRowError, read_heads
from pyritemq.spark.store_files import QueueFiles, StoreFile, StoreFolder
from pyritemq.storage.consume_queue import BLANK_SIZE

BATCH_ROWS: Final = 8192  # ours: at 576 bytes a row, 5 MB: what decodes quickest
BATCH_BYTES: Final = 8 << 20
MAP_BYTES: Final = 64 << 20  # ours: mapped pages count as the worker's memory
BLOCK_UNITS: Final = 1 << 16  # 1.3 MB read from a ConsumeQueue at once

_COLUMNS: Final = ("phy", "size", "offset", "which")


@dataclass(slots=True)
class _Cursor:
    """How far a range has been read, and the block of units that was read ahead."""

    which: int
    range: QueueRange
    files: QueueFiles
    next_offset: int
    block: AnyArray
    taken: int = 0

    def fill(self) -> bool:
        """Have a unit at hand; False at the range's end."""
        if self.taken < len(self.block):
            return True
        if self.next_offset >= self.range.end:
            return False
        count = min(BLOCK_UNITS, self.range.end - self.next_offset)
        self.block = self.files.units(self.next_offset, count)
        self.taken = 0
        return len(self.block) > 0


class StoreReader:
    """Reads partitions of one store."""

    def __init__(
        self,
        store: StoreFolder,
        columns: tuple[str, ...],
        *,
        inflate: bool,
        fail_on_data_loss: bool,
    ) -> None:
        self._store = store
        self._columns = columns
        self._inflate = inflate
        self._fail = fail_on_data_loss

    def read(self, ranges: list[QueueRange]) -> Iterator[pa.RecordBatch]:
        """Raises StoreReadError naming file and position, and DataLossError."""
        cursors = [
            _Cursor(
                which, each, self._queue(each), each.start, np.empty(0, dtype=[("size", ">i4")])
            )
            for which, each in enumerate(ranges)
        ]
        topics = pa.array([each.key.topic for each in ranges], pa.string())
        while (file := self._next_file(cursors)) is not None:
            units = self._take(cursors, file)
            if len(units["phy"]):
                yield from self._read_file(file, units, ranges, topics)

    def _queue(self, each: QueueRange) -> QueueFiles:
        return self._store.queue(each.key.topic, each.key.queue_id)

    # -- which file, and which units of it ----------------------------------------------------

    def _next_file(self, cursors: list[_Cursor]) -> StoreFile | None:
        """The CommitLog file of the first record that is still to be read."""
        while True:
            lowest = self._lowest(cursors)
            if lowest is None:
                return None
            files = self._store.log_files()
            for file in files:
                if lowest < file.end_offset:
                    if lowest >= file.from_offset:
                        return file
                    self._expire(cursors, file.from_offset)
                    break
            else:
                end = files[-1].end_offset if files else 0
                raise StoreReadError(
                    f"the CommitLog in {self._store.commit_log_dir} ends at {end}, but a queue "
                    f"names a message at {lowest}"
                )

    def _lowest(self, cursors: list[_Cursor]) -> int | None:
        lowest: int | None = None
        for cursor in cursors:
            while True:
                if not cursor.fill():
                    if cursor.next_offset < cursor.range.end:
                        self._lost(cursor.range, cursor.next_offset, cursor.range.end)
                        cursor.next_offset = cursor.range.end
                    break
                unit = cursor.block[cursor.taken]
                if 0 < int(unit["size"]) != BLANK_SIZE:
                    phy = int(unit["phy_offset"])
                    lowest = phy if lowest is None else min(lowest, phy)
                    break
                self._skip_blanks(cursor)
        return lowest

    def _skip_blanks(self, cursor: _Cursor) -> None:
        sizes = cursor.block["size"][cursor.taken :]
        real = np.flatnonzero((sizes > 0) & (sizes != BLANK_SIZE))
        count = int(real[0]) if len(real) else len(sizes)
        self._lost(cursor.range, cursor.next_offset, cursor.next_offset + count)
        cursor.taken += count
        cursor.next_offset += count

    def _expire(self, cursors: list[_Cursor], min_phy_offset: int) -> None:
        """Pass over units whose records have expired since the query was planned."""
        for cursor in cursors:
            while cursor.fill():
                phys = cursor.block["phy_offset"][cursor.taken :]
                gone = int(np.searchsorted(phys, min_phy_offset))
                if gone == 0:
                    break
                self._lost(cursor.range, cursor.next_offset, cursor.next_offset + gone)
                cursor.taken += gone
                cursor.next_offset += gone

    def _lost(self, each: QueueRange, start: int, end: int) -> None:
        if self._fail:
            raise DataLossError(
                f"messages {start} to {end - 1} of {each.key} are gone from {self._store.root}: "
                "they expired while they were read (failOnDataLoss=false passes over them)"
            )

    def _take(self, cursors: list[_Cursor], file: StoreFile) -> dict[str, AnyArray]:
        """All units of the file that the ranges hold, ordered by where their records lie."""
        parts: list[tuple[AnyArray, ...]] = []
        for cursor in cursors:
            while cursor.fill():
                units = cursor.block[cursor.taken :]
                inside = _real_prefix(units, file)
                if inside:
                    taken = units[:inside]
                    offsets = np.arange(cursor.next_offset, cursor.next_offset + inside)
                    which = np.full(inside, cursor.which, np.int32)
                    parts.append(
                        (
                            taken["phy_offset"].astype(np.int64),
                            taken["size"].astype(np.int64),
                            offsets,
                            which,
                        )
                    )
                    cursor.taken += inside
                    cursor.next_offset += inside
                if inside < len(units):
                    break
        joined = [np.concatenate(column) for column in zip(*parts, strict=True)]
        order = np.argsort(joined[0], kind="stable")
        return {name: joined[at][order] for at, name in enumerate(_COLUMNS)}

    # -- records ------------------------------------------------------------------------------

    def _read_file(
        self,
        file: StoreFile,
        units: dict[str, AnyArray],
        ranges: list[QueueRange],
        topics: pa.Array,
    ) -> Iterator[pa.RecordBatch]:
        try:
            fd = os.open(file.path, os.O_RDONLY)
        except FileNotFoundError:
            self._file_lost(file, units, ranges)
            return
        try:
            size = os.fstat(fd).st_size
            for start, end in _windows(units["phy"], units["size"]):
                window = {name: column[start:end] for name, column in units.items()}
                yield from self._read_window(fd, size, file, window, ranges, topics)
        finally:
            os.close(fd)

    def _file_lost(
        self, file: StoreFile, units: dict[str, AnyArray], ranges: list[QueueRange]
    ) -> None:
        for which in np.unique(units["which"]).tolist():
            offsets = units["offset"][units["which"] == which]
            self._lost(ranges[which], int(offsets[0]), int(offsets[-1]) + 1)

    def _read_window(
        self,
        fd: int,
        file_size: int,
        file: StoreFile,
        units: dict[str, AnyArray],
        ranges: list[QueueRange],
        topics: pa.Array,
    ) -> Iterator[pa.RecordBatch]:
        first = int(units["phy"][0]) - file.from_offset
        base = first - first % mmap.ALLOCATIONGRANULARITY
        end = int((units["phy"] + units["size"]).max()) - file.from_offset
        if end > file_size:
            bad = int(np.argmax(units["phy"] + units["size"] > file.from_offset + file_size))
            self._damaged(file, int(units["phy"][bad]), "the file ends within the record")
        flags = mmap.MAP_SHARED
        if int(units["size"].sum()) * 2 > end - base:  # most pages are wanted: map them at once
            flags |= mmap.MAP_POPULATE
        mapping = mmap.mmap(fd, end - base, flags=flags, prot=mmap.PROT_READ, offset=base)
        data = np.frombuffer(mapping, np.uint8)
        for start, stop in _batches(units["size"]):
            rows = {name: column[start:stop] for name, column in units.items()}
            yield self._decode(data, file.from_offset + base, file, rows, ranges, topics)

    def _decode(
        self,
        data: Bytes,
        base: int,
        file: StoreFile,
        units: dict[str, AnyArray],
        ranges: list[QueueRange],
        topics: pa.Array,
    ) -> pa.RecordBatch:
        try:
            heads = read_heads(data, units["phy"] - base, units["size"], base)
            _check_owner(
                heads["queue_id"], heads["queue_offset"], heads.topic_length, units, ranges
            )
            rows = Rows(
                data,
                heads,
                topics.take(pa.array(units["which"])),
                self._store.broker_name,
                units["offset"],
                self._inflate,
            )
            return make_batch(rows, self._columns)
        except BadRowError as bad:
            self._damaged(file, int(units["phy"][bad.row]), bad.reason)
            raise  # not reached

    def _damaged(self, file: StoreFile, phy_offset: int, reason: str) -> None:
        raise StoreReadError(
            f"the file {file.path} is damaged at position {phy_offset - file.from_offset} "
            f"(CommitLog offset {phy_offset}): {reason}"
        )


def _real_prefix(units: AnyArray, file: StoreFile) -> int:
    """How many units at the beginning are of this file and no blanks."""
    sizes, phys = units["size"], units["phy_offset"]
    other = (sizes <= 0) | (sizes == BLANK_SIZE) | (phys >= file.end_offset)
    other |= phys < file.from_offset
    return int(other.argmax()) if other.any() else len(units)


def _check_owner(
    queue_ids: AnyArray,
    queue_offsets: AnyArray,
    topic_lengths: Positions,
    units: dict[str, AnyArray],
    ranges: list[QueueRange],
) -> None:
    """The records are of the queues that name them; light queues name records of others."""
    light = np.array([each.key.topic.startswith(LIGHT_QUEUE) for each in ranges])
    ids = np.array([each.key.queue_id for each in ranges])
    lengths = np.array([len(each.key.topic.encode()) for each in ranges])
    which = units["which"]
    wrong: npt.NDArray[np.bool_] = (
        (queue_ids != ids[which])
        | (queue_offsets != units["offset"])
        | (topic_lengths != lengths[which])
    ) & ~light[which]
    if wrong.any():
        row = int(wrong.argmax())
        key = ranges[int(which[row])].key
        raise BadRowError(row, f"the record is not message {int(units['offset'][row])} of {key}")


def _windows(phys: AnyArray, sizes: AnyArray) -> Iterator[tuple[int, int]]:
    """Runs of rows that span at most MAP_BYTES of the file, or are one batch."""
    start = 0
    while start < len(phys):
        span = int(np.searchsorted(phys, int(phys[start]) + MAP_BYTES))
        end = max(span, min(start + BATCH_ROWS, len(phys)) if _is_sparse(phys, start) else span)
        end = max(end, start + 1)
        yield start, end
        start = end


def _is_sparse(phys: AnyArray, start: int) -> bool:
    """So few of the log's records are wanted that a mapping of MAP_BYTES holds no whole batch."""
    last = min(start + BATCH_ROWS, len(phys)) - 1
    return int(phys[last]) - int(phys[start]) > MAP_BYTES


def _batches(sizes: AnyArray) -> Iterator[tuple[int, int]]:
    """Runs of rows of at most BATCH_ROWS and BATCH_BYTES, and at least one row."""
    total = np.cumsum(sizes)
    start = done = 0
    while start < len(sizes):
        fits = int(np.searchsorted(total, done + BATCH_BYTES, side="right"))
        end = min(max(fits, start + 1), start + BATCH_ROWS)
        yield start, end
        done = int(total[end - 1])
        start = end
