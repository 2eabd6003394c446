"""How far a store may be read: up to where recovery would accept it.

A clean store is good to its end. While a server runs, and after it was killed, the file `abort` is
there: then what follows the checkpoint is checked record by record, CRC included, and the first one
that does not check is the end; it may be half written, or what a power loss left. What was checked
once is not checked again, so a stream pays for new records only (about 1 µs each).
"""

import mmap
from itertools import pairwise
from struct import Struct
from typing import Final
from zlib import crc32

import numpy as np

from pyritemq.protocol.record import MAGIC_BLANK, MAGIC_V1, MAGIC_V2
from pyritemq.spark.errors import StoreReadError
from pyritemq.spark.record_heads import RECORD_MIN, BadRowError, read_heads
from pyritemq.spark.store_files import StoreFile, StoreFolder
from pyritemq.storage.checkpoint import Checkpoint, load_checkpoint
from pyritemq.storage.disk import RealDisk
from pyritemq.storage.record_codec import CheckedRecord, check_record

_HEAD: Final = Struct(">ii")
_RUN: Final = 20_000  # records checked at a time: some MB of numpy arrays


class SafeEnd:
    """The safe end of one store; keeps what it has checked."""

    def __init__(self, store: StoreFolder) -> None:
        self._store = store
        self._checked_to = -1

    def find(self) -> int:
        """A CommitLog offset below which every record is whole. Raises StoreReadError."""
        files = self._store.log_files()
        if not files:
            return 0
        _check_adjacent(files)
        if not (self._store.root / "abort").exists():
            return files[-1].end_offset
        position = max(self._checked_to, files[0].from_offset, self._start(files))
        self._checked_to = self._scan(files, position)
        return self._checked_to

    def _start(self, files: list[StoreFile]) -> int:
        """Where recovery would start, or a place before it: see storage/recovery.py."""
        if self._checked_to >= files[0].from_offset:
            return self._checked_to
        checkpoint = load_checkpoint(RealDisk(), self._store.root / "checkpoint")
        named = self._record_at(files, checkpoint.logics_physical_offset)
        if named is not None and _was_synced(named, checkpoint):
            return named.phy_offset
        for file in reversed(files):
            first = self._record_at(files, file.from_offset)
            if first is not None and first.store_timestamp <= checkpoint.min_timestamp:
                return file.from_offset
        return files[0].from_offset

    def _record_at(self, files: list[StoreFile], phy_offset: int) -> CheckedRecord | None:
        for file in files:
            if file.from_offset <= phy_offset < file.end_offset:
                data = _map(file)
                if data is None:
                    return None
                found = check_record(
                    memoryview(data),
                    phy_offset - file.from_offset,
                    phy_offset=phy_offset,
                    check_crc=True,
                )
                return found if isinstance(found, CheckedRecord) else None
        return None

    def _scan(self, files: list[StoreFile], offset: int) -> int:
        for number, file in enumerate(files):
            if offset >= file.end_offset:
                continue
            data = _map(file)
            if data is None:  # expired meanwhile
                offset = file.end_offset
                continue
            position, reason, ended = _scan_file(data, offset - file.from_offset, file)
            offset = file.from_offset + position
            if ended:
                offset = file.end_offset
                continue
            if reason and self._goes_on(files[number + 1 :]):
                raise StoreReadError(
                    f"the file {file.path} is damaged at position {position} ({reason}), but "
                    "good files follow it; `pyritemq store repair` can mend it"
                )
            return offset
        return offset

    def _goes_on(self, files: list[StoreFile]) -> bool:
        return bool(files) and self._record_at(files, files[0].from_offset) is not None


def _was_synced(record: CheckedRecord, checkpoint: Checkpoint) -> bool:
    time = record.store_timestamp
    return time == checkpoint.logics_msg_timestamp and time <= checkpoint.physic_msg_timestamp


def _check_adjacent(files: list[StoreFile]) -> None:
    for before, after in pairwise(files):
        if before.end_offset == after.from_offset:
            continue
        if before.size < files[0].size:
            raise StoreReadError(
                f"the file {before.path} has {before.size} bytes, but the next one starts at "
                f"{after.from_offset}: it was cut at position {before.size}"
            )
        raise StoreReadError(f"a file is missing between {before.path} and {after.path}")


def _map(file: StoreFile) -> mmap.mmap | None:
    try:
        with file.path.open("rb") as opened:
            return mmap.mmap(opened.fileno(), file.size, access=mmap.ACCESS_READ)
    except FileNotFoundError:
        return None


def _scan_file(data: mmap.mmap, position: int, file: StoreFile) -> tuple[int, str, bool]:
    """(where the good records end, why, whether the file's filler was reached)."""
    while True:
        run, stop = _chain(data, position)
        if run:
            good, reason = _check_run(data, run, file.from_offset)
            if reason:
                return good, reason, False
            position = good
        if stop is not None:
            return position, stop, stop == "filler"


def _chain(data: mmap.mmap, position: int) -> tuple[list[tuple[int, int]], str | None]:
    """Position and size of the records that follow each other, and what stopped the walk."""
    run: list[tuple[int, int]] = []
    end = len(data)
    while len(run) < _RUN:
        if position + _HEAD.size > end:
            return run, "filler" if position == end else "the file ends within a record"
        size, magic = _HEAD.unpack_from(data, position)
        if magic == MAGIC_BLANK:
            return run, "filler"
        if magic not in (MAGIC_V1, MAGIC_V2):
            return run, "" if size == magic == 0 else f"magic code {magic & 0xFFFFFFFF:#x}"
        if size < RECORD_MIN or position + size > end:
            return run, f"a record of {size} bytes does not fit into the file"
        run.append((position, size))
        position += size
    return run, None


def _check_run(data: mmap.mmap, run: list[tuple[int, int]], base: int) -> tuple[int, str]:
    """(end of the good records, reason if it is not the end of the run)."""
    whole = np.array(run, np.int64)
    try:
        heads = read_heads(np.frombuffer(data, np.uint8), whole[:, 0], whole[:, 1], base)
    except BadRowError as bad:
        if bad.row == 0:
            return run[0][0], bad.reason
        good, reason = _check_run(data, run[: bad.row], base)
        return good, reason or bad.reason
    view = memoryview(data)
    lengths = heads["body_length"].tolist()
    crcs = heads["body_crc"].tolist()
    for row, at in enumerate(heads.body_at.tolist()):
        body = view[at : at + lengths[row]]
        if lengths[row] and crc32(body) & 0x7FFFFFFF != crcs[row]:
            return run[row][0], "the body does not match its CRC"
    return run[-1][0] + run[-1][1], ""
