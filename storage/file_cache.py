"""A bounded set of open files, the least recently used one dropped first: all queues share them.

Used by the flusher and by the pull lane's threads, under one lock that is held for look-ups and for
opening, not for reads and writes. A dropped file is closed when its last user lets go of it, so
nobody loses a descriptor in mid-read.
"""

import threading
from collections import OrderedDict
from pathlib import Path

from pyritemq.storage.disk import Disk, DiskFile
from pyritemq.storage.errors import StoreCorruptError

OPEN_FILES_MAX = 256  # ours: a quarter of the usual 1024 descriptors a process


class FileCache:
    """Open files by path."""

    def __init__(self, disk: Disk, *, capacity: int = OPEN_FILES_MAX) -> None:
        self._disk = disk
        self._capacity = capacity
        self._files: OrderedDict[Path, DiskFile] = OrderedDict()
        self._lock = threading.Lock()

    def open(self, path: Path) -> DiskFile:
        """A file that must be there. Raises StoreCorruptError if it is not."""
        with self._lock:
            try:
                return self._touch(path) or self._add(self._disk.open(path))
            except FileNotFoundError as error:
                raise StoreCorruptError(f"the file {path} is missing") from error

    def open_sized(self, path: Path, size: int) -> DiskFile:
        """A file to write to, made with this size (a hole) unless it is there."""
        with self._lock:
            return self._touch(path) or self._add(self._make(path, size))

    def remove(self, path: Path) -> None:
        """Delete the file; a reader that has it open may finish."""
        with self._lock:
            self._files.pop(path, None)
            self._disk.remove(path)

    def clear(self) -> None:
        with self._lock:
            self._files.clear()

    def __len__(self) -> int:
        return len(self._files)

    def _touch(self, path: Path) -> DiskFile | None:
        file = self._files.get(path)
        if file is not None:
            self._files.move_to_end(path)
        return file

    def _add(self, file: DiskFile) -> DiskFile:
        self._files[file.path] = file
        if len(self._files) > self._capacity:
            self._files.popitem(last=False)
        return file

    def _make(self, path: Path, size: int) -> DiskFile:
        try:
            file = self._disk.open(path, create=True)
        except FileNotFoundError:
            self._disk.make_dirs(path.parent)
            file = self._disk.open(path, create=True)
        if file.size() != size:
            file.resize(size)
        return file
