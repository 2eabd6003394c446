"""A store folder as a reader sees it: files listed and read, nothing locked and nothing written.

A server may be writing the folder meanwhile, and may delete its oldest files. So every look is a
fresh one, and a file that is gone between two looks is an answer, not an accident.
"""

import os
from dataclasses import dataclass, field
from pathlib import Path
from struct import Struct
from typing import Any, Final

import numpy as np

from pyritemq.protocol.record import MAGIC_BLANK, MAGIC_V1, MAGIC_V2
from pyritemq.spark.errors import StoreReadError
from pyritemq.spark.gather import AnyArray
from pyritemq.storage.consume_queue import BLANK_UNIT, UNIT, UNIT_SIZE, first_live
from pyritemq.storage.mapped_file import is_file_name

UNITS: Final[np.dtype[Any]] = np.dtype([("phy_offset", ">i8"), ("size", ">i4"), ("code", ">i8")])
_SIZE_AND_MAGIC: Final = Struct(">ii")
_MAGICS: Final = frozenset({MAGIC_V1, MAGIC_V2, MAGIC_BLANK})


@dataclass(frozen=True, slots=True)
class StoreFile:
    """A file named by the offset of its first byte."""

    path: Path
    from_offset: int
    size: int

    @property
    def end_offset(self) -> int:
        return self.from_offset + self.size


def list_files(folder: Path) -> list[StoreFile]:
    """The files of a CommitLog or ConsumeQueue in order; an empty last one is passed over."""
    files: list[StoreFile] = []
    try:
        names = sorted(name for name in os.listdir(folder) if is_file_name(name))
    except (FileNotFoundError, NotADirectoryError):
        return []
    for name in names:
        path = folder / name
        try:
            size = path.stat().st_size
        except FileNotFoundError:  # expired just now
            continue
        if size:
            files.append(StoreFile(path, int(name), size))
    return files


def read_at(path: Path, position: int, size: int) -> bytes:
    """Up to size bytes of a file. Raises FileNotFoundError."""
    fd = os.open(path, os.O_RDONLY)
    try:
        return os.pread(fd, size, position)
    finally:
        os.close(fd)


@dataclass
class StoreFolder:
    """One broker's store."""

    root: Path
    broker_name: str
    commit_log_dir: Path = field(init=False)

    def __post_init__(self) -> None:
        self.commit_log_dir = self.root / "commitlog"

    @property
    def consume_queue_dir(self) -> Path:
        return self.root / "consumequeue"

    def check(self) -> None:
        """Raises StoreReadError with one sentence unless this can be read as a store."""
        if not self.root.is_dir():
            raise StoreReadError(f"the folder {self.root} does not exist")
        if not self.commit_log_dir.is_dir():
            raise StoreReadError(f"{self.root} is no RocketMQ store: it has no folder commitlog")
        if not self.consume_queue_dir.is_dir() and (self.root / "rocksdbstore").is_dir():
            raise StoreReadError(
                f"the store {self.root} keeps its queues in RocksDB (storeType=defaultRocksDB), "
                "which cannot be read from files; read it from its broker with option 'namesrv'"
            )
        files = self.log_files()
        if files:
            _check_first_record(files[0])

    def log_files(self) -> list[StoreFile]:
        return list_files(self.commit_log_dir)

    def min_phy_offset(self) -> int:
        files = self.log_files()
        return files[0].from_offset if files else 0

    def queues(self) -> list[tuple[str, int]]:
        """Every topic and queue id that has a folder."""
        found: list[tuple[str, int]] = []
        for topic in _folder_names(self.consume_queue_dir):
            ids = _folder_names(self.consume_queue_dir / topic)
            found += [(topic, int(name)) for name in ids if name.isdecimal()]
        return sorted(found)

    def queue(self, topic: str, queue_id: int) -> "QueueFiles":
        return QueueFiles(self.consume_queue_dir / topic / str(queue_id))


def _folder_names(folder: Path) -> list[str]:
    try:
        with os.scandir(folder) as entries:
            return [entry.name for entry in entries if entry.is_dir()]
    except (FileNotFoundError, NotADirectoryError):
        return []


def _check_first_record(file: StoreFile) -> None:
    try:
        head = read_at(file.path, 0, _SIZE_AND_MAGIC.size)
    except FileNotFoundError:  # expired between the listing and now
        return
    if len(head) < _SIZE_AND_MAGIC.size or not any(head):
        return
    magic = _SIZE_AND_MAGIC.unpack(head)[1]
    if magic in _MAGICS:
        return
    swapped = int.from_bytes(head[4:8], "little", signed=True)
    what = (
        "its numbers are little-endian: it was not written by a RocketMQ broker"
        if swapped in _MAGICS
        else f"magic code {magic & 0xFFFFFFFF:#010x} belongs to no known message format"
    )
    raise StoreReadError(f"the file {file.path} cannot be read at position 0: {what}")


class QueueFiles:
    """The ConsumeQueue files of one queue. Offsets count messages, 20 bytes each."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.files = list_files(folder)

    def read(self, offset: int, count: int) -> bytes:
        """Up to count units from offset on, all of one file; none if no file holds the offset."""
        position = offset * UNIT_SIZE
        for file in reversed(self.files):
            if file.from_offset <= position < file.end_offset:
                size = min(count * UNIT_SIZE, file.end_offset - position)
                try:
                    data = read_at(file.path, position - file.from_offset, size)
                except FileNotFoundError:
                    return b""
                return data[: len(data) // UNIT_SIZE * UNIT_SIZE]
        return b""

    def units(self, offset: int, count: int) -> AnyArray:
        """As read, as a structured array."""
        return np.frombuffer(self.read(offset, count), UNITS)

    def all_units(self, start: int, end: int) -> AnyArray:
        """Units [start, end) of however many files; they end early where a file is gone."""
        parts: list[AnyArray] = []
        while start < end and len(part := self.units(start, end - start)):
            parts.append(part)
            start += len(part)
        return np.concatenate(parts) if parts else np.empty(0, UNITS)

    def bounds(self, *, min_phy_offset: int, limit: int) -> tuple[int, int]:
        """First and next offset of the messages whose records lie in [min_phy_offset, limit)."""
        end = self._end(limit)
        low = self.files[0].from_offset // UNIT_SIZE if self.files else end
        start = first_live(self._read_or_blank, min(low, end), end, min_phy_offset=min_phy_offset)
        return start, end

    def _end(self, limit: int) -> int:
        for file in reversed(self.files):
            first = file.from_offset // UNIT_SIZE
            end = self._first_not(first, file.end_offset // UNIT_SIZE, limit)
            if end > first or file is self.files[0]:
                return end
        return 0

    def _first_not(self, low: int, high: int, limit: int) -> int:
        """The first unit in [low, high) that is empty or whose record does not end below limit."""
        while low < high:
            middle = (low + high) // 2
            data = self.read(middle, 1)
            phy_offset, size, _ = UNIT.unpack(data) if data else (0, 0, 0)
            if size > 0 and 0 <= phy_offset < limit:
                low = middle + 1
            else:
                high = middle
        return low

    def first_at_or_after(self, phy_offset: int, low: int, high: int) -> int:
        """The first offset in [low, high) whose record lies at or behind phy_offset, else high."""
        if low >= high:
            return high
        return first_live(self._read_or_blank, low, high, min_phy_offset=phy_offset)

    def _read_or_blank(self, offset: int, count: int) -> bytes:
        """A file that has just expired reads as messages that are not there."""
        return self.read(offset, count) or BLANK_UNIT * count
