"""One file of fixed size, named by the offset of its first byte: written at its end, read mapped.

One thread writes (the send lane, for the CommitLog); any thread reads what was published to it. The
mapping is never closed: it goes when the file object and every slice handed out have gone.
"""

import weakref
from pathlib import Path

from pyritemq.storage.disk import Disk, DiskFile

NAME_DIGITS = 20


def file_name(from_offset: int) -> str:
    """Twenty digits, as UtilAll.offset2FileName writes them."""
    return f"{from_offset:0{NAME_DIGITS}d}"


def is_file_name(name: str) -> bool:
    return len(name) == NAME_DIGITS and name.isdecimal()


class MappedFile:
    """A file of a queue; positions are relative to its start, offsets to the whole queue."""

    __slots__ = ("_file", "end_offset", "from_offset", "path", "size", "view")

    def __init__(self, file: DiskFile, *, from_offset: int, size: int) -> None:
        self._file = file
        self.path = file.path
        self.from_offset = from_offset
        self.size = size
        self.end_offset = from_offset + size
        self.view = file.map(size)

    @classmethod
    def create(cls, disk: Disk, folder: Path, *, from_offset: int, size: int) -> "MappedFile":
        """Make the file at its full size without writing to it: sparse on disk, as Java's is."""
        file = disk.open(folder / file_name(from_offset), create=True)
        if file.size() != size:
            file.resize(size)
        disk.sync_dir(folder)
        return cls(file, from_offset=from_offset, size=size)

    def read(self, position: int, size: int) -> bytes:
        return self._file.read_at(position, size)

    def write(self, position: int, data: bytes) -> None:
        self._file.write_at(position, data)

    def sync(self) -> None:
        self._file.sync()

    def modified_ms(self) -> int:
        """When it was last written to."""
        return self._file.modified_ms()

    def mapping_ref(self) -> "weakref.ref[object]":
        """Dies when the last slice of the file has gone."""
        return weakref.ref(self.view.obj)

    def zero_from(self, position: int) -> None:
        """Forget everything from position on: cut there, then grown again as a hole."""
        self._file.resize(position)
        self._file.resize(self.size)
