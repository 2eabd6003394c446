"""The CommitLog: every message of every topic, one record after the other, in files of 1 GiB.

One writer, the send lane: append() puts bytes behind the end, publish() makes them visible. Readers
on any lane see bytes only below max_offset, which is replaced after the bytes are in the file; a
mapping shows the same pages that a write filled, so a reader finds all that max_offset promises.
"""

import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from pyritemq.storage.config import StoreConfig
from pyritemq.storage.disk import Disk
from pyritemq.storage.mapped_file import MappedFile
from pyritemq.storage.mapped_file_queue import MappedFileQueue
from pyritemq.storage.record_codec import (
    BLANK_MIN,
    HEAD_V4,
    CheckedRecord,
    check_record,
    pack_blank,
    store_timestamp_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable

_NOTHING = memoryview(b"")


class LastRecord(NamedTuple):
    """The last record that is published together with its unit."""

    phy_offset: int
    store_timestamp: int


class SyncCounts:
    """How often the CommitLog was synced and how long that took; flusher and send lane count."""

    __slots__ = ("_lock", "elapsed_ms", "times")

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.times = 0
        self.elapsed_ms = 0

    def add(self, elapsed_ms: int) -> None:
        with self._lock:
            self.times += 1
            self.elapsed_ms += elapsed_ms


class CommitLog:
    """The files, the published end, and how far the disk has it."""

    __slots__ = ("_end", "files", "flushed_where", "last", "max_offset", "now_ms", "syncs")

    def __init__(self, disk: Disk, config: StoreConfig) -> None:
        self.files = MappedFileQueue(
            disk,
            config.commit_log_write_dirs,
            file_size=config.commit_log_file_size,
            read_only=config.commit_log_read_only_paths,
        )
        self.max_offset = 0  # published: bytes below it are complete
        self.flushed_where = 0  # durable: bytes below it survive power loss; never too high
        self.last = LastRecord(0, 0)  # replaced after the queues' ends: what it names is derived
        self.syncs = SyncCounts()
        self.now_ms: Callable[[], int] = lambda: 0  # a store sets its own
        self._end = 0  # the writer's own end, ahead of max_offset within a batch

    @property
    def min_offset(self) -> int:
        return self.files.min_offset

    # -- the writer ---------------------------------------------------------------------------

    def tail(self) -> tuple[MappedFile, int]:
        """The file to append to and the offset of the end."""
        file = self.files.find(self._end) or self.files.roll(self._end)
        return file, self._end

    def append(self, file: MappedFile, data: bytes) -> None:
        file.write(self._end - file.from_offset, data)
        self._end += len(data)

    def roll(self, file: MappedFile) -> MappedFile:
        """End the file with a filler and go on in the next one."""
        blank = file.end_offset - self._end
        assert blank >= BLANK_MIN, "append left no room for the filler"
        file.write(self._end - file.from_offset, pack_blank(blank))
        self._end = file.end_offset
        return self.files.roll(self._end)

    def sync_appended(self) -> None:
        """Make all that was appended durable before it is published (synchronous flush)."""
        self._sync_to(self._end)

    def publish(self) -> None:
        self.max_offset = self._end

    def roll_back(self) -> None:
        """Give up what was appended since the last publish, after a failed write."""
        self._end = self.max_offset
        file = self.files.find(self._end)
        if file is not None:
            file.zero_from(self._end - file.from_offset)

    # -- the flusher --------------------------------------------------------------------------

    def flush(self) -> None:
        """Make durable what is published now."""
        self._sync_to(self.max_offset)

    def _sync_to(self, target: int) -> None:
        """Flusher and send lane may both come here; the lower end that wins costs one more sync."""
        flushed = self.flushed_where
        if target <= flushed:
            return
        started_ms = self.now_ms()
        for file in self.files.files:
            if file.end_offset > flushed and file.from_offset < target:
                file.sync()
        self.flushed_where = target
        self.syncs.add(max(0, self.now_ms() - started_ms))

    # -- readers ------------------------------------------------------------------------------

    def view(self, start: int, end: int) -> memoryview:
        """Bytes of one file that were found to lie between min_offset and max_offset.

        If the file expired since then, the slice is empty, and the reader gets fewer records, as if
        it had come a moment later.
        """
        file = self.files.find(start)
        if file is None:
            return _NOTHING
        return file.view[start - file.from_offset : end - file.from_offset]

    def read(self, start: int, end: int) -> memoryview:
        """A copy of what view() gives, by a system call that does not hold the GIL meanwhile.

        For old records that Python itself looks at: a page of a mapping that is not in memory would
        be waited for with the GIL held. Slices that only go to a socket need none of this, as it is
        the kernel that touches them then.
        """
        file = self.files.find(start)
        if file is None:
            return _NOTHING
        return memoryview(file.read(start - file.from_offset, end - start))

    def views(self, starts: Sequence[int], ends: Sequence[int]) -> list[memoryview]:
        """view() of each pair, cheaper when they lie in one file, as they nearly always do."""
        if not starts:
            return []
        file = self.files.find(starts[0])
        if file is None or ends[-1] > file.end_offset:
            return [self.view(start, end) for start, end in zip(starts, ends, strict=True)]
        view = file.view
        base = file.from_offset
        return [view[start - base : end - base] for start, end in zip(starts, ends, strict=True)]

    def record(self, phy_offset: int) -> memoryview | None:
        """The bytes of the record at the offset, or None if none can start there.

        Java's selectOneMessageByOffset trusts the first four bytes. The offset may come from a
        client's message id: here the record must have a magic code, say that it lies at this very
        offset, and be filled exactly by its parts.
        """
        file = self.files.find(phy_offset)
        if file is None:
            return None
        position = phy_offset - file.from_offset
        found = check_record(file.view, position, phy_offset=phy_offset, check_crc=False)
        if not isinstance(found, CheckedRecord) or phy_offset + found.size > self.max_offset:
            return None
        return file.view[position : position + found.size]

    def store_timestamp(self, phy_offset: int, size: int) -> int:
        """Store time of a record, or -1: CommitLog.pickupStoreTimestamp."""
        if phy_offset < self.min_offset or phy_offset + size > self.max_offset:
            return -1
        record = self.view(phy_offset, phy_offset + size)
        return store_timestamp_of(record) if len(record) >= HEAD_V4.size else -1

    # -- recovery -----------------------------------------------------------------------------

    def reset(self, end: int, *, flushed_where: int, last: LastRecord) -> None:
        """Recovery found the end of the good records: append from here."""
        self._end = self.max_offset = end
        self.flushed_where = flushed_where
        self.last = last
