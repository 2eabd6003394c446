"""The folder `index`: index files in the order of their making, named by the time they were made.

MessageIndex owns it: its builder puts, queries look up. The tuple of files is replaced whole, so a
query goes through the files that were there when it began; a deleted one stays readable to it.
"""

import logging
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from pyritemq.storage.disk import Disk
from pyritemq.storage.index_file import Entry, IndexFile, index_file_size

_log = logging.getLogger(__name__)


class FoundOffsets(NamedTuple):
    """Offsets under a key, newest first, and how far the index had come."""

    offsets: list[int]
    last_update_timestamp: int
    last_update_phy_offset: int


class IndexTable:
    """All index files; the last one is written to."""

    def __init__(
        self, disk: Disk, folder: Path, *, slots: int, items: int, now_ms: Callable[[], int]
    ) -> None:
        self._disk = disk
        self._folder = folder
        self._slots = slots
        self._items = items
        self._now_ms = now_ms
        self.files: tuple[IndexFile, ...] = ()

    def load(self, *, synced_until: int | None, log_end: int) -> None:
        """Open the files that can be trusted and delete the others: they are built anew.

        synced_until is the checkpoint's index time after a crash, None after a clean stop. As in
        Java, a file with later entries goes after a crash; here also one that is not of the
        configured size, is empty, or knows of records behind the CommitLog's end.
        """
        size = index_file_size(slots=self._slots, items=self._items)
        good: list[IndexFile] = []
        for name in self._disk.names(self._folder):
            path = self._folder / name
            if not name.isdecimal():  # Java passes over them too
                continue
            file = self._disk.open(path)
            loaded = None
            if file.size() == size:
                loaded = IndexFile(file, slots=self._slots, items=self._items)
            if loaded is None or not _is_trusted(loaded, synced_until, log_end):
                _log.warning("index file is built anew file=%s", path)
                self._disk.remove(path)
                continue
            good.append(loaded)
        self.files = tuple(good)

    def drop(self) -> None:
        """Delete all files: they do not belong to this CommitLog."""
        for file in self.files:
            self._disk.remove(file.path)
        self.files = ()

    @property
    def end_phy_offset(self) -> int:
        """Of the last record that has an entry; -1 if none has."""
        return self.files[-1].header.end_phy_offset if self.files else -1

    @property
    def end_timestamp(self) -> int:
        return self.files[-1].header.end_timestamp if self.files else 0

    # -- the builder --------------------------------------------------------------------------

    def put(self, entries: Sequence[Entry]) -> list[IndexFile]:
        """Add entries, in new files where old ones are full; returns the files now full."""
        filled = []
        while entries:
            last = self.files[-1] if self.files else None
            if last is None or last.room <= 0:
                last = self._add(last)
            room = last.room
            last.put(entries[:room])
            entries = entries[room:]
            if last.room <= 0:
                filled.append(last)
        return filled

    def _add(self, before: IndexFile | None) -> IndexFile:
        self._disk.make_dirs(self._folder)
        file = IndexFile.create(
            self._disk, self._next_path(), slots=self._slots, items=self._items, before=before
        )
        self.files = (*self.files, file)
        return file

    def _next_path(self) -> Path:
        """Named by local time, as UtilAll.timeMillisToHumanString writes it; never one in use."""
        now = self._now_ms()
        moment = datetime.fromtimestamp(now // 1000).astimezone()
        number = int(f"{moment:%Y%m%d%H%M%S}{now % 1000:03d}")
        if self.files:  # the clock was set back, or two files were made within a millisecond
            number = max(number, int(self.files[-1].path.name) + 1)
        return self._folder / str(number)

    def delete_expired(self, min_phy_offset: int) -> int:
        """Delete files all of whose records are gone, but for the last file; how many that were."""
        files = self.files
        count = 0
        while count < len(files) - 1 and files[count].header.end_phy_offset < min_phy_offset:
            count += 1
        self.files = files[count:]
        for file in files[:count]:
            self._disk.remove(file.path)
        return count

    def close(self) -> None:
        self.files = ()

    # -- queries ------------------------------------------------------------------------------

    def find(self, key_hash: int, count_max: int, *, begin: int, end: int) -> FoundOffsets:
        """IndexService.queryOffset: from the newest file back, until there are enough."""
        files = self.files
        if not files:
            return FoundOffsets([], 0, 0)
        found: list[int] = []
        for file in reversed(files):
            if file.is_time_matched(begin, end):
                file.select(found, key_hash, count_max, begin=begin, end=end)
            if file.header.begin_timestamp < begin or len(found) >= count_max:
                break
        last = files[-1].header
        return FoundOffsets(found, last.end_timestamp, last.end_phy_offset)


def _is_trusted(file: IndexFile, synced_until: int | None, log_end: int) -> bool:
    header = file.header
    if header.index_count <= 1 or header.end_phy_offset >= log_end:
        return False
    return synced_until is None or header.end_timestamp <= synced_until
