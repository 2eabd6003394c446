"""All ConsumeQueues of the store, by topic and queue id, each opened when it is first asked for.

The dict only grows, and only under the lock; look-ups without it see a queue or do not. The send lane asks for a queue
to write (find_or_create), readers for one to read (find).
"""

import threading
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path

from pyritemq.storage.consume_queue import ConsumeQueue
from pyritemq.storage.disk import Disk
from pyritemq.storage.file_cache import FileCache

QueueKey = tuple[bytes, int]


class QueueTable:
    """Opened queues, and the names of those that only lie on disk."""

    def __init__(self, disk: Disk, folder: Path, *, file_units: int) -> None:
        self._disk = disk
        self._folder = folder
        self._file_units = file_units
        self._lock = threading.Lock()
        self.files = FileCache(disk)
        self.queues: dict[QueueKey, ConsumeQueue] = {}
        self.on_disk: set[QueueKey] = set()
        self.dirty: deque[ConsumeQueue] = deque()  # written to since the flusher last came by
        self.load_queue: Callable[[ConsumeQueue], None] = lambda queue: None

    def find(self, topic: bytes, queue_id: int) -> ConsumeQueue | None:
        key = (topic, queue_id)
        queue = self.queues.get(key)
        if queue is None and key in self.on_disk:
            return self.find_or_create(topic, queue_id)
        return queue

    def find_or_create(self, topic: bytes, queue_id: int) -> ConsumeQueue:
        key = (topic, queue_id)
        with self._lock:
            queue = self.queues.get(key)
            if queue is None:
                queue = self._open(topic, queue_id)
                if key in self.on_disk:
                    self.load_queue(queue)
                self.queues[key] = queue
            return queue

    def keys(self) -> set[QueueKey]:
        """Every queue there is, opened or not."""
        with self._lock:
            return self.on_disk | self.queues.keys()

    def take_dirty(self) -> Iterator[ConsumeQueue]:
        """The queues to write out. The mark goes first: what is published after that sets it again."""
        for _ in range(len(self.dirty)):
            queue = self.dirty.popleft()
            queue.dirty = False
            yield queue

    def scan(self) -> None:
        """List the queues on disk; a store of 50,000 is ready without opening one."""
        for topic in self._disk.names(self._folder):
            for name in self._disk.names(self._folder / topic):
                if name.isdecimal():
                    self.on_disk.add((topic.encode(), int(name)))

    def _open(self, topic: bytes, queue_id: int) -> ConsumeQueue:
        folder = self._folder / topic.decode() / str(queue_id)
        return ConsumeQueue(
            topic, queue_id, folder=folder, files=self.files, file_units=self._file_units
        )
