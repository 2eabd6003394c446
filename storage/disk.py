"""The only module that opens, writes, syncs, truncates, maps or deletes files of the store.

The rest of storage/ sees two small Protocols, Disk and DiskFile, so that a test can put a disk in
between that fails, fills up or forgets what was not synced. RealDisk is the operating system's. Any
thread may use it; a file is closed when its last user drops it, so no thread finds it gone.

Files are written with positional writes and read through read-only mappings of the same pages. A
write reports a full disk as an error where a copy into a mapping would end the process with SIGBUS,
and it is cheaper: 8 KiB into fresh pages took 3.1 µs by pwrite and 12.9 µs by a copy into a shared
mapping, which faults once a page and holds the GIL all along (ext4, Linux 6.18, 2026-11-18).
What releases the GIL: read_at, write_at, sync. What does not: touching a page of a mapping.
"""

import contextlib
import errno
import fcntl
import mmap
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

from pyritemq.storage.errors import DiskFullError, StoreLockedError, StoreUnusableError

FILE_MODE = 0o644
_NO_SPACE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class DiskFile(Protocol):
    """One open file; offsets and sizes are bytes."""

    path: Path

    def size(self) -> int: ...
    def modified_ms(self) -> int: ...
    def read_at(self, offset: int, size: int) -> bytes: ...
    def write_at(self, offset: int, data: bytes | memoryview) -> None: ...
    def resize(self, size: int) -> None: ...
    def map(self, size: int) -> memoryview: ...
    def sync(self) -> None: ...


class StoreLock(Protocol):
    """The exclusive claim on a store folder, held until released."""

    def release(self) -> None: ...


class Disk(Protocol):
    """The folder tree that the store lives in."""

    def make_dirs(self, path: Path) -> None: ...
    def names(self, path: Path) -> list[str]: ...
    def exists(self, path: Path) -> bool: ...
    def open(self, path: Path, *, create: bool = False) -> DiskFile: ...
    def peek(self, path: str, offset: int, size: int) -> tuple[int, bytes] | None: ...
    def remove(self, path: Path) -> None: ...
    def remove_dir(self, path: Path) -> None: ...
    def replace(self, source: Path, target: Path) -> None: ...
    def used_ratio(self, path: Path) -> float: ...
    def sync_dir(self, path: Path) -> None: ...
    def sync_all(self, path: Path) -> None: ...
    def lock(self, root: Path) -> StoreLock: ...


class RealFile:
    """A file of the operating system."""

    __slots__ = ("_fd", "path")

    def __init__(self, path: Path, fd: int) -> None:
        self.path = path
        self._fd = fd

    def size(self) -> int:
        return os.fstat(self._fd).st_size

    def modified_ms(self) -> int:
        return os.fstat(self._fd).st_mtime_ns // 1_000_000

    def read_at(self, offset: int, size: int) -> bytes:
        return os.pread(self._fd, size, offset)

    def write_at(self, offset: int, data: bytes | memoryview) -> None:
        try:
            written = os.pwrite(self._fd, data, offset)
            while written < len(
                data
            ):  # the kernel may take less at once, above 2 GiB or at a signal
                written += os.pwrite(self._fd, memoryview(data)[written:], offset + written)
        except OSError as error:
            raise _write_error(self.path, error) from error

    def resize(self, size: int) -> None:
        try:
            os.ftruncate(self._fd, size)
        except OSError as error:
            raise _write_error(self.path, error) from error

    def map(self, size: int) -> memoryview:
        """Map the file for reading; the mapping lives as long as any view of it."""
        return memoryview(mmap.mmap(self._fd, size, access=mmap.ACCESS_READ))

    def sync(self) -> None:
        os.fdatasync(self._fd)

    def __del__(self) -> None:
        os.close(self._fd)


class RealDisk:
    """The operating system's file system."""

    def make_dirs(self, path: Path) -> None:
        try:
            path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StoreUnusableError(
                f"the folder {path} cannot be made: {error.strerror}"
            ) from error

    def names(self, path: Path) -> list[str]:
        """What lies in the folder, sorted; nothing if there is no such folder."""
        try:
            return sorted(os.listdir(path))
        except (FileNotFoundError, NotADirectoryError):
            return []

    def exists(self, path: Path) -> bool:
        return path.exists()

    def open(self, path: Path, *, create: bool = False) -> RealFile:
        """Raises FileNotFoundError, or StoreUnusableError for any other reason."""
        flags = os.O_RDWR | os.O_CLOEXEC | (os.O_CREAT if create else 0)
        with _unusable(path):
            return RealFile(path, os.open(path, flags, FILE_MODE))

    def peek(self, path: str, offset: int, size: int) -> tuple[int, bytes] | None:
        """Size of a file and some bytes of it, or None; for thousands of files, so a plain path."""
        try:
            fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return None
        try:
            return os.fstat(fd).st_size, os.pread(fd, size, offset)
        finally:
            os.close(fd)

    def remove(self, path: Path) -> None:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)

    def remove_dir(self, path: Path) -> None:
        """Remove a folder if it is there and empty."""
        with contextlib.suppress(OSError):
            os.rmdir(path)

    def replace(self, source: Path, target: Path) -> None:
        os.replace(source, target)

    def used_ratio(self, path: Path) -> float:
        """Used part of the disk in whole percents, rounded up; -1 if it cannot be had.

        UtilAll.getDiskPartitionSpaceUsedPercent: what is kept for root counts as neither.
        """
        try:
            found = os.statvfs(path)
        except OSError:
            return -1.0
        used = found.f_blocks - found.f_bfree
        entire = used + found.f_bavail
        return -(-used * 100 // entire) / 100 if entire else -1.0

    def sync_dir(self, path: Path) -> None:
        """Make names that were added or replaced in the folder durable."""
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)

    def sync_all(self, path: Path) -> None:
        """Make all data of the file system that holds the folder durable, with one system call.

        For thousands of small files: with it a store of 50,000 queues stops in 0.8 s, and took
        16 s to sync them one by one (ext4, 2026-11-18). The os module lacks the call, and ctypes
        is loaded only if it comes to this.
        """
        import ctypes

        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            libc = ctypes.CDLL(None, use_errno=True)
            if libc.syncfs(fd) != 0:
                number = ctypes.get_errno()
                raise OSError(number, os.strerror(number), str(path))
        finally:
            os.close(fd)

    def lock(self, root: Path) -> "RealLock":
        return RealLock(root)


class RealLock:
    """Two locks, because each sees what the other cannot.

    Java locks byte 0 of the file `lock` with a POSIX record lock. That belongs to the process: a
    second store in this process would get it too, and closing any descriptor of the file would give
    it up. So the folder itself is locked first, with flock, which belongs to the open descriptor;
    only its holder ever touches the file.
    """

    def __init__(self, root: Path) -> None:
        self._fds: list[int] = []
        try:
            self._open(root, os.O_RDONLY | os.O_DIRECTORY)
            fcntl.flock(self._fds[0], fcntl.LOCK_EX | fcntl.LOCK_NB)
            self._open(root / "lock", os.O_RDWR | os.O_CREAT)
            fcntl.lockf(self._fds[1], fcntl.LOCK_EX | fcntl.LOCK_NB, 1, 0)
            os.pwrite(self._fds[1], b"lock", 0)
        except BlockingIOError as error:
            self.release()
            raise StoreLockedError(f"the store {root} is in use by another server") from error
        except BaseException:
            self.release()
            raise

    def release(self) -> None:
        while self._fds:
            os.close(self._fds.pop())

    def _open(self, path: Path, flags: int) -> None:
        with _unusable(path):
            self._fds.append(os.open(path, flags | os.O_CLOEXEC, FILE_MODE))


def _write_error(path: Path, error: OSError) -> DiskFullError | OSError:
    return DiskFullError(f"no space left for {path}") if error.errno in _NO_SPACE else error


@contextlib.contextmanager
def _unusable(path: Path) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError:
        raise
    except OSError as error:
        raise StoreUnusableError(f"{path} cannot be opened: {error.strerror}") from error
