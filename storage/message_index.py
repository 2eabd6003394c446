"""Messages by key: builds the index from the CommitLog behind the send lane's back, and queries it.

Java's reput thread indexes every message as it comes. Here that would take a quarter of what a send
costs, from the same interpreter, for the sake of queries that are rare. So the index may lag: the
background thread goes on with it while the server has little to do, and otherwise only if it lags
by more than LAG_BYTES_MAX. A query looks into the index for what is in it and searches the rest of
the CommitLog itself (index_tail.py): it finds what was sent just now, whatever the lag.

Threads: work, sync, catch_up and delete_expired under the lock; find on any lane, without it.
A query reads indexed_offset before it looks into the files; the builder publishes it after they are
written. So nothing is missed, and what is found on both sides counts once.
"""

import logging
import os
import sys
import threading
from collections.abc import Callable

from pyritemq.storage.checkpoint import Checkpoint
from pyritemq.storage.commit_log import CommitLog
from pyritemq.storage.config import StoreConfig
from pyritemq.storage.disk import Disk
from pyritemq.storage.errors import StorageError
from pyritemq.storage.index_file import Entry
from pyritemq.storage.index_keys import KeyHasher, RecordKeys, index_hash, read_keys
from pyritemq.storage.index_table import FoundOffsets, IndexTable
from pyritemq.storage.index_tail import KeyQuery, find_in_tail
from pyritemq.storage.mapped_file import MappedFile
from pyritemq.storage.messages import QueryResult
from pyritemq.storage.record_codec import BadRecord, Blank

BUSY_BYTES = 1 << 20  # ours: sent between two rounds; some 6,000 small messages a second
BUSY_CPU_SECONDS = 0.1  # ours: used by the process between two rounds, half a second apart
LAG_BYTES_MAX = 1 << 30  # ours: a query searches so much in about a second
ROUND_RECORDS = 25_000  # ours: indexed in one round: some 0.2 s
STOP_RECORDS = 250_000  # ours: indexed at the stop: some 2 s
BATCH_RECORDS = 8_000  # ours: put at once, so that neighbouring slots share a write
PAUSE_RECORDS = 50  # ours: a quarter of a millisecond of work, then
PAUSE_SECONDS = 0.000_05  # others who wait for the interpreter get their turn

_log = logging.getLogger(__name__)


def cpu_seconds() -> float:
    """CPU time of this process."""
    times = os.times()
    return times.user + times.system


class MessageIndex:
    """The index files, how far they have come, and the way to ask them."""

    def __init__(
        self,
        disk: Disk,
        config: StoreConfig,
        log: CommitLog,
        checkpoint: Checkpoint,
        now_ms: Callable[[], int],
    ) -> None:
        self._log = log
        self._checkpoint = checkpoint
        self._now_ms = now_ms
        self.configure(config)
        self._hasher = KeyHasher()
        self._lock = threading.Lock()
        self._stopping = threading.Event()
        self._seen_end = 0
        self._synced_count = -1
        self._is_failing = False
        self._cpu_before = cpu_seconds()
        self.table = IndexTable(
            disk,
            config.index_dir,
            slots=config.index_slots,
            items=config.index_items,
            now_ms=now_ms,
        )
        self.indexed_offset = 0  # published: records below it are in the files

    def configure(self, config: StoreConfig) -> None:
        """Heed these settings from now on.  Any thread."""
        self._enabled = config.message_index_enable
        self._count_max = config.query_count_max

    def load(self, *, clean_stop: bool) -> None:
        """After recovery: open the files and find where to go on."""
        synced_until = None if clean_stop else self._checkpoint.index_msg_timestamp
        self.table.load(synced_until=synced_until, log_end=self._log.max_offset)
        self._seen_end = self._log.max_offset
        self.indexed_offset = self._resume_offset()

    def _resume_offset(self) -> int:
        last = self.table.end_phy_offset
        if last < self._log.min_offset:
            return self._log.min_offset
        file = self._log.files.find(last)
        found = file and read_keys(file.view, last - file.from_offset, last)
        if isinstance(found, RecordKeys):
            return last + found.size
        _log.warning("index does not belong to the CommitLog, built anew offset=%d", last)
        self.table.drop()
        return self._log.min_offset

    @property
    def lag_bytes(self) -> int:
        """How much of the CommitLog has no entries yet."""
        return max(self._log.max_offset - self.indexed_offset, 0) if self._enabled else 0

    # -- background thread --------------------------------------------------------------------

    def work(self) -> None:
        """One round of the background thread: as much as the load leaves room for."""
        lag_max = LAG_BYTES_MAX if self._is_busy() else 0
        if self.lag_bytes > lag_max:
            self._try(self.lag_bytes - lag_max)
        self._cpu_before = cpu_seconds()

    def _is_busy(self) -> bool:
        """Whether much was sent, or done for clients in any other way, since the last round."""
        end = self._log.max_offset
        grown, self._seen_end = end - self._seen_end, end
        return grown > BUSY_BYTES or cpu_seconds() - self._cpu_before > BUSY_CPU_SECONDS

    def _try(self, wanted: int) -> None:
        """A full disk stops the index, not the rest of the background work; queries go on."""
        try:
            self.catch_up(wanted, records_max=ROUND_RECORDS, pause_seconds=PAUSE_SECONDS)
        except (StorageError, OSError) as error:
            if not self._is_failing:
                _log.warning("index cannot be written reason=%s", error)
            self._is_failing = True
        else:
            self._is_failing = False

    def catch_up(
        self,
        bytes_max: int = sys.maxsize,
        *,
        records_max: int = sys.maxsize,
        pause_seconds: float = 0,
    ) -> None:
        """Index so much of the CommitLog, or as far as it goes. Raises DiskFullError."""
        if not self._enabled:
            return
        with self._lock:
            offset = max(self.indexed_offset, self._log.min_offset)
            stop = min(offset + bytes_max, self._log.max_offset)
            while offset < stop and records_max > 0:
                entries: list[Entry] = []
                count = min(records_max, BATCH_RECORDS)
                records_max -= count
                end = self._collect(offset, stop, entries, count, pause_seconds)
                if end == offset:  # the file expired just now; the next round goes on behind it
                    break
                offset = end
                for file in self.table.put(entries):
                    file.sync()
                    self._checkpoint.index_msg_timestamp = file.header.end_timestamp
                self.indexed_offset = offset

    def _collect(
        self, offset: int, stop: int, entries: list[Entry], count: int, pause_seconds: float
    ) -> int:
        """Entries of up to so many records from offset on; returns where the batch ends."""
        file = self._log.files.find(offset)
        while file is not None and offset < stop and count:
            record = read_keys(file.view, offset - file.from_offset, offset)
            if not isinstance(record, RecordKeys):
                offset = self._next_file(file, offset, record)
                file = self._log.files.find(offset)
                continue
            timestamp = record.store_timestamp
            entries += [(key, offset, timestamp) for key in self._hasher.hashes(record)]
            offset += record.size
            count -= 1
            if offset == file.end_offset:
                file = self._log.files.find(offset)
            if pause_seconds and count % PAUSE_RECORDS == 0:
                self._stopping.wait(pause_seconds)
        return offset

    def _next_file(self, file: MappedFile, offset: int, found: Blank | BadRecord) -> int:
        if isinstance(found, BadRecord):
            _log.error(
                "index skips the rest of a damaged file file=%s position=%d reason=%s",
                file.path,
                offset - file.from_offset,
                found.reason,
            )
        return min(file.end_offset, self._log.max_offset)

    def finish(self) -> None:
        """At a clean stop: index the rest, for a Java broker would never come back to it.

        After a great load that is more than a stop has time for. What is left then is in the
        index after a while of our next run, but not for a Java broker that starts in between.
        """
        self._stopping.set()
        try:
            self.catch_up(records_max=STOP_RECORDS)
        except (StorageError, OSError) as error:
            _log.warning("index is left behind bytes=%d reason=%s", self.lag_bytes, error)

    def sync(self) -> None:
        """Make the index durable and note in the checkpoint up to which time it is.

        The time is noted only if no entry of the same millisecond can follow.
        """
        with self._lock:
            if not self.table.files:
                return
            last = self.table.files[-1]
            if last.header.index_count != self._synced_count:
                last.sync()
                self._synced_count = last.header.index_count
            end = last.header.end_timestamp
            if not self.lag_bytes and self._now_ms() > end:
                self._checkpoint.index_msg_timestamp = end

    def delete_expired(self, min_phy_offset: int) -> int:
        """Delete files whose records have all left the CommitLog; how many those were."""
        with self._lock:
            return self.table.delete_expired(min_phy_offset)

    # -- any lane -----------------------------------------------------------------------------

    def query(
        self,
        topic: str,
        key: str,
        count_max: int,
        *,
        begin: int,
        end: int,
        index_type: str | None = None,
    ) -> QueryResult:
        """Records with the key, oldest first (DefaultMessageStore.queryMessage).

        Java looks three times if all that was found is gone from the CommitLog, each time for the
        same; once is enough.
        """
        found = self.find(
            topic, key, min(count_max, self._count_max), begin=begin, end=end, index_type=index_type
        )
        if not found.offsets:
            return QueryResult([], 0, 0)
        records = [self._log.record(offset) for offset in sorted(found.offsets)]
        return QueryResult([record for record in records if record is not None], *found[1:])

    def find(
        self,
        topic: str,
        key: str,
        count_max: int,
        *,
        begin: int,
        end: int,
        index_type: str | None = None,
    ) -> FoundOffsets:
        """Offsets of the newest records with the key stored in [begin, end], newest first.

        As in Java, records whose key only has the same hash may be among them.
        """
        if count_max <= 0:
            return FoundOffsets([], 0, 0)
        newer = self._find_newer(topic, key, count_max, begin, end, index_type)
        hashed = index_hash(topic, key, index_type)
        offsets, timestamp, phy_offset = self.table.find(
            hashed, count_max - len(newer.offsets), begin=begin, end=end
        )
        if newer.last_update_timestamp:
            timestamp, phy_offset = newer[1:]
        known = set(newer.offsets)
        merged = newer.offsets + [offset for offset in offsets if offset not in known]
        return FoundOffsets(merged, timestamp, phy_offset)

    def _find_newer(
        self, topic: str, key: str, count_max: int, begin: int, end: int, index_type: str | None
    ) -> FoundOffsets:
        """What lies behind the indexed part of the CommitLog."""
        last = self._log.last
        start = max(self.indexed_offset, self._log.min_offset)
        if not self.lag_bytes or not key:
            return FoundOffsets([], 0, 0)
        query = KeyQuery(topic.encode(), key.encode(), index_type, begin, end)
        offsets = find_in_tail(self._log, query, start, count_max)
        return FoundOffsets(offsets, last.store_timestamp, last.phy_offset)
