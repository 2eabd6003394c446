"""A bounded set of open files, the least recently used one dropped first: 50,000 queues share these descriptors.

Used by the flusher and by the pull lane's threads, under one lock that is held for look-ups and for opening, not for reads
and writes. A dropped file is closed when its last user lets go of it, so nobody loses a descriptor in mid-read.
"""

import threading
from collections import OrderedDict
from pathlib import Path

from pyritemq.storage.disk import Disk, DiskFile

OPEN_FILES_MAX = 256  # ours: a quarter of the usual limit of 1024 descriptors a process


class FileCache:
    """Open files by path."""

    def __init__(self, disk: Disk, *, capacity: int = OPEN_FILES_MAX) -> None:
        self._disk = disk
        self._capacity = capacity
        self._files: OrderedDict[Path, DiskFile] = OrderedDict()
        self._lock = threading.Lock()

    def open(self, path: Path, *, size: int) -> DiskFile:
        """The file at path, made with this size if it is not there."""
        with self._lock:
            file = self._files.get(path)
            if file is None:
                file = self._add(path, self._make(path, size))
            else:
                self._files.move_to_end(path)
            return file

    def drop(self, path: Path) -> None:
        with self._lock:
            self._files.pop(path, None)

    def clear(self) -> None:
        with self._lock:
            self._files.clear()

    def __len__(self) -> int:
        return len(self._files)

    def _make(self, path: Path, size: int) -> DiskFile:
        try:
            file = self._disk.open(path, create=True)
        except FileNotFoundError:
            self._disk.make_dirs(path.parent)
            file = self._disk.open(path, create=True)
        if file.size() != size:
            file.resize(size)
        return file

    def _add(self, path: Path, file: DiskFile) -> DiskFile:
        self._files[path] = file
        if len(self._files) > self._capacity:
            self._files.popitem(last=False)
        return file
