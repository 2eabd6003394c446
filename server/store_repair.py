"""Mending a store that no server runs on: `pyritemq store repair` and `rebuild`.

Called by store_cli on the main thread. Rebuilding deletes what is derived (ConsumeQueues, index,
checkpoint) and lets the store's own recovery make it anew from the CommitLog. Repairing first makes
the CommitLog one unbroken run of records again, so that what lies behind damage can be served:

    damage between records      a record of the same length in its place, that no queue knows of
    damage up to a file's end   a filler, as at the end of every file
    a missing file              a file that is one filler
    a file that is too short    grown, then as above

Damaged bytes are copied to the folder `cut` first. A torn end is left to recovery, which cuts it.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING
from zlib import crc32

from pyritemq.protocol.record import MAGIC_V1, TRANSACTION_PREPARED
from pyritemq.server.store_tools import find_record, is_record, log_paths
from pyritemq.storage.errors import StoreUnusableError
from pyritemq.storage.mapped_file import MappedFile, file_name
from pyritemq.storage.message_store import MessageStore
from pyritemq.storage.queue_ends import NAME as QUEUE_ENDS
from pyritemq.storage.record_codec import (
    BLANK_MIN,
    HEAD_V4,
    LENGTH_I16,
    BadRecord,
    Blank,
    CheckedRecord,
    check_record,
    pack_blank,
    topic_field,
)
from pyritemq.storage.salvage import keep_tail

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyritemq.server.store_tools import Progress
    from pyritemq.storage.config import StoreConfig
    from pyritemq.storage.disk import RealDisk

STAND_IN_TOPIC = b"_"
STAND_IN_MIN = HEAD_V4.size + len(topic_field(STAND_IN_TOPIC)) + LENGTH_I16.size
HOST = bytes(8)
INDEX_STEP_BYTES = 64 << 20


@dataclass(slots=True)
class RepairReport:
    """What was done, as sentences."""

    done: list[str] = field(default_factory=list)


def pack_stand_in(size: int, phy_offset: int, timestamp: int) -> bytes:
    """A record of exactly this size that is in no queue: a transaction half without its end."""
    body = bytes(size - STAND_IN_MIN)
    head = HEAD_V4.pack(
        size,
        MAGIC_V1,
        crc32(body) & 0x7FFFFFFF,
        0,
        0,
        0,
        phy_offset,
        TRANSACTION_PREPARED,
        timestamp,
        HOST,
        timestamp,
        HOST,
        0,
        0,
        len(body),
    )
    return head + body + topic_field(STAND_IN_TOPIC) + LENGTH_I16.pack(0)


class Repair:
    """One repair of one CommitLog."""

    def __init__(self, disk: RealDisk, config: StoreConfig) -> None:
        self._disk = disk
        self._config = config
        self._timestamp = 0
        self.report = RepairReport()

    def run(self, progress: Progress) -> RepairReport:
        """Raises StoreUnusableError for a file that is larger than the others."""
        files = self._whole_files()
        for index, file in enumerate(files):
            has_followers = any(is_record(later, 0) for later in files[index + 1 :])
            self._mend_file(file, progress, has_followers=has_followers)
        return self.report

    # -- files --------------------------------------------------------------------------------

    def _whole_files(self) -> list[MappedFile]:
        size = self._config.commit_log_file_size
        paths = log_paths(self._config)
        if not paths:
            return []
        known = {path.name: path for path in paths}
        files: list[MappedFile] = []
        for start in range(int(paths[0].name), int(paths[-1].name) + size, size):
            name = file_name(start)
            path = known.get(name, self._config.commit_log_dir / name)
            is_there = path.exists()
            found = path.stat().st_size if is_there else 0
            if found > size:
                raise StoreUnusableError(f"{path} has {found} bytes where {size} belong")
            file = self._disk.open(path, create=True)
            if found < size:
                file.resize(size)
            if not is_there:
                file.write_at(0, pack_blank(size))
                self.report.done.append(f"{path}: was missing, and is an empty file now")
            elif found < size:
                self.report.done.append(f"{path}: had {found} bytes, and has {size} now")
            files.append(MappedFile(file, from_offset=start, size=size))
        return files

    # -- records ------------------------------------------------------------------------------

    def _mend_file(self, file: MappedFile, progress: Progress, *, has_followers: bool) -> None:
        position = 0
        while position < file.size:
            offset = file.from_offset + position
            found = check_record(file.view, position, phy_offset=offset, check_crc=True)
            if isinstance(found, Blank):
                break
            if isinstance(found, CheckedRecord):
                self._timestamp = found.store_timestamp
                end = position + found.size
            else:
                end = self._mend(file, position, found, has_followers=has_followers)
            progress(end - position)
            if end == position:
                break
            position = end
        progress(file.size - position)

    def _mend(self, file: MappedFile, position: int, bad: BadRecord, *, has_followers: bool) -> int:
        """Put something in the place of damage; returns where that ends (here, if at the end)."""
        end = find_record(file, position + STAND_IN_MIN)
        offset = file.from_offset + position
        if end is not None:
            patch = pack_stand_in(end - position, offset, self._timestamp)
        elif has_followers and position + BLANK_MIN <= file.size:
            end = file.size
            patch = pack_blank(end - position)
        else:
            return position
        kept = keep_tail(self._disk, self._config.root, file, offset, end=file.from_offset + end)
        file.write(position, patch)
        file.sync()
        self.report.done.append(
            f"{file.path}: {end - position} bytes at position {position} were damaged "
            f"({bad.reason or 'zeroes'}); {f'a copy is in {kept}' if kept else 'they were zeroes'}"
        )
        return end


def drop_derived(config: StoreConfig) -> None:
    """Delete ConsumeQueues, index and checkpoint; the next start makes them from the CommitLog."""
    for name in ("consumequeue", "index"):
        shutil.rmtree(config.root / name, ignore_errors=True)
    for name in ("checkpoint", QUEUE_ENDS):
        (config.root / name).unlink(missing_ok=True)


def open_and_close(
    config: StoreConfig, now_ms: Callable[[], int], progress: Progress
) -> MessageStore:
    """Let the store recover, index and stop; the lock must be free."""
    reached = int(next(iter(log_paths(config)), Path("0")).name)

    def on_progress(offset: int) -> None:
        nonlocal reached
        progress(max(offset - reached, 0))
        reached = max(offset, reached)

    store = MessageStore.open(config, now_ms=now_ms, on_progress=on_progress)
    try:
        lag = store.index.lag_bytes
        while lag:
            store.index.catch_up(INDEX_STEP_BYTES)
            left = store.index.lag_bytes
            progress(lag - left)
            if left >= lag:
                break
            lag = left
    finally:
        store.close()
    return store
