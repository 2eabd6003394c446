"""consumequeue_ext: what a ConsumeQueue unit has no room for, kept for brokers that filter by SQL.

    unit    size i16 | tags code i64 | store timestamp i64 | bit map size i16 | bit map

With enableConsumeQueueExt each message gets one, and the third field of its ConsumeQueue unit is
the address of it instead of the tags code: -2^63 plus the offset in the queue's ext files. No tags
code and no time of delivery is that low, so the two can be told apart, whatever the setting is now.
A file ends with the size -1 where the next unit and four bytes more have no room.

Threads: put, write, publish and roll_back belong to the send lane, and to recovery before there is
one; read and accepting may run on any lane, for addresses in published units: their bytes were
written before. sync and expire belong to the flusher. Java: ConsumeQueueExt.
"""

import threading
from collections.abc import Callable
from pathlib import Path
from struct import Struct
from typing import Final, NamedTuple

from pyritemq.storage.consume_queue import UNIT, ConsumeQueue
from pyritemq.storage.disk import Disk
from pyritemq.storage.errors import StoreCorruptError
from pyritemq.storage.file_cache import FileCache
from pyritemq.storage.mapped_file import file_name, is_file_name

EXT_HEAD: Final = Struct(">hqqh")
EXT_SIZE_MAX: Final = 0x7FFF
FILE_END: Final = b"\xff\xff"  # in the place of a size
FILE_END_ROOM: Final = 4  # END_BLANK_DATA_LENGTH

ADDRESS_BASE: Final = -(1 << 63)
ADDRESS_MAX: Final = -(1 << 31) - 1

_READ_BYTES: Final = 256  # ours: a unit with a bit map of Java's default size takes 40
_LOOK_BACK_UNITS: Final = 4096  # ours: read at once while looking for the last address

QueueKey = tuple[bytes, int]


class ExtUnit(NamedTuple):
    """What lies at an address; no bit map is an empty one."""

    tags_code: int
    store_timestamp: int
    bit_map: bytes


BitMapOf = Callable[[bytes, bytes], bytes]
"""The bit map of a message by its topic and its properties as they are stored; may be empty."""

AcceptsExt = Callable[[ExtUnit], bool]
"""Looks at an ext unit, where its bit map tells whether a message can match."""


def _no_bit_map(topic: bytes, properties: bytes) -> bytes:
    return b""


class _Tail:
    """Where a queue's ext files end, and what was put behind that but not yet written."""

    __slots__ = ("end", "published", "staged")

    def __init__(self, end: int) -> None:
        self.end = self.published = end
        self.staged: list[tuple[int, bytearray]] = []  # offset, bytes; one for each file


class ConsumeQueueExts:
    """The ext files of all queues."""

    def __init__(self, disk: Disk, folder: Path, *, file_size: int, files: FileCache) -> None:
        self._disk = disk
        self._folder = folder
        self._file_size = file_size
        self._files = files
        self.bit_map_of: BitMapOf = _no_bit_map  # replaced before the first put
        self._tails: dict[QueueKey, _Tail] = {}
        self._batch: dict[QueueKey, _Tail] = {}  # those put to since the last publish
        self._unsynced: dict[Path, None] = {}
        self._unsynced_lock = threading.Lock()

    # -- send lane, recovery ------------------------------------------------------------------

    def put(
        self,
        queue: ConsumeQueue,
        tags_code: int,
        store_timestamp: int,
        topic: bytes,
        properties: bytes,
    ) -> int:
        """Stage a unit; its address, or the tags code itself if it is too long, as in Java."""
        bit_map = self.bit_map_of(topic, properties)
        size = EXT_HEAD.size + len(bit_map)
        if size > min(EXT_SIZE_MAX, self._file_size - FILE_END_ROOM):
            return tags_code
        key = (queue.topic, queue.queue_id)
        tail = self._tails.get(key)
        if tail is None:
            tail = self._tails[key] = _Tail(self._find_end(queue))
        self._batch[key] = tail
        position = tail.end % self._file_size
        if not tail.staged or position == 0:
            tail.staged.append((tail.end, bytearray()))
        if size > self._file_size - position - FILE_END_ROOM:
            tail.staged[-1][1].extend(FILE_END)
            tail.end += self._file_size - position
            tail.staged.append((tail.end, bytearray()))
        address = ADDRESS_BASE + tail.end
        units = tail.staged[-1][1]
        units += EXT_HEAD.pack(size, tags_code, store_timestamp, len(bit_map))
        units += bit_map
        tail.end += size
        return address

    def write(self) -> None:
        """Bring what was put to the files, before units that name it are published."""
        for key, tail in self._batch.items():
            for offset, units in tail.staged:
                path = self._path(key, offset)
                file = self._files.open_sized(path, self._file_size)
                file.write_at(offset % self._file_size, bytes(units))
                with self._unsynced_lock:
                    self._unsynced[path] = None
            tail.staged = []

    def publish(self) -> None:
        """The units that name what was written are visible now."""
        for tail in self._batch.values():
            tail.published = tail.end
        self._batch.clear()

    def roll_back(self) -> None:
        """Take back what was put since the last publish; what is written already is put over."""
        for tail in self._batch.values():
            tail.end = tail.published
            tail.staged = []
        self._batch.clear()

    def _find_end(self, queue: ConsumeQueue) -> int:
        """Behind the last unit that the queue names; what lies there is of a lost batch."""
        key = (queue.topic, queue.queue_id)
        starts = self._file_starts(key)
        address = self._last_address(queue)
        found = None if address is None else self._read(key, address - ADDRESS_BASE)
        if address is not None and found is not None:
            end = address - ADDRESS_BASE + found[0]
            self._cut(key, starts, end)
            return end
        if queue.max_offset == queue.min_offset:
            self.discard(key)
            return 0
        return starts[-1] + self._file_size if starts else 0

    def _last_address(self, queue: ConsumeQueue) -> int | None:
        """Of the last unit with one, at most a file of units back: the setting may change."""
        end = queue.max_offset
        first = max(queue.min_offset, end - queue.file_units)
        count = 1
        while end > first:
            start = max(first, end - count, end - 1 - (end - 1) % queue.file_units)
            units = queue.units(start, end - start)
            codes: list[int] = [code for _, _, code in UNIT.iter_unpack(units)]
            for code in reversed(codes):
                if code <= ADDRESS_MAX:
                    return code
            end, count = start, _LOOK_BACK_UNITS
        return None

    def _cut(self, key: QueueKey, starts: list[int], end: int) -> None:
        """Clear what lies behind the end, or a Java broker would count it in."""
        for start in starts:
            if start >= end:
                self._files.remove(self._path(key, start))
            elif start + self._file_size > end:
                file = self._files.open(self._path(key, start))
                if any(file.read_at(end - start, EXT_HEAD.size)):
                    file.resize(end - start)
                    file.resize(self._file_size)

    # -- any lane -----------------------------------------------------------------------------

    def read(self, queue: ConsumeQueue, address: int) -> ExtUnit | None:
        """The unit at an address; None if it is not there, or this is no address."""
        return self.find((queue.topic, queue.queue_id), address)

    def find(self, key: QueueKey, address: int) -> ExtUnit | None:
        """The same for a queue that need not be open."""
        if address > ADDRESS_MAX:
            return None
        found = self._read(key, address - ADDRESS_BASE)
        return None if found is None else found[1]

    def tags_code(self, queue: ConsumeQueue, code: int) -> int | None:
        """What the third field of a unit stands for; None if its ext unit is lost."""
        if code > ADDRESS_MAX:
            return code
        unit = self.read(queue, code)
        return None if unit is None else unit.tags_code

    def accepting(
        self, queue: ConsumeQueue, by_code: Callable[[int], bool] | None, by_unit: AcceptsExt | None
    ) -> Callable[[int], bool]:
        """The test that a reader of this queue makes of the third field of each unit.

        What cannot be told from an ext unit is let through, as in Java: a look at the record, or
        the client, decides.
        """

        def accept(code: int) -> bool:
            unit = self.read(queue, code) if code <= ADDRESS_MAX else None
            if unit is None:
                return code <= ADDRESS_MAX or by_code is None or by_code(code)
            if by_code is not None and not by_code(unit.tags_code):
                return False
            return by_unit is None or by_unit(unit)

        return accept

    def _read(self, key: QueueKey, offset: int) -> tuple[int, ExtUnit] | None:
        position = offset % self._file_size
        try:
            file = self._files.open(self._path(key, offset))
        except StoreCorruptError:
            return None
        data = file.read_at(position, _READ_BYTES)
        if len(data) < EXT_HEAD.size:
            return None
        size, tags_code, store_timestamp, bit_map_size = EXT_HEAD.unpack_from(data)
        if size != EXT_HEAD.size + bit_map_size or bit_map_size < 0:
            return None
        if size > len(data):
            data = file.read_at(position, size)
        return size, ExtUnit(tags_code, store_timestamp, data[EXT_HEAD.size : size])

    # -- flusher ------------------------------------------------------------------------------

    def sync(self) -> None:
        """Make durable what was written, before the units that name it are."""
        with self._unsynced_lock:
            paths, self._unsynced = self._unsynced, {}
        for path in paths:
            try:
                self._files.open(path).sync()
            except StoreCorruptError:  # expired, or its topic was deleted
                continue

    def expire(self, queue: ConsumeQueue) -> None:
        """Delete files that lie wholly before the queue's first unit (truncateByMinAddress)."""
        key = (queue.topic, queue.queue_id)
        starts = self._file_starts(key)
        unit = queue.unit(queue.min_offset) if len(starts) > 1 else None
        if unit is None or unit[2] > ADDRESS_MAX:
            return
        for start in starts:
            if start + self._file_size < unit[2] - ADDRESS_BASE:
                self._files.remove(self._path(key, start))

    def discard(self, key: QueueKey) -> None:
        """Delete a queue's ext files: it goes, or is derived anew."""
        folder = self._queue_folder(key)
        for name in self._disk.names(folder):
            if is_file_name(name):
                self._files.remove(folder / name)
        self._disk.remove_dir(folder)
        self._disk.remove_dir(folder.parent)
        self._tails.pop(key, None)

    # -- files --------------------------------------------------------------------------------

    def _queue_folder(self, key: QueueKey) -> Path:
        return self._folder / key[0].decode() / str(key[1])

    def _path(self, key: QueueKey, offset: int) -> Path:
        return self._queue_folder(key) / file_name(offset - offset % self._file_size)

    def _file_starts(self, key: QueueKey) -> list[int]:
        """Raises StoreCorruptError for a file of another size."""
        folder = self._queue_folder(key)
        starts = []
        for name in self._disk.names(folder):
            if not is_file_name(name):
                continue
            size = self._files.open(folder / name).size()
            if size == 0:  # made but never sized before a crash
                self._files.remove(folder / name)
                continue
            if size != self._file_size:
                raise StoreCorruptError(
                    f"the file {folder / name} has {size} bytes, not {self._file_size}"
                )
            starts.append(int(name))
        return starts
