"""Deletes files that have expired, and says when the disk is too full to take messages.

Java: DefaultMessageStore.CleanCommitLogService and ConsumeQueueStore.CleanConsumeQueueService of
5.5.0. The background thread calls MessageStore.housekeep, which calls run() when it is due; the
decisions (judge_space, is_delete_hour, deletable) are plain functions of numbers.

How full the disk is, and what happens then:

    diskMaxUsedSpaceRatio 75 %        expired files go at any hour, not only at deleteWhen's
    diskSpaceCleanForciblyRatio 85 %  the oldest files go, expired or not (cleanFileForcibly…)
    diskSpaceWarningLevelRatio 90 %   the same, and no message is taken until it is 85 % or less

A deleted file is gone by name at once, and its blocks go with the last slice of it that a reader
holds. So nothing here waits for readers, as Java's destroy does; a file whose slices are still held
after destroyMapedFileIntervalForcibly is told about, since its space is not free.
"""

import logging
import threading
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Final, NamedTuple

from pyritemq.storage.commit_log import CommitLog
from pyritemq.storage.config import StoreConfig
from pyritemq.storage.disk import Disk
from pyritemq.storage.mapped_file import MappedFile
from pyritemq.storage.queue_table import QueueTable

if TYPE_CHECKING:
    import weakref

MANUAL_ROUNDS: Final = 20  # MAX_MANUAL_DELETE_FILE_TIMES
FIRST_DELAY_MS: Final = 60_000  # DefaultMessageStore.addScheduleTask
HOUR_MS: Final = 3_600_000

_log = logging.getLogger(__name__)


class Levels(NamedTuple):
    """Used parts of a disk, between 0 and 1."""

    reclaim: float
    clean_forcibly: float
    warning: float


class Space(NamedTuple):
    """What the disks' use asks for; is_full is None where it stays as it was."""

    is_full: bool | None
    clean_at_once: bool
    reclaim: bool


def levels(config: StoreConfig) -> Levels:
    """The three levels; the upper two are held within Java's bounds."""
    return Levels(
        config.disk_max_used_space_ratio / 100,
        min(max(config.disk_space_clean_forcibly_ratio / 100, 0.30), 0.85),
        min(max(config.disk_space_warning_level_ratio / 100, 0.35), 0.90),
    )


def judge_space(log_ratio: float, queues_ratio: float, at: Levels) -> Space:
    """CleanCommitLogService.isSpaceToDelete; a ratio below 0 is one that could not be had."""
    for ratio, is_full_between in ((log_ratio, None), (queues_ratio, False)):
        if ratio > at.warning:
            return Space(True, clean_at_once=True, reclaim=True)
        if ratio > at.clean_forcibly:
            return Space(is_full_between, clean_at_once=True, reclaim=True)
    lowest, highest = sorted((log_ratio, queues_ratio))
    return Space(False, clean_at_once=False, reclaim=lowest < 0 or highest > at.reclaim)


def is_delete_hour(delete_when: str, now_ms: int) -> bool:
    """Whether the hour, in the server's zone, is one of deleteWhen's ("04", "02;14")."""
    hour = datetime.fromtimestamp(now_ms / 1000).astimezone().hour
    return any(int(part) == hour for part in delete_when.split(";") if part.strip().isdigit())


def deletable(
    files: Sequence[MappedFile], *, now_ms: int, reserved_ms: int, at_once: bool, count_max: int
) -> list[MappedFile]:
    """The oldest files that may go, never the last one, and none behind one that must stay."""
    found: list[MappedFile] = []
    for file in files[:-1]:
        if len(found) >= count_max or not (at_once or now_ms >= file.modified_ms() + reserved_ms):
            break
        found.append(file)
    return found


class Expiry:
    """One store's cleaner; run() belongs to the background thread."""

    def __init__(
        self,
        config: StoreConfig,
        disk: Disk,
        log: CommitLog,
        table: QueueTable,
        now_ms: Callable[[], int],
    ) -> None:
        self._config = config
        self._disk = disk
        self._log = log
        self._table = table
        self._now_ms = now_ms
        self._due_ms = now_ms() + FIRST_DELAY_MS
        self._manual_rounds = 0
        self._pause = threading.Event()  # never set: it only waits
        self._queues_cleaned_to = 0
        self._held: list[tuple[weakref.ref[object], str, int]] = []
        self._held_due_ms = 0
        self.is_disk_full = False

    def is_due(self) -> bool:
        """Once every cleanResourceInterval, the first time after a minute, as in Java."""
        now = self._now_ms()
        interval = self._config.clean_resource_interval_ms
        if self._due_ms - max(interval, FIRST_DELAY_MS) <= now < self._due_ms:
            return False
        self._due_ms = now + interval
        return True

    def delete_manually(self) -> None:
        """Delete expired files in the next rounds, whatever the hour (mqadmin asks for it)."""
        self._manual_rounds = MANUAL_ROUNDS

    def run(self) -> bool:
        """Look at the disk, delete what may go; True if the CommitLog's start moved."""
        space = self._look_at_disk()
        now = self._now_ms()
        if space.reclaim or self._manual_rounds or is_delete_hour(self._config.delete_when, now):
            self._manual_rounds = max(self._manual_rounds - 1, 0)
            self._delete_files(space, now)
        self._tell_of_held_files(now)
        return self._clean_queues()

    # -- the disk -----------------------------------------------------------------------------

    def _look_at_disk(self) -> Space:
        config = self._config
        log_ratio = self._look_at_log_folders()
        queues_ratio = self._disk.used_ratio(config.root)
        space = judge_space(log_ratio, queues_ratio, levels(config))
        if space.is_full is not None and space.is_full != self.is_disk_full:
            self.is_disk_full = space.is_full
            _log.log(
                logging.ERROR if space.is_full else logging.WARNING,
                "disk %s used=%.2f queues_used=%.2f warning_level=%.2f",
                "full, sends are refused" if space.is_full else "has space again",
                log_ratio,
                queues_ratio,
                levels(config).warning,
            )
        return space

    def _look_at_log_folders(self) -> float:
        """The use of the emptiest disk counts; new files keep away from those that are too full."""
        folders = self._config.commit_log_write_dirs
        ratios = {folder: self._disk.used_ratio(folder) for folder in folders}
        limit = levels(self._config).clean_forcibly
        full = frozenset(folder for folder, ratio in ratios.items() if ratio > limit)
        if full != self._log.files.full_folders:
            _log.warning("CommitLog folders nearly full: %s", ", ".join(map(str, full)) or "none")
            self._log.files.full_folders = full
        return min(ratios.values())

    # -- the CommitLog ------------------------------------------------------------------------

    def _delete_files(self, space: Space, now: int) -> None:
        config = self._config
        files = deletable(
            self._log.files.files,
            now_ms=now,
            reserved_ms=config.file_reserved_hours * HOUR_MS,
            at_once=space.clean_at_once and config.clean_file_forcibly_enable,
            count_max=config.delete_file_batch_max,
        )
        if space.reclaim and not files:
            _log.warning("disk will be full soon, but no file may be deleted")
        for number, file in enumerate(files):
            if number:
                # freeing a large file is work for the disk, which others want, too
                self._pause.wait(config.delete_commit_log_files_interval_ms / 1000)
            try:
                self._log.files.drop_first(file)
            except OSError as error:  # Java: a hanged file; it is tried again in the next round
                _log.error("file not deleted file=%s reason=%s", file.path, error)
                return
            _log.info("file deleted file=%s at_once=%s", file.path, space.clean_at_once)
            self._held.append((file.mapping_ref(), str(file.path), now))

    def _tell_of_held_files(self, now: int) -> None:
        self._held = [held for held in self._held if held[0]() is not None]
        if now < self._held_due_ms:
            return
        self._held_due_ms = now + self._config.redelete_hanged_file_interval_ms
        for _, name, deleted_ms in self._held:
            if now - deleted_ms >= self._config.destroy_mapped_file_interval_forcibly_ms:
                seconds = (now - deleted_ms) // 1000
                _log.warning("deleted file still read file=%s seconds=%d", name, seconds)

    # -- what is derived from it --------------------------------------------------------------

    def _clean_queues(self) -> bool:
        min_offset = self._log.min_offset
        if min_offset <= self._queues_cleaned_to:
            return False
        self._queues_cleaned_to = min_offset
        self._table.expire(min_offset)
        return True
