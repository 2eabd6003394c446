"""All ConsumeQueues of the store, by topic and queue id, each opened when it is first asked for.

The dict of opened queues only grows, and only under the lock; a look-up without the lock sees a
queue or does not. The send lane asks for a queue to write to (find_or_create), readers for one to
read (find). The flusher takes the queues that were written to from `dirty`.
"""

import logging
import threading
from collections import deque
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING

from pyritemq.storage.block_sizes import BlockSizes
from pyritemq.storage.consume_queue import UNIT, UNIT_SIZE, ConsumeQueue
from pyritemq.storage.disk import Disk
from pyritemq.storage.errors import StoreCorruptError
from pyritemq.storage.file_cache import FileCache
from pyritemq.storage.mapped_file import file_name, is_file_name
from pyritemq.storage.queue_ends import QueueEnds
from pyritemq.storage.queue_loader import QueueLoader

if TYPE_CHECKING:
    from pyritemq.storage.consume_queue_ext import ConsumeQueueExts

WRITE_OUT_ALL_MAX = 1000  # ours: so many queues are written to their files in some 20 ms
WRITE_OUT_ROUNDS = 32  # ours: of more queues, one in so many
SYNC_EACH_MAX = 256  # ours: with more queues to sync, syncing the file system once is quicker

QueueKey = tuple[bytes, int]

_log = logging.getLogger(__name__)


class QueueTable:
    """Opened queues, and the names of those that so far only lie on disk."""

    def __init__(self, disk: Disk, folder: Path, *, file_units: int) -> None:
        self._disk = disk
        self._folder = folder
        self._file_units = file_units
        self._lock = threading.Lock()
        self._on_disk: set[QueueKey] = set()
        self._sizes = BlockSizes()
        self._unsynced: dict[ConsumeQueue, None] = {}
        self.known_ends: QueueEnds = {}  # of queues that were not opened yet
        self.files = FileCache(disk)
        self.exts: ConsumeQueueExts | None = None  # set where a store has ext units
        self.loader = QueueLoader(disk, self.files)
        self.queues: dict[QueueKey, ConsumeQueue] = {}
        self.dirty: deque[ConsumeQueue] = deque()

    def scan(self) -> None:
        """List the queues on disk; 50,000 of them are ready to be used without opening one."""
        for topic in self._disk.names(self._folder):
            for name in self._disk.names(self._folder / topic):
                if name.isdecimal():
                    self._on_disk.add((topic.encode(), int(name)))

    # -- look-ups -----------------------------------------------------------------------------

    def find(self, topic: bytes, queue_id: int) -> ConsumeQueue | None:
        key = (topic, queue_id)
        queue = self.queues.get(key)
        if queue is None and key in self._on_disk:
            return self.find_or_create(topic, queue_id)
        return queue

    def find_or_create(self, topic: bytes, queue_id: int) -> ConsumeQueue:
        key = (topic, queue_id)
        with self._lock:
            queue = self.queues.get(key)
            if queue is None:
                queue = self._make(topic, queue_id)
                if key in self._on_disk:
                    self.loader.load(queue)
                self.queues[key] = queue
                self._sizes.fit(len(self.queues))
            return queue

    def peek(self, topic: bytes, queue_id: int, offset: int) -> int:
        """CommitLog offset in a unit on disk, without opening the queue; -1 if it is not there."""
        if (topic, queue_id) not in self._on_disk:
            return -1
        return self._peek_file(f"{self._folder}/{topic.decode()}/{queue_id}", offset)

    def _peek_file(self, folder: str, offset: int) -> int:
        number, index = divmod(offset, self._file_units)
        file_size = self._file_units * UNIT_SIZE
        # no Path: making some for each of 50,000 queues would take longer than all the rest
        path = f"{folder}/{file_name(number * file_size)}"
        found = self._disk.peek(path, index * UNIT_SIZE, UNIT_SIZE)
        if found is None or found[0] != file_size:
            return -1
        phy_offset, size, _ = UNIT.unpack(found[1])
        return phy_offset if size > 0 else -1

    def lost_queues(self) -> set[QueueKey]:
        """Queues that should have units, but whose last one is not in its file."""
        return {
            (topic, queue_id)
            for (topic, queue_id), end in self.known_ends.items()
            if self.peek(topic, queue_id, end - 1) < 0
        }

    def discard(self, key: QueueKey) -> None:
        """Delete a queue's files, before it is derived anew; recovery only."""
        folder = self._make(*key).folder
        for name in self._disk.names(folder):
            if is_file_name(name):
                self.files.remove(folder / name)
        if self.exts is not None:
            self.exts.discard(key)
        self._on_disk.discard(key)
        self.queues.pop(key, None)

    def delete_topic(self, topic: bytes) -> bool:
        """Delete a topic's queues and their files; False if there were none.

        Neither the send lane nor the flusher may be at work. A reader that holds one of the queues
        reads on from memory, and fails where it needs a file.
        """
        with self._lock:
            keys = {key for key in self._on_disk | self.queues.keys() if key[0] == topic}
        self.delete(keys)
        return bool(keys)

    def delete(self, keys: Collection[QueueKey]) -> None:
        """Delete these queues and their files, on the same terms."""
        with self._lock:
            opened = {queue for key in keys if (queue := self.queues.pop(key, None))}
            self._on_disk -= set(keys)
        for key in keys:
            self.known_ends.pop(key, None)
            self._delete_folder(self._make(*key).folder)
            if self.exts is not None:
                self.exts.discard(key)
        for topic in {topic for topic, _ in keys}:
            self._disk.remove_dir(self._folder / topic.decode())
        self.dirty = deque(queue for queue in self.dirty if queue not in opened)
        for queue in opened:
            self._unsynced.pop(queue, None)

    def wholly_expired(self, among: Collection[QueueKey] | None) -> set[QueueKey]:
        """Queues that had messages and have none any more; opens each, without `among` all."""
        found = ((key, self.find(*key)) for key in (self.all_keys() if among is None else among))
        return {key for key, queue in found if queue is not None and queue.is_expired}

    def _delete_folder(self, folder: Path) -> None:
        for name in self._disk.names(folder):
            if is_file_name(name):
                self.files.remove(folder / name)
        self._disk.remove_dir(folder)

    def ends(self) -> QueueEnds:
        """The synced end of every queue that has a unit, opened or not."""
        with self._lock:
            opened = list(self.queues.items())
        ends = dict(self.known_ends)
        for key, queue in opened:
            ends.pop(key, None)
            if queue.synced > queue.min_offset:
                ends[key] = queue.synced
        return ends

    def all_keys(self) -> set[QueueKey]:
        """Every queue there is, opened or not."""
        with self._lock:
            return self._on_disk | self.queues.keys()

    def _make(self, topic: bytes, queue_id: int) -> ConsumeQueue:
        folder = self._folder / topic.decode() / str(queue_id)
        return ConsumeQueue(
            topic,
            queue_id,
            folder=folder,
            files=self.files,
            file_units=self._file_units,
            sizes=self._sizes,
        )

    # -- expiry -------------------------------------------------------------------------------

    def expire(self, min_phy_offset: int) -> None:
        """The CommitLog starts here now: move queues' first offsets, then delete whole files.

        A queue that is opened meanwhile either is among those listed below, or is opened after
        the loader knows of the new start.
        """
        self.loader.min_phy_offset = min_phy_offset
        with self._lock:
            opened = list(self.queues.values())
        for queue in opened:
            try:
                queue.correct_min_offset(min_phy_offset)
            except StoreCorruptError as error:  # a lost file, or a topic that is being deleted
                _log.warning("first offset not corrected reason=%s", error)
        for key in self.all_keys():
            self._delete_expired_files(self._make(*key), min_phy_offset)
            if self.exts is not None and (found := self.find(*key)) is not None:
                self.exts.expire(found)

    def _delete_expired_files(self, queue: ConsumeQueue, min_phy_offset: int) -> None:
        """Files whose last unit has expired, but never the last one (deleteExpiredFileByOffset)."""
        names = [name for name in self._disk.names(queue.folder) if is_file_name(name)]
        for name in names[:-1]:
            last = queue.file_units - 1 + int(name) // UNIT_SIZE
            if self._peek_file(str(queue.folder), last) >= min_phy_offset:
                return
            self.files.remove(queue.folder / name)

    # -- flusher ------------------------------------------------------------------------------

    def mark_dirty(self, queue: ConsumeQueue) -> None:
        """After a publish: the flusher must come by. Send lane, or recovery before there is one.

        The flusher takes the mark off before it reads max_offset, so a publish that it misses sets
        the mark again.
        """
        if not queue.dirty:
            queue.dirty = True
            self.dirty.append(queue)

    def write_out_some(self) -> None:
        """Bring the published units of the queues that have waited longest to their files.

        A write costs as much for one unit as for a hundred, and 50,000 busy queues get one unit a
        second or less: if all were written each second, that would cost more than all the rest of
        a send. Nothing is lost by waiting: recovery derives units anew from the last checkpoint.
        """
        self._write_out(max(WRITE_OUT_ALL_MAX, len(self.dirty) // WRITE_OUT_ROUNDS))

    def write_out(self) -> None:
        """Bring the published units of every dirty queue to the files."""
        self._write_out(len(self.dirty))

    def _write_out(self, count_max: int) -> None:
        for _ in range(min(len(self.dirty), count_max)):
            queue = self.dirty.popleft()
            queue.dirty = False
            self._unsynced[queue] = None
            try:
                queue.write_out()
            except BaseException:
                self.mark_dirty(queue)
                raise

    def sync(self) -> None:
        """Make durable what was written out."""
        if self.exts is not None:
            self.exts.sync()
        if len(self._unsynced) > SYNC_EACH_MAX:
            self._disk.sync_all(self._folder)
            for queue in self._unsynced:
                queue.synced = queue.written
        for queue in self._unsynced:
            queue.sync()
        self._unsynced.clear()
