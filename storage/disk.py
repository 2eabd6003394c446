"""The only module that opens, writes, syncs, truncates, maps or deletes: everything the store does to a disk.

The rest of storage/ sees two small Protocols, Disk and DiskFile, so that a test can put a disk in between
that fails, fills up or forgets what was not synced. RealDisk is the operating system's. Any thread may use
it; a DiskFile is closed when its last user drops it, so no thread can find its descriptor gone.

What releases the GIL here: read_at, write_at, sync. Files are written with positional writes and read through
read-only mappings of the same pages. A write reports a full disk as an error where a copy into a mapping
would end the process with SIGBUS, and it is cheaper: 8 KiB into fresh pages of ext4 took 3.1 µs by pwrite and
12.9 µs by copying into a shared mapping, which faults once a page while holding the GIL (2026-11-18, Linux 6.18).
"""

import contextlib
import errno
import fcntl
import mmap
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

from pyritemq.storage.errors import DiskFull, StoreLocked, StoreUnusable

FILE_MODE = 0o644
_NO_SPACE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class DiskFile(Protocol):
    """One open file; offsets and sizes are bytes."""

    path: Path

    def size(self) -> int: ...
    def read_at(self, offset: int, size: int) -> bytes: ...
    def write_at(self, offset: int, data: bytes | bytearray | memoryview) -> None: ...
    def resize(self, size: int) -> None: ...
    def map(self, size: int) -> memoryview: ...
    def sync(self) -> None: ...
    def close(self) -> None: ...


class Disk(Protocol):
    """A folder tree that the store lives in."""

    def make_dirs(self, path: Path) -> None: ...
    def names(self, path: Path) -> list[str]: ...
    def exists(self, path: Path) -> bool: ...
    def file_size(self, path: Path) -> int: ...
    def open(self, path: Path, *, create: bool = False) -> DiskFile: ...
    def remove(self, path: Path) -> None: ...
    def replace(self, source: Path, target: Path) -> None: ...
    def sync_dir(self, path: Path) -> None: ...
    def lock(self, root: Path) -> "StoreLock": ...


class StoreLock(Protocol):
    """The exclusive claim on a store folder, held until released."""

    def release(self) -> None: ...


class RealFile:
    """A file of the operating system."""

    __slots__ = ("_fd", "path")

    def __init__(self, path: Path, fd: int) -> None:
        self.path = path
        self._fd = fd

    def size(self) -> int:
        return os.fstat(self._fd).st_size

    def read_at(self, offset: int, size: int) -> bytes:
        return os.pread(self._fd, size, offset)

    def write_at(self, offset: int, data: bytes | bytearray | memoryview) -> None:
        with _no_space_is_disk_full(self.path):
            written = os.pwrite(self._fd, data, offset)
            while written < len(data):
                written += os.pwrite(self._fd, memoryview(data)[written:], offset + written)

    def resize(self, size: int) -> None:
        with _no_space_is_disk_full(self.path):
            os.ftruncate(self._fd, size)

    def map(self, size: int) -> memoryview:
        """Map the file for reading; the mapping lives as long as any view of it."""
        return memoryview(mmap.mmap(self._fd, size, access=mmap.ACCESS_READ))

    def sync(self) -> None:
        """Make the data durable; also writes pages dirtied through a mapping, and without the GIL."""
        os.fdatasync(self._fd)

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def __del__(self) -> None:
        self.close()


class RealDisk:
    """The operating system's file system."""

    def make_dirs(self, path: Path) -> None:
        try:
            path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StoreUnusable(
                f"the store folder {path} cannot be made: {error.strerror}"
            ) from error

    def names(self, path: Path) -> list[str]:
        try:
            return sorted(os.listdir(path))
        except FileNotFoundError:
            return []

    def exists(self, path: Path) -> bool:
        return path.exists()

    def file_size(self, path: Path) -> int:
        return path.stat().st_size

    def open(self, path: Path, *, create: bool = False) -> RealFile:
        flags = os.O_RDWR | os.O_CLOEXEC | (os.O_CREAT if create else 0)
        try:
            return RealFile(path, os.open(path, flags, FILE_MODE))
        except FileNotFoundError:
            raise
        except OSError as error:
            raise _unusable(path, error) from error

    def remove(self, path: Path) -> None:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)

    def replace(self, source: Path, target: Path) -> None:
        os.replace(source, target)

    def sync_dir(self, path: Path) -> None:
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)

    def lock(self, root: Path) -> "RealLock":
        return RealLock(root)


class RealLock:
    """Two locks, because each sees what the other cannot.

    Java locks byte 0 of the file `lock` with a POSIX record lock, which belongs to the process: a second store
    in this process would get it too, and closing *any* descriptor of that file would give it up. So the
    folder itself is locked first with flock, which belongs to the open descriptor; only its holder touches the file.
    """

    def __init__(self, root: Path) -> None:
        self._dir_fd = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        self._file_fd = -1
        try:
            fcntl.flock(self._dir_fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self._file_fd = os.open(root / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, FILE_MODE)
            fcntl.lockf(self._file_fd, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, 0)
            os.pwrite(self._file_fd, b"lock", 0)
        except BlockingIOError as error:
            self.release()
            raise StoreLocked(f"the store {root} is in use by another server") from error
        except OSError as error:
            self.release()
            raise _unusable(root / "lock", error) from error

    def release(self) -> None:
        for fd in (self._file_fd, self._dir_fd):
            if fd >= 0:
                os.close(fd)
        self._file_fd = self._dir_fd = -1


def _unusable(path: Path, error: OSError) -> StoreUnusable:
    return StoreUnusable(f"the file {path} cannot be opened: {error.strerror}")


@contextlib.contextmanager
def _no_space_is_disk_full(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno in _NO_SPACE:
            raise DiskFull(f"no space left for {path}") from error
        raise
