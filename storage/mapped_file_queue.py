"""A run of equally large files that together are one address space: the CommitLog's files.

The send lane rolls to the next file; a background thread prepares that file ahead (prepare_next), so that the
roll is only a hand-over. Readers take the tuple of files once and look up in it: it is replaced whole, never changed.
"""

import threading
from pathlib import Path

from pyritemq.storage.disk import Disk
from pyritemq.storage.errors import StoreCorrupt, StoreUnusable
from pyritemq.storage.mapped_file import NAME_DIGITS, MappedFile

PREPARE_AHEAD_FRACTION = 2  # prepare the next file once the last one is half full: ours, not Java's


class MappedFileQueue:
    """The files of one folder in order of their offsets, without gaps."""

    __slots__ = ("_disk", "_folder", "_next", "_prepare_lock", "file_size", "files")

    def __init__(self, disk: Disk, folder: Path, *, file_size: int) -> None:
        self._disk = disk
        self._folder = folder
        self.file_size = file_size
        self.files: tuple[MappedFile, ...] = ()
        self._next: MappedFile | None = None
        self._prepare_lock = threading.Lock()  # a roll may meet a preparation under way

    def load(self) -> None:
        """Open what lies in the folder. Raises StoreUnusable or StoreCorrupt, naming the file."""
        self._disk.make_dirs(self._folder)
        paths = [
            self._folder / name for name in self._disk.names(self._folder) if _is_file_name(name)
        ]
        sizes = [self._disk.file_size(path) for path in paths]
        if sizes and sizes[-1] == 0:  # made but never sized before a crash; Java deletes it too
            self._disk.remove(paths.pop())
            sizes.pop()
        for path, size in zip(paths, sizes, strict=True):
            if size != self.file_size:
                raise StoreUnusable(
                    f"the file {path} has {size} bytes where the configured file size is {self.file_size}"
                )
        files = tuple(MappedFile.load(self._disk, path, size=self.file_size) for path in paths)
        _check_adjacent(files)
        self.files = files

    @property
    def min_offset(self) -> int:
        """Offset of the first byte; 0 without files (Java: -1, which its callers turn to 0)."""
        files = self.files
        return files[0].from_offset if files else 0

    def find(self, offset: int) -> MappedFile | None:
        """The file that holds the offset, if any."""
        files = self.files
        if not files:
            return None
        index = (offset - files[0].from_offset) // self.file_size
        return files[index] if 0 <= index < len(files) else None

    def roll(self, from_offset: int) -> MappedFile:
        """Append the file that starts at from_offset, prepared or made now; send lane only."""
        with self._prepare_lock:
            if self.files and self.files[-1].from_offset == from_offset:
                return self.files[-1]  # rolled before, by a batch that failed afterwards
            file, self._next = self._next, None
            if file is None or file.from_offset != from_offset:
                file = self._create(from_offset)
            self.files = (*self.files, file)
        return file

    def prepare_next(self, max_offset: int) -> bool:
        """Make the next file if the last one is filling up; a background thread calls it. True if made."""
        with self._prepare_lock:
            files = self.files
            if self._next is not None or not files:
                return False
            last = files[-1]
            if max_offset - last.from_offset < self.file_size // PREPARE_AHEAD_FRACTION:
                return False
            self._next = self._create(last.end_offset)
            return True

    def truncate(self, offset: int) -> None:
        """Forget everything from offset on: files behind it are deleted, its own is cut.

        Java leaves the bytes there and only moves its write position. Cut, they can never be taken for
        records that follow a later, shorter append.
        """
        keep = tuple(file for file in self.files if file.from_offset <= offset)
        for file in self.files[len(keep) :]:
            self._disk.remove(file.path)
        self.files = keep
        if keep and offset < keep[-1].end_offset:
            keep[-1].zero_from(offset - keep[-1].from_offset)

    def discard_prepared(self) -> None:
        """Delete a prepared file that was never rolled to, so that a stopped store holds no empty file."""
        with self._prepare_lock:
            if self._next is not None:
                self._disk.remove(self._next.path)
                self._next = None

    def _create(self, from_offset: int) -> MappedFile:
        return MappedFile.create(
            self._disk, self._folder, from_offset=from_offset, size=self.file_size
        )


def _is_file_name(name: str) -> bool:
    return len(name) == NAME_DIGITS and name.isdecimal()


def _check_adjacent(files: tuple[MappedFile, ...]) -> None:
    for before, after in zip(files, files[1:], strict=False):
        if after.from_offset != before.end_offset:
            raise StoreCorrupt(
                f"a file is missing between {before.path} and {after.path}: "
                f"the next one must start at {before.end_offset}"
            )
