"""What the store's tests share: a clock to set, small files, and a disk that can lose power."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from pyritemq.protocol.record import decode_record
from pyritemq.storage import MessageStore, MessageToStore, StoreConfig
from pyritemq.storage.errors import DiskFullError, StoreLockedError

if TYPE_CHECKING:
    from pyritemq.protocol.record import Record
    from pyritemq.storage.consume_queue_ext import BitMapOf
    from pyritemq.storage.disk import Disk

START_MS = 1_700_000_000_000


class SetClock:
    """now_ms of a store; stands still unless told to go."""

    def __init__(self, ms: int = START_MS) -> None:
        self.ms = ms

    def __call__(self) -> int:
        return self.ms


def small_config(root: Path, **changes: object) -> StoreConfig:
    """Files of a few records, so that a test of a hundred messages rolls several times."""
    settings = {
        "commit_log_file_size": 4096,
        "consume_queue_file_units": 50,
        "index_slots": 50,
        "index_items": 400,
        "delete_commit_log_files_interval_ms": 0,  # kind to a disk, and half a second of a test
        **changes,
    }
    return StoreConfig(root=root, **settings)  # type: ignore[arg-type]


def open_store(
    root: Path,
    clock: SetClock | None = None,
    disk: Disk | None = None,
    bit_map_of: BitMapOf | None = None,
    **changes: object,
) -> MessageStore:
    return MessageStore.open(
        small_config(root, **changes),
        now_ms=clock or SetClock(),
        disk=disk,
        bit_map_of=bit_map_of,
    )


def message(body: bytes = b"body", topic: bytes = b"T", queue_id: int = 0) -> MessageToStore:
    return MessageToStore(topic, queue_id, body)


def kill(store: MessageStore) -> None:
    """End the store as kill -9 would: what was written stays, what was in memory goes."""
    store._lock.release()


def read_queue(store: MessageStore, topic: str = "T", queue_id: int = 0) -> list[Record]:
    """Every record of a queue, by as many gets as it takes."""
    records: list[Record] = []
    offset = store.min_offset(topic, queue_id)
    while offset < store.max_offset(topic, queue_id):
        result = store.get(topic, queue_id, offset, count_max=32)
        records += split_records(result.slices)
        assert result.next_begin_offset > offset
        offset = result.next_begin_offset
    return records


def split_records(slices: list[memoryview]) -> list[Record]:
    records = []
    for piece in slices:
        position = 0
        while position < len(piece):
            record = decode_record(piece, position)
            records.append(record)
            position += record.total_size
    return records


class Buffer(bytearray):
    """Can be referred to weakly, as a mapping can."""


class MemoryFile:
    """A file in memory whose content at the last sync is remembered."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.buffer = Buffer()
        self.length = 0
        self.synced = b""
        self.modified = START_MS
        self.disk: MemoryDisk

    def size(self) -> int:
        return self.length

    def modified_ms(self) -> int:
        return self.modified

    def read_at(self, offset: int, size: int) -> bytes:
        return bytes(self.buffer[offset : min(offset + size, self.length)])

    def write_at(self, offset: int, data: bytes | memoryview) -> None:
        self.disk.spend(len(data))
        if offset + len(data) > self.length:
            self.resize(offset + len(data))
        self.buffer[offset : offset + len(data)] = data

    def resize(self, size: int) -> None:
        if size > len(self.buffer):  # a mapped buffer cannot grow, and a mapped file never does
            self.buffer.extend(bytes(size - len(self.buffer)))
        self.buffer[size:] = bytes(len(self.buffer) - size)
        self.length = size

    def map(self, size: int) -> memoryview:
        return memoryview(self.buffer)[:size].toreadonly()

    def sync(self) -> None:
        self.disk.count_sync()
        self.synced = bytes(self.buffer[: self.length])


class MemoryDisk:
    """A disk in memory that can fill up, refuse to sync, and lose power."""

    def __init__(self) -> None:
        self.files: dict[Path, MemoryFile] = {}
        self.space = 1 << 40
        self.syncs = 0
        self.sync_error: OSError | None = None
        self.locked = False
        self.used = 0.1
        self.remove_error: OSError | None = None

    def spend(self, size: int) -> None:
        if size > self.space:
            raise DiskFullError("no space left")
        self.space -= size

    def count_sync(self) -> None:
        if self.sync_error is not None:
            raise self.sync_error
        self.syncs += 1

    def lose_power(self) -> MemoryDisk:
        """The disk as it is found afterwards: of each file what was synced, and its full length."""
        after = MemoryDisk()
        for path, file in self.files.items():
            kept = after.open(path, create=True)
            kept.resize(file.length)
            kept.buffer[: len(file.synced)] = file.synced[: file.length]
            kept.synced = file.synced
        return after

    def make_dirs(self, path: Path) -> None:
        pass

    def names(self, path: Path) -> list[str]:
        folder = f"{path}/"  # as text: a look at the parts is half the time of an open
        inside = [name for name in map(str, self.files) if name.startswith(folder)]
        return sorted({name[len(folder) :].split("/", 1)[0] for name in inside})

    def exists(self, path: Path) -> bool:
        return path in self.files

    def open(self, path: Path, *, create: bool = False) -> MemoryFile:
        if path not in self.files:
            if not create:
                raise FileNotFoundError(path)
            self.files[path] = MemoryFile(path)
            self.files[path].disk = self
        return self.files[path]

    def peek(self, path: str, offset: int, size: int) -> tuple[int, bytes] | None:
        file = self.files.get(Path(path))
        return None if file is None else (file.length, file.read_at(offset, size))

    def used_ratio(self, path: Path) -> float:
        return self.used

    def remove(self, path: Path) -> None:
        if self.remove_error is not None:
            raise self.remove_error
        self.files.pop(path, None)

    def remove_dir(self, path: Path) -> None:
        pass

    def replace(self, source: Path, target: Path) -> None:
        self.files[target] = self.files.pop(source)
        self.files[target].path = target

    def sync_dir(self, path: Path) -> None:
        pass

    def sync_all(self, path: Path) -> None:
        self.count_sync()
        for file in self.files.values():
            file.synced = bytes(file.buffer[: file.length])

    def lock(self, root: Path) -> MemoryDisk:
        if self.locked:
            raise StoreLockedError(f"the store {root} is in use by another server")
        self.locked = True
        return self

    def release(self) -> None:
        self.locked = False
