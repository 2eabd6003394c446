"""Opens a ConsumeQueue that lies on disk: finds its end and its first valid unit.

Called when a queue is first asked for, on whatever lane that is, under the table's lock; after a
crash recovery calls it for every queue. The end is found by bisection: units count as present while
they have a size and point below `limit`, the offset from which recovery derives units anew.
"""

from pyritemq.storage.consume_queue import UNIT, UNIT_SIZE, ConsumeQueue, first_live
from pyritemq.storage.disk import Disk, DiskFile
from pyritemq.storage.errors import StoreCorruptError
from pyritemq.storage.file_cache import FileCache
from pyritemq.storage.mapped_file import is_file_name


class QueueLoader:
    """How recovery wants queues to be opened."""

    def __init__(self, disk: Disk, files: FileCache) -> None:
        self._disk = disk
        self._files = files
        self.limit = 0  # units that point at or beyond this CommitLog offset are derived anew
        self.min_phy_offset = 0  # units that point below it are expired
        self.always_cut = False  # after a crash: clear what lies behind the end, seen or not

    def load(self, queue: ConsumeQueue) -> None:
        """Bring the queue to the state of its files. Raises StoreCorruptError, naming the file."""
        starts = self._file_starts(queue)
        end = starts[0] if starts else 0
        while starts:
            file = self._files.open(queue.file_path(starts[-1]))
            count = self._count_present(file, queue.file_units)
            if count or len(starts) == 1:
                end = starts[-1] + count
                self._cut(queue, file, count)
                break
            self._files.remove(queue.file_path(starts.pop()))
        queue.start_at(end, min_offset=self._min_offset(queue, starts, end))

    def restart(self, queue: ConsumeQueue, offset: int) -> None:
        """Let a queue that holds no valid unit begin at this offset, as if it were new."""
        for start in self._file_starts(queue):
            self._files.remove(queue.file_path(start))
        queue.start_at(offset, min_offset=offset)
        queue.fill_blanks(offset)

    def _file_starts(self, queue: ConsumeQueue) -> list[int]:
        """Queue offsets at which the files start; checks that their sizes are right."""
        starts = []
        names = [name for name in self._disk.names(queue.folder) if is_file_name(name)]
        for name in names:
            start = int(name) // UNIT_SIZE
            size = self._files.open(queue.file_path(start)).size()
            if size == 0 and name == names[-1]:  # made but never sized before a crash
                self._files.remove(queue.file_path(start))
            elif size != queue.file_size:
                raise StoreCorruptError(
                    f"the file {queue.folder / name} has {size} bytes, not {queue.file_size}"
                )
            else:
                starts.append(start)
        return starts

    def _count_present(self, file: DiskFile, file_units: int) -> int:
        low, high = 0, file_units
        while low < high:
            middle = (low + high) // 2
            phy_offset, size, _ = UNIT.unpack(file.read_at(middle * UNIT_SIZE, UNIT_SIZE))
            if size > 0 and 0 <= phy_offset < self.limit:
                low = middle + 1
            else:
                high = middle
        return low

    def _cut(self, queue: ConsumeQueue, file: DiskFile, count: int) -> None:
        """Clear the units behind the end, or a later start could take them for good ones."""
        position = count * UNIT_SIZE
        if self.always_cut or any(file.read_at(position, UNIT_SIZE)):
            file.resize(position)
            file.resize(queue.file_size)

    def _min_offset(self, queue: ConsumeQueue, starts: list[int], end: int) -> int:
        """The first unit whose record is still in the CommitLog; end if there is none."""

        def read(offset: int, count: int) -> bytes:
            file = self._files.open(queue.file_path(offset))
            index = offset % queue.file_units
            return file.read_at(index * UNIT_SIZE, min(count, queue.file_units - index) * UNIT_SIZE)

        low = starts[0] if starts else end
        return first_live(read, low, end, min_phy_offset=self.min_phy_offset)
