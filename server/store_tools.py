"""Looking at a store that no server runs on: `pyritemq store check` and `dump`. Changes nothing.

Called by store_cli on the main thread. The store's lock is held meanwhile, so a server that is
started is refused, and a store in use is refused here. What is found is a list of sentences, each
naming file and position.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING

from pyritemq.protocol.record import MAGIC_V1, MAGIC_V2
from pyritemq.storage.consume_queue import UNIT, UNIT_SIZE
from pyritemq.storage.deletions import TopicDeletions
from pyritemq.storage.derive import derive_tags_code, is_in_queue, parse_delay_levels
from pyritemq.storage.disk import RealDisk
from pyritemq.storage.errors import StoreUnusableError
from pyritemq.storage.mapped_file import MappedFile, file_name, is_file_name
from pyritemq.storage.record_codec import BadRecord, Blank, CheckedRecord, check_record

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from pyritemq.storage.config import StoreConfig

    Progress = Callable[[int], None]

PROBLEMS_MAX = 100
"""More are counted, not kept: a broken queue has as many as messages."""

SEARCH_BYTES = 1 << 20
"""Read at once while looking for the next record behind damage."""

WINDOW_UNITS = 512
WINDOWS_MAX = 4096
"""Units read at once, and for how many queues they are kept: 40 MB at most."""


_MAGICS = [magic.to_bytes(4, "big", signed=True) for magic in (MAGIC_V1, MAGIC_V2)]


@contextmanager
def locked(root: Path) -> Iterator[RealDisk]:
    """Hold the store's lock. Raises StoreLockedError if a server has it."""
    if not root.is_dir():
        raise StoreUnusableError(f"{root} is not a folder")
    disk = RealDisk()
    lock = disk.lock(root)
    try:
        yield disk
    finally:
        lock.release()


def guess_sizes(config: StoreConfig) -> None:
    """Take the sizes of files from the files themselves, as nobody remembers the configuration.

    Raises StoreUnusableError if the CommitLog's files do not tell: a wrong guess would do harm.
    """
    paths = log_paths(config)
    starts = [int(path.name) for path in paths]
    gap = min((after - before for before, after in pairwise(starts)), default=None)
    sizes = {path.stat().st_size for path in paths} - {0}
    fitting = [size for size in sizes if not any(start % size for start in starts)]
    fitting = [size for size in fitting if gap is None or size <= gap]
    if paths and not fitting:
        raise StoreUnusableError(
            f"the size of the files in {config.commit_log_dir} cannot be told: give -c"
        )
    config.commit_log_file_size = max(fitting, default=config.commit_log_file_size)
    queue_files = config.consume_queue_dir.glob("*/*/*")
    counted = Counter(path.stat().st_size for path in queue_files if is_file_name(path.name))
    counted.pop(0, None)
    if counted:
        config.consume_queue_file_units = counted.most_common(1)[0][0] // UNIT_SIZE


def log_paths(config: StoreConfig) -> list[Path]:
    """The CommitLog's files in their order. Raises StoreUnusableError if there is no CommitLog."""
    folders = [folder for folder in config.commit_log_dirs if folder.is_dir()]
    if not folders:
        folder = config.commit_log_dir
        raise StoreUnusableError(f"{config.root} holds no store: there is no folder {folder}")
    paths = [path for folder in folders for path in folder.iterdir() if is_file_name(path.name)]
    return sorted(paths, key=lambda path: path.name)


@dataclass(slots=True)
class CheckReport:
    """What a check found."""

    files: int = 0
    records: int = 0
    bytes_total: int = 0
    queues: int = 0
    units: int = 0
    clean_stop: bool = True
    behind: int = 0  # records whose unit a start after a crash will derive
    torn: str = ""  # where a crash left half a record
    problem_count: int = 0
    problems: list[str] = field(default_factory=list)

    def add(self, problem: str) -> None:
        self.problem_count += 1
        if len(self.problems) < PROBLEMS_MAX:
            self.problems.append(problem)


Found = tuple[MappedFile, int, CheckedRecord | Blank | BadRecord]


def open_files(
    disk: RealDisk, config: StoreConfig, tell: Callable[[str], None]
) -> list[MappedFile]:
    """The files that have the right size; what is wrong with the others is told."""
    files: list[MappedFile] = []
    expected: int | None = None
    for path in log_paths(config):
        start, size = int(path.name), path.stat().st_size
        if expected is not None and start != expected:
            tell(f"{path}: the file that starts at {expected} is missing before it")
        expected = start + config.commit_log_file_size
        if size != config.commit_log_file_size:
            tell(f"{path}: {size} bytes where {config.commit_log_file_size} belong")
            continue
        files.append(MappedFile(disk.open(path), from_offset=start, size=size))
    return files


def records(files: list[MappedFile], progress: Progress) -> Iterator[Found]:
    """Every record and filler in order, and each place where neither is (then the next file)."""
    for file in files:
        position = 0
        while position < file.size:
            offset = file.from_offset + position
            found = check_record(file.view, position, phy_offset=offset, check_crc=True)
            yield file, position, found
            if not isinstance(found, CheckedRecord):
                break
            position += found.size
            progress(found.size)
        progress(file.size - position)


def find_record(file: MappedFile, position: int) -> int | None:
    """Position of the next whole record or filler; a record also says itself where it lies."""
    while position < file.size:
        chunk = bytes(file.view[position : position + SEARCH_BYTES + 8])
        hits = sorted(hit for magic in _MAGICS for hit in _find_all(chunk, magic))
        for hit in hits:
            start = position + hit - 4
            if start >= 0 and is_record(file, start):
                return start
        position += SEARCH_BYTES
    return None


def _find_all(chunk: bytes, magic: bytes) -> list[int]:
    found = []
    at = chunk.find(magic, 4)
    while at >= 0:
        found.append(at)
        at = chunk.find(magic, at + 1)
    return found


def is_record(file: MappedFile, position: int) -> bool:
    offset = file.from_offset + position
    found = check_record(file.view, position, phy_offset=offset, check_crc=True)
    return isinstance(found, CheckedRecord)


class StoreCheck:
    """One check of one store."""

    def __init__(self, disk: RealDisk, config: StoreConfig) -> None:
        self._disk = disk
        self._config = config
        self._delay_levels = parse_delay_levels(config.message_delay_level)
        self._windows: OrderedDict[tuple[bytes, int], tuple[int, bytes]] = OrderedDict()
        self._ends: dict[tuple[bytes, int], int] = {}
        self._deletions = TopicDeletions(disk, config.root)
        self.report = CheckReport()

    def run(self, progress: Progress) -> CheckReport:
        report = self.report
        report.clean_stop = not (self._config.root / "abort").exists()
        self._deletions.load(min_phy_offset=0)
        files = open_files(self._disk, self._config, report.add)
        report.files = len(files)
        for file, position, found in records(files, progress):
            if isinstance(found, CheckedRecord):
                self._check_record(found)
            elif isinstance(found, BadRecord):
                self._check_end(file, position, found, is_last=file is files[-1])
        self._check_queue_files()
        return report

    def _check_record(self, record: CheckedRecord) -> None:
        self.report.records += 1
        self.report.bytes_total += record.size
        is_deleted = self._deletions.covers(record.topic, record.phy_offset)
        if is_deleted or not is_in_queue(record.sys_flag):
            return
        key = (record.topic, record.queue_id)
        self._ends[key] = record.queue_offset + 1
        code = derive_tags_code(
            record.topic, record.properties, record.store_timestamp, self._delay_levels
        )
        unit = self._unit(key, record.queue_offset)
        if unit == UNIT.pack(record.phy_offset, record.size, code):
            self.report.units += 1
        elif not any(unit) and not self.report.clean_stop:
            self.report.behind += 1
        else:
            name = f"{record.topic.decode('utf-8', 'replace')}/{record.queue_id}"
            fault = "is not" if any(unit) else "is missing"
            self.report.add(
                f"ConsumeQueue {name}: unit {record.queue_offset} {fault} that of the message at "
                f"{record.phy_offset}"
            )

    def _unit(self, key: tuple[bytes, int], offset: int) -> bytes:
        start, window = self._windows.get(key, (0, b""))
        if not start <= offset < start + len(window) // UNIT_SIZE:
            start, window = offset, self._read_units(key, offset)
            self._windows[key] = (start, window)
            if len(self._windows) > WINDOWS_MAX:
                self._windows.popitem(last=False)
        at = (offset - start) * UNIT_SIZE
        return window[at : at + UNIT_SIZE]

    def _read_units(self, key: tuple[bytes, int], offset: int) -> bytes:
        topic, queue_id = key
        file_units = self._config.consume_queue_file_units
        number, index = divmod(offset, file_units)
        folder = self._config.consume_queue_dir / topic.decode("utf-8", "replace") / str(queue_id)
        path = folder / file_name(number * file_units * UNIT_SIZE)
        size = min(WINDOW_UNITS, file_units - index) * UNIT_SIZE
        found = self._disk.peek(str(path), index * UNIT_SIZE, size)
        return b"" if found is None else found[1]

    def _check_end(self, file: MappedFile, position: int, bad: BadRecord, *, is_last: bool) -> None:
        """Zeroes are how the last file ends, and half a record is how it ends after a crash."""
        if is_last and not bad.reason:
            return
        place = f"{file.path}: damaged at position {position}"
        is_torn = is_last and not self.report.clean_stop and find_record(file, position + 1) is None
        if is_torn:
            self.report.torn = f"{place} by the crash ({bad.reason}): the next start cuts it off"
        else:
            self.report.add(f"{place} ({bad.reason or 'a record is missing'})")

    def _check_queue_files(self) -> None:
        file_size = self._config.consume_queue_file_units * UNIT_SIZE
        for folder in sorted(self._config.consume_queue_dir.glob("*/*")):
            if not folder.name.isdecimal():
                continue
            self.report.queues += 1
            for path in folder.iterdir():
                if is_file_name(path.name) and path.stat().st_size != file_size:
                    self.report.add(f"{path}: {path.stat().st_size} bytes, not {file_size}")
            if self.report.clean_stop:  # after a crash the start drops such units
                self._check_beyond(folder)

    def _check_beyond(self, folder: Path) -> None:
        """A unit behind that of the last message points to nothing."""
        key = (folder.parent.name.encode(), int(folder.name))
        end = self._ends.get(key)
        if end is not None and any(self._read_units(key, end)[:UNIT_SIZE]):
            self.report.add(f"ConsumeQueue {folder}: unit {end} has no message")
