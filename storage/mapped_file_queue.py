"""A run of equally large files that together are one address space: the files of the CommitLog.

They may lie in several folders, which usually means on several disks: a new file goes to them in
turn, and not to one that is nearly full while another is not (Java: MultiPathMappedFileQueue).

The send lane rolls to the next file; a background thread prepares that file ahead (prepare_next),
so that the roll is a hand-over. Readers take the tuple of files once and look up in it: it is
replaced whole, never changed.
"""

import threading
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

from pyritemq.storage.disk import Disk
from pyritemq.storage.errors import DiskFullError, StoreCorruptError, StoreUnusableError
from pyritemq.storage.mapped_file import MappedFile, is_file_name

WARM_BYTES = 4 << 20  # ours: written in some milliseconds, for which a roll may have to wait


class MappedFileQueue:
    """The files in the order of their offsets, without gaps."""

    __slots__ = (
        "_disk",
        "_folders",
        "_next",
        "_read_only",
        "_roll_lock",
        "file_size",
        "files",
        "full_folders",
    )

    def __init__(
        self, disk: Disk, folders: Sequence[Path], *, file_size: int, read_only: Sequence[Path] = ()
    ) -> None:
        """New files go to the folders; those in the others are read, and expire."""
        self._disk = disk
        self._folders = sorted(folders, key=str)  # by which Java finds a file's folder as well
        self._read_only = read_only
        self.full_folders: frozenset[Path] = frozenset()  # replaced whole by who looks at disks
        self.file_size = file_size
        self.files: tuple[MappedFile, ...] = ()
        self._next: MappedFile | None = None
        self._roll_lock = threading.Lock()  # a roll may meet a preparation that is under way

    def load(self) -> None:
        """Open what lies in the folders. Raises a StorageError that names the file."""
        if not self._folders:
            raise StoreUnusableError("readOnlyCommitLogStorePaths leaves no folder for new files")
        for folder in self._folders:
            self._disk.make_dirs(folder)
        paths = self._paths()
        files: list[MappedFile] = []
        for path in paths:
            file = self._load_file(path, is_last=path == paths[-1])
            if file is not None:
                files.append(file)
        _check_adjacent(files)
        self.files = tuple(files)

    def _paths(self) -> list[Path]:
        paths: dict[str, Path] = {}
        for folder in dict.fromkeys((*self._folders, *self._read_only)):
            for name in self._disk.names(folder):
                if not is_file_name(name):
                    continue
                if name in paths:
                    raise StoreUnusableError(
                        f"the file {name} lies in {paths[name].parent} and in {folder}: "
                        "only one of the two can be the right one"
                    )
                paths[name] = folder / name
        return [paths[name] for name in sorted(paths)]

    def _load_file(self, path: Path, *, is_last: bool) -> MappedFile | None:
        file = self._disk.open(path)
        size = file.size()
        if size == 0 and is_last:  # made but never sized before a crash; Java deletes it as well
            self._disk.remove(path)
            return None
        if size != self.file_size:
            raise StoreUnusableError(
                f"the file {path} has {size} bytes, but the configured size is {self.file_size}"
            )
        return MappedFile(file, from_offset=int(path.name), size=size)

    @property
    def min_offset(self) -> int:
        """Offset of the first byte; 0 without files (Java: -1, which its callers turn into 0)."""
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
        with self._roll_lock:
            there = self.find(from_offset)
            if there is not None:
                return there  # rolled to by a batch that failed, or made ahead before a stop
            file, self._next = self._next, None
            if file is None or file.from_offset != from_offset:
                file = self._create(from_offset)
            self.files = (*self.files, file)
            return file

    def prepare_next(self, max_offset: int) -> bool:
        """Make the next file once the last one is half full; True if it was made now.

        Half of a file leaves a busy sender seconds; making a sparse file takes milliseconds.
        """
        with self._roll_lock:
            if self._next is not None or not self.files:
                return False
            last = self.files[-1]
            if max_offset - last.from_offset < self.file_size // 2:
                return False
            self._next = self._create(last.end_offset)
            return True

    def warm_next(self) -> None:
        """Write zeroes all over the prepared file: its blocks are there before a message comes.

        A sync then has no blocks to enter in the file system's journal: 9 KB and fdatasync took
        0.27 ms instead of 0.41 (medians, ext4 on a busy machine). It doubles what is written, so
        it is off unless asked for (Java: DefaultMappedFile.warmMappedFile). Stops when the file is
        rolled to, or the disk is full: then the writes of messages will say so.
        """
        file = self._next
        for position in range(0, self.file_size, WARM_BYTES):
            with self._roll_lock:
                if file is None or self._next is not file:
                    return
                try:
                    file.write(position, bytes(min(WARM_BYTES, self.file_size - position)))
                except DiskFullError:
                    return
            file.sync()

    def drop_first(self, file: MappedFile) -> None:
        """Delete the oldest file. Readers that have the old tuple, or a slice, may finish.

        Outside the lock, for which a roll of the send lane may wait: freeing 1 GiB takes a while.
        """
        assert self.files[0] is file, "files expire in their order"
        self._disk.remove(file.path)
        with self._roll_lock:
            self.files = self.files[1:]

    def discard_prepared(self) -> None:
        """Delete a prepared file that was never rolled to: a stopped store has no use for it."""
        with self._roll_lock:
            if self._next is not None:
                self._disk.remove(self._next.path)
                self._next = None

    def close(self) -> None:
        """Let go of the files; slices that were handed out stay valid."""
        self.files = ()
        self._next = None

    def truncate(self, offset: int) -> None:
        """Forget everything from offset on: files behind it are deleted, its own is cut.

        Java leaves the bytes there and only moves its write position. Cut, they can never be taken
        for records that follow a later, shorter append.
        """
        keep = tuple(file for file in self.files if file.from_offset <= offset)
        for file in self.files[len(keep) :]:
            self._disk.remove(file.path)
        self.files = keep
        if keep and offset < keep[-1].end_offset:
            keep[-1].zero_from(offset - keep[-1].from_offset)

    def _create(self, from_offset: int) -> MappedFile:
        folders = [folder for folder in self._folders if folder not in self.full_folders]
        folders = folders or self._folders
        folder = folders[from_offset // self.file_size % len(folders)]
        return MappedFile.create(self._disk, folder, from_offset=from_offset, size=self.file_size)


def _check_adjacent(files: list[MappedFile]) -> None:
    for before, after in pairwise(files):
        if after.from_offset != before.end_offset:
            raise StoreCorruptError(
                f"a file is missing between {before.path} and {after.path}: "
                f"the next one must start at {before.end_offset}"
            )
