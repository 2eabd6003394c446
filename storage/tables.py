"""The JSON tables under config/: replaced atomically, with the previous version kept as `.bak`.

Java's ConfigManager moves topics.json to topics.json.bak and then writes topics.json anew, so a
crash in between leaves only the backup; its load falls back to that, and so does ours. Here the new
version is complete and synced before it takes the name, so readers of either kind find one or the
other. Called by the owner of each table, on its lane; a table has one writer.
"""

from pathlib import Path

from pyritemq.storage.disk import Disk, RealDisk
from pyritemq.storage.errors import StoreUnusableError

_REAL_DISK = RealDisk()


def load(path: Path, *, disk: Disk = _REAL_DISK) -> bytes | None:
    """The table's text or, if that is missing or empty, its backup's; None if there is neither."""
    return _read(path, disk) or _read(_backup(path), disk) or None


def save(path: Path, data: bytes, *, disk: Disk = _REAL_DISK) -> None:
    """Replace the table; what was there becomes the backup. Raises StorageError."""
    disk.make_dirs(path.parent)
    new = path.with_name(path.name + ".tmp")
    _write(new, data, disk)
    try:
        if disk.exists(path):
            disk.replace(path, _backup(path))
        disk.replace(new, path)
        disk.sync_dir(path.parent)
    except OSError as error:
        raise StoreUnusableError(f"{path} cannot be replaced: {error.strerror}") from error


class JsonTable:
    """One table's file, with its path and disk already said."""

    def __init__(self, path: Path, *, disk: Disk = _REAL_DISK) -> None:
        self.path = path
        self._disk = disk

    @property
    def name(self) -> str:
        """How to name it to a user."""
        return str(self.path)

    def load(self) -> bytes | None:
        return load(self.path, disk=self._disk)

    def versions(self) -> list[bytes]:
        """What is on disk, newest first, for a reader that may find the newest unreadable."""
        found = (_read(path, self._disk) for path in (self.path, _backup(self.path)))
        return [data for data in found if data]

    def save(self, data: bytes) -> None:
        save(self.path, data, disk=self._disk)


def _backup(path: Path) -> Path:
    return path.with_name(path.name + ".bak")


def _read(path: Path, disk: Disk) -> bytes:
    try:
        file = disk.open(path)
    except FileNotFoundError:
        return b""
    return file.read_at(0, file.size())


def _write(path: Path, data: bytes, disk: Disk) -> None:
    file = disk.open(path, create=True)
    file.resize(0)
    file.write_at(0, data)
    file.sync()
