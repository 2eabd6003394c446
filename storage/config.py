"""The store's settings, with the Java broker's defaults (MessageStoreConfig, 5.5.0).

Built by the server from broker.conf and handed to MessageStore.open; MessageStore.configure changes
them in a running store, one by one, so every thread may read them.
"""

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

FlushDiskType = Literal["ASYNC_FLUSH", "SYNC_FLUSH"]

DELAY_LEVELS = "1s 5s 10s 30s 1m 2m 3m 4m 5m 6m 7m 8m 9m 10m 20m 30m 1h 2h"


def physical_memory_size() -> int:
    """Bytes of RAM; Java's StoreUtil.TOTAL_PHYSICAL_MEMORY_SIZE."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


@dataclass(slots=True, kw_only=True)
class StoreConfig:
    """Where the store lies, how large its files are, when it syncs, and what it refuses."""

    root: Path
    commit_log_paths: tuple[Path, ...] = ()  # storePathCommitLog; none: root/commitlog
    commit_log_read_only_paths: tuple[Path, ...] = ()  # readOnlyCommitLogStorePaths
    commit_log_file_size: int = 1 << 30  # mappedFileSizeCommitLog
    warm_file_enable: bool = False  # warmMapedFileEnable
    consume_queue_file_units: int = 300_000  # mappedFileSizeConsumeQueue / 20

    enable_consume_queue_ext: bool = False
    consume_queue_ext_file_size: int = 48 << 20  # mappedFileSizeConsumeQueueExt

    flush_disk_type: FlushDiskType = "ASYNC_FLUSH"
    flush_interval_commit_log_ms: int = 500
    flush_commit_log_least_pages: int = 4
    flush_commit_log_thorough_interval_ms: int = 10_000
    flush_interval_consume_queue_ms: int = 1_000
    flush_consume_queue_thorough_interval_ms: int = 60_000
    sync_flush_timeout_ms: int = 5_000

    file_reserved_hours: int = 72  # fileReservedTime
    delete_when: str = "04"  # hours of the day, separated by ;
    clean_resource_interval_ms: int = 10_000
    delete_file_batch_max: int = 10
    delete_commit_log_files_interval_ms: int = 100
    destroy_mapped_file_interval_forcibly_ms: int = 120_000  # destroyMapedFileIntervalForcibly
    redelete_hanged_file_interval_ms: int = 120_000
    clean_file_forcibly_enable: bool = True
    disk_max_used_space_ratio: int = 75
    disk_space_clean_forcibly_ratio: int = 85
    disk_space_warning_level_ratio: int = 90

    message_size_max: int = 4 << 20  # maxMessageSize: the body; a record may be 64 KiB larger
    check_crc_on_recover: bool = True
    message_delay_level: str = DELAY_LEVELS

    message_index_enable: bool = True  # off: nothing is added to the index any more
    index_slots: int = 5_000_000  # maxHashSlotNum
    index_items: int = 20_000_000  # maxIndexNum
    query_count_max: int = 64  # maxMsgsNumBatch: records that one query by key returns

    filter_bytes_max: int = 16_000  # maxFilterMessageSize: bytes of ConsumeQueue read for one get
    transfer_bytes_max_in_memory: int = 256 << 10
    transfer_count_max_in_memory: int = 32
    transfer_bytes_max_in_disk: int = 64 << 10
    transfer_count_max_in_disk: int = 8
    access_message_in_memory_max_ratio: int = 40
    memory_size: int = field(default_factory=physical_memory_size)

    @property
    def commit_log_dir(self) -> Path:
        """The CommitLog's folder, or the first of several."""
        return (*self.commit_log_paths, self.root / "commitlog")[0]

    @property
    def commit_log_write_dirs(self) -> tuple[Path, ...]:
        """Where new files of the CommitLog may go."""
        read_only = set(self.commit_log_read_only_paths)
        paths = self.commit_log_paths or (self.root / "commitlog",)
        return tuple(sorted(set(paths) - read_only, key=str))

    @property
    def commit_log_dirs(self) -> tuple[Path, ...]:
        """Wherever files of the CommitLog may lie."""
        return tuple(dict.fromkeys((*self.commit_log_write_dirs, *self.commit_log_read_only_paths)))

    @property
    def consume_queue_dir(self) -> Path:
        return self.root / "consumequeue"

    @property
    def consume_queue_ext_dir(self) -> Path:
        return self.root / "consumequeue_ext"

    @property
    def index_dir(self) -> Path:
        return self.root / "index"

    @property
    def in_memory_bytes(self) -> int:
        """How far behind the end of the CommitLog a record still counts as being in memory."""
        return int(self.memory_size * (self.access_message_in_memory_max_ratio / 100.0))
