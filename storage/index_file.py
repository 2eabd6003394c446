"""One index file: from the hash of a key to the offsets of the records that carry it, newest first.

    header   begin timestamp i64 | end timestamp i64 | begin phy offset i64 | end phy offset i64
             | used slots i32 | item count i32, which starts at 1: item 0 is never used
    slots    5,000,000 × number of the newest item whose hash falls into the slot, 0 for none
    items    20,000,000 × hash i32 | phy offset i64 | seconds since begin timestamp i32
             | number of the item before it in the same slot i32

The file is sparse, written with positional writes and read through a mapping, as the CommitLog is.
One thread puts; any thread selects. Items are written first, then slots, then the header, and the
count in it is published last. So a slot may name an item beyond the count, for a moment or, when a
write fails or the process dies in between, for longer. Such an item is complete, and the chain goes
on from it to items that count: both sides follow it down (_settled) and lose nothing.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from struct import Struct
from typing import Final, NamedTuple

from pyritemq.storage.disk import Disk, DiskFile

HEADER: Final = Struct(">qqqqii")
SLOT: Final = Struct(">i")
ITEM: Final = Struct(">iqii")
PAGE_SIZE: Final = 4096
_I32_MAX: Final = 0x7FFFFFFF


Entry = tuple[int, int, int]  # key hash, phy offset, store timestamp: one key of one record


class IndexHeader(NamedTuple):
    """The first 40 bytes."""

    begin_timestamp: int = 0
    end_timestamp: int = 0
    begin_phy_offset: int = 0
    end_phy_offset: int = 0
    hash_slot_count: int = 0
    index_count: int = 1


def index_file_size(*, slots: int, items: int) -> int:
    return HEADER.size + slots * SLOT.size + items * ITEM.size


class IndexFile:
    """An open index file; `header` is replaced whole after what it counts is in place."""

    __slots__ = ("_file", "_items_at", "_view", "header", "items", "path", "slots")

    def __init__(self, file: DiskFile, *, slots: int, items: int) -> None:
        self._file = file
        self.path: Path = file.path
        self.slots = slots
        self.items = items
        self._items_at = HEADER.size + slots * SLOT.size
        self._view = file.map(index_file_size(slots=slots, items=items))
        header = IndexHeader(*HEADER.unpack_from(self._view))
        count = min(max(header.index_count, 1), items)  # 0 in a file that was only made
        self.header = header._replace(index_count=count)

    @classmethod
    def create(
        cls, disk: Disk, path: Path, *, slots: int, items: int, before: "IndexFile | None"
    ) -> "IndexFile":
        """A new file whose header goes on from the file before it, as Java's does."""
        file = disk.open(path, create=True)
        file.resize(index_file_size(slots=slots, items=items))
        disk.sync_dir(path.parent)
        made = cls(file, slots=slots, items=items)
        if before is not None:
            _, timestamp, _, phy_offset, _, _ = before.header
            made.header = IndexHeader(timestamp, timestamp, phy_offset, phy_offset)
        return made

    @property
    def room(self) -> int:
        """How many more entries fit."""
        return self.items - self.header.index_count

    # -- the one writer -----------------------------------------------------------------------

    def put(self, entries: Sequence[Entry]) -> None:
        """Add entries, no more than there is room for. Raises DiskFullError, then nothing counts.

        The rules are those of IndexFile.putKey, with one write for all items and one for each page
        of slots.
        """
        begin, end, begin_offset, end_offset, used, count = self.header
        first = count
        heads: dict[int, int] = {}
        packed = []
        for key_hash, phy_offset, timestamp in entries:
            slot = key_hash % self.slots
            before = heads.get(slot)
            if before is None:
                before = self._settled(slot, first)
            seconds = min(max((timestamp - begin) // 1000, 0), _I32_MAX) if begin > 0 else 0
            packed.append(ITEM.pack(key_hash, phy_offset, seconds, before))
            heads[slot] = count
            if count <= 1:
                begin, begin_offset = timestamp, phy_offset
            if not before:
                used += 1
            count += 1
            end, end_offset = timestamp, phy_offset
        self._file.write_at(self._items_at + first * ITEM.size, b"".join(packed))
        for position, page in self._changed_pages(heads):
            self._file.write_at(position, page)
        header = IndexHeader(begin, end, begin_offset, end_offset, used, count)
        self._file.write_at(0, HEADER.pack(*header))
        self.header = header

    def sync(self) -> None:
        self._file.sync()

    def _changed_pages(self, heads: dict[int, int]) -> Iterator[tuple[int, bytes]]:
        """What to write to bring the slots up to date: a slot, or the page around several."""
        pages: dict[int, list[tuple[int, int]]] = {}
        for slot, value in heads.items():
            position = HEADER.size + slot * SLOT.size
            pages.setdefault(position // PAGE_SIZE, []).append((position, value))
        for number, changes in pages.items():
            start = number * PAGE_SIZE
            if len(changes) == 1:
                yield changes[0][0], SLOT.pack(changes[0][1])
                continue
            page = bytearray(self._view[start : start + PAGE_SIZE])
            for position, value in changes:
                SLOT.pack_into(page, position - start, value)
            yield start, bytes(page)

    # -- readers ------------------------------------------------------------------------------

    def is_time_matched(self, begin: int, end: int) -> bool:
        """Whether the file's times meet the range, by IndexFile.isTimeMatched."""
        first, last = self.header[:2]
        return begin < first <= last < end or first <= begin <= last or first <= end <= last

    def select(
        self, found: list[int], key_hash: int, count_max: int, *, begin: int, end: int
    ) -> None:
        """Add offsets of records with this hash stored in [begin, end], newest first.

        Times are the file's begin plus whole seconds, as Java compares them, so that an item may
        count as up to a second older than its record. A record that has the key twice, as its
        unique key for one, counts once; Java returns it twice.
        """
        header = self.header
        number = self._settled(key_hash % self.slots, header.index_count)
        while number and len(found) < count_max:
            item_hash, phy_offset, seconds, before = self._item(number)
            time = header.begin_timestamp + seconds * 1000
            is_match = seconds >= 0 and item_hash == key_hash and begin <= time <= end
            if is_match and found[-1:] != [phy_offset]:
                found.append(phy_offset)
            if seconds < 0 or time < begin or not 0 < before < number:
                break  # a chain always goes down: whatever a damaged file holds, this ends
            number = before

    def _settled(self, slot: int, count: int) -> int:
        """The newest item of the slot among the first `count`, or 0."""
        (number,) = SLOT.unpack_from(self._view, HEADER.size + slot * SLOT.size)
        while count <= number < self.items:
            before = self._item(number)[3]
            number = before if before < number else 0
        return number if 0 < number < count else 0

    def _item(self, number: int) -> tuple[int, int, int, int]:
        item: tuple[int, int, int, int] = ITEM.unpack_from(
            self._view, self._items_at + number * ITEM.size
        )
        return item
