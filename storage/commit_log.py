"""The CommitLog: every message of every topic, one record after the other, in files of 1 GiB.

One writer, the send lane: append() puts bytes behind the end, publish() makes them visible. Readers (any
lane) see bytes only below max_offset, which is set after the bytes are in the file: the writer first writes, then
replaces one integer. The mapping shows the same pages that the write filled, so no reader can see less than max_offset says.
"""

from pyritemq.storage.config import StoreConfig
from pyritemq.storage.disk import Disk
from pyritemq.storage.mapped_file import MappedFile
from pyritemq.storage.mapped_file_queue import MappedFileQueue
from pyritemq.storage.record_codec import BLANK_MIN, pack_blank, store_timestamp_at

_NOTHING = memoryview(b"")


class CommitLog:
    """Files, the published end, and how far the disk has it."""

    __slots__ = ("_end", "files", "flushed_where", "last_store_timestamp", "max_offset")

    def __init__(self, disk: Disk, config: StoreConfig) -> None:
        self.files = MappedFileQueue(
            disk, config.commit_log_dir, file_size=config.commit_log_file_size
        )
        self.max_offset = 0  # published: bytes below it are complete
        self.flushed_where = 0  # durable: bytes below it survive power loss
        self.last_store_timestamp = 0  # of the last published record
        self._end = 0  # the writer's own end, ahead of max_offset within a batch

    @property
    def min_offset(self) -> int:
        return self.files.min_offset

    # -- the writer ---------------------------------------------------------------------------

    def tail(self) -> tuple[MappedFile, int]:
        """The file to append to and the position in it."""
        file = self.files.find(self._end) or self.files.roll(self._end)
        return file, self._end - file.from_offset

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

    def publish(self, store_timestamp: int) -> None:
        self.last_store_timestamp = store_timestamp
        self.max_offset = self._end

    def roll_back(self) -> None:
        """Give up what was appended since the last publish, after a failed write."""
        self._end = self.max_offset
        file = self.files.find(self._end)
        if file is not None:
            file.zero_from(self._end - file.from_offset)

    def sync_appended(self) -> None:
        """Make all that the writer appended durable, before it is published (synchronous flush)."""
        self._sync_to(self._end)

    # -- the flusher --------------------------------------------------------------------------

    def flush(self) -> int:
        """Make durable what was published when it began; returns that offset. Any one thread at a time."""
        target = self.max_offset
        self._sync_to(target)
        return target

    def _sync_to(self, target: int) -> None:
        flushed = self.flushed_where
        if target <= flushed:
            return
        for file in self.files.files:
            if file.end_offset > flushed and file.from_offset < target:
                file.sync()
        self.flushed_where = target

    # -- readers ------------------------------------------------------------------------------

    def slice(self, phy_offset: int, size: int) -> memoryview | None:
        """The bytes from phy_offset on, if they are all there and lie in one file."""
        file = self.files.find(phy_offset)
        end = phy_offset + size
        if file is None or phy_offset < 0 or end > self.max_offset or end > file.end_offset:
            return None
        position = phy_offset - file.from_offset
        return file.view[position : position + size]

    def view(self, start: int, end: int) -> memoryview:
        """The bytes of records that were found below max_offset and above min_offset.

        A file that expired since then is no longer in the tuple: then the slice is empty, and the reader sends
        fewer records, as if it had come a moment later.
        """
        file = self.files.find(start)
        if file is None:
            return _NOTHING
        return file.view[start - file.from_offset : end - file.from_offset]

    def store_timestamp(self, phy_offset: int, size: int) -> int:
        """Store time of a record, or -1: CommitLog.pickupStoreTimestamp."""
        if phy_offset < self.min_offset or size <= 0:
            return -1
        record = self.slice(phy_offset, size)
        return -1 if record is None else store_timestamp_at(record)

    # -- recovery -----------------------------------------------------------------------------

    def reset(self, end: int, *, last_store_timestamp: int) -> None:
        """Recovery found the end of the good records: append from here."""
        self._end = self.max_offset = self.flushed_where = end
        self.last_store_timestamp = last_store_timestamp
