"""Keeps what recovery cuts off, so that damage never makes bytes vanish.

Called by recovery before it truncates at a record that does not check; a zeroed end is the usual
one and keeps nothing. The copies lie in the folder `cut` of the store, named by the CommitLog
offset at which they were; nothing reads them, a person may.
"""

from pathlib import Path

from pyritemq.storage.disk import Disk
from pyritemq.storage.mapped_file import MappedFile, file_name

FOLDER = "cut"
CHUNK_SIZE = 1 << 20  # ours: so many zeroes in a row end what is worth keeping
_ZEROES = bytes(CHUNK_SIZE)


def keep_tail(
    disk: Disk, root: Path, file: MappedFile, offset: int, *, end: int | None = None
) -> Path | None:
    """Copy the file from offset on, to the end or to its zeroes; returns where that went."""
    last = file.size if end is None else end - file.from_offset
    tail = file.view[offset - file.from_offset : last]
    size = _used_size(tail)
    if size == 0:
        return None
    disk.make_dirs(root / FOLDER)
    path = _free_name(disk, root / FOLDER / file_name(offset))
    copy = disk.open(path, create=True)
    for start in range(0, size, CHUNK_SIZE):
        copy.write_at(start, tail[start : min(start + CHUNK_SIZE, size)])
    copy.sync()
    return path


def _used_size(tail: memoryview) -> int:
    for start in range(0, len(tail), CHUNK_SIZE):
        chunk = bytes(tail[start : start + CHUNK_SIZE])
        if chunk == _ZEROES[: len(chunk)]:
            return start
        rest = len(chunk.rstrip(b"\0"))
        if start + len(chunk) == len(tail):
            return start + rest
    return len(tail)


def _free_name(disk: Disk, path: Path) -> Path:
    number = 0
    candidate = path
    while disk.exists(candidate):
        number += 1
        candidate = path.with_suffix(f".{number}")
    return candidate
