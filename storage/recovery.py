"""Brings a store that was just opened to a state in which CommitLog and ConsumeQueues agree.

The CommitLog is the truth. Recovery picks an offset before which both are known to be good, checks
each record from there on, derives its unit, and ends at the first record that does not check; what
lies behind that is cut off. Two paths, as in Java:

  clean stop      There is no file `abort`. The checkpoint names the last record, and everything
                  was synced; queues are opened later, when they are first asked for.
  after a crash   The checkpoint names a record up to which everything was synced. What follows is
                  checked and derived anew. Every queue is opened, and units that point behind the
                  start are dropped first: after a power loss they may be holes, or point to
                  records that are gone.

Either way the start lies some records before the one that is named, so that damage to the last ones
is found, as it is by Java, which reads the last file whole.

If the checkpoint's offset is no good (written by an older broker, or not covered by the CommitLog's
own sync), the start is found as Java finds it: the last file whose first record is older than the
checkpoint's times. Whatever the start, the outcome is a prefix of what was appended.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from pyritemq.storage.checkpoint import Checkpoint
from pyritemq.storage.commit_log import CommitLog, LastRecord
from pyritemq.storage.derive import Deriver, UnitsMissingError
from pyritemq.storage.disk import Disk
from pyritemq.storage.errors import StoreCorruptError
from pyritemq.storage.mapped_file import MappedFile
from pyritemq.storage.queue_table import QueueKey, QueueTable
from pyritemq.storage.quick_derive import QuickDeriver
from pyritemq.storage.record_codec import BadRecord, Blank, CheckedRecord, check_record
from pyritemq.storage.salvage import keep_tail

_log = logging.getLogger(__name__)

RECHECK_BYTES = 1 << 18  # ours: how much a start checks again, in some 5 ms
RECHECK_UNITS = (256, 64, 16, 4, 1)  # ours: how far back in a queue it looks for so much
RUN_RECORDS = 50_000  # ours: units held in memory while deriving


@dataclass(slots=True, kw_only=True)
class RecoveryReport:
    """What was found; the server logs it."""

    clean_stop: bool
    start_offset: int
    end_offset: int
    records: int
    cut_reason: str  # why the last good record was the last one; empty if nothing followed it
    rebuilt: list[str]  # queues, or what was wrong with one, for which the whole log was read


class Recovery:
    """One recovery of one store, before any lane runs."""

    def __init__(
        self,
        log: CommitLog,
        table: QueueTable,
        deriver: Deriver,
        checkpoint: Checkpoint,
        *,
        disk: Disk,
        root: Path,
        check_crc: bool,
        on_progress: Callable[[int], None] | None = None,
    ) -> None:
        self._disk = disk
        self._root = root
        self._on_progress = on_progress
        self._log = log
        self._table = table
        self._deriver = deriver
        self._checkpoint = checkpoint
        self._check_crc = check_crc
        self._quick = QuickDeriver(table, check_crc=check_crc, may_stage=deriver.exts is None)
        self._records = 0
        self._unwritten = 0
        self._last: LastRecord | None = None
        self._synced_to = 0  # what lies below was durable: damage there is not a torn write
        self._rebuilt: list[str] = []

    def run(self, *, clean_stop: bool) -> RecoveryReport:
        """Raises StoreCorruptError if good messages follow damage: a person must decide."""
        known = self._checkpoint_record(clean_stop=clean_stop)
        clean_stop = clean_stop and known is not None
        start = self._start_of_safe_file() if known is None else self._step_back(known)
        self._synced_to = start
        loader = self._table.loader
        loader.limit = start
        loader.min_phy_offset = self._log.min_offset
        loader.always_cut = not clean_stop
        end, reason = self._scan_whole(start)
        if not clean_stop or (known is not None and end <= known.phy_offset):
            self._open_all_queues()
        if reason or not clean_stop:
            self._cut(end, reason)
        # what a killed process wrote is in the page cache: readable, but not yet safe (Java takes
        # it for flushed, and a power loss after the restart may then cost acknowledged messages)
        self._finish(end, flushed_where=end if clean_stop else min(start, end))
        return RecoveryReport(
            clean_stop=clean_stop,
            start_offset=start,
            end_offset=end,
            records=self._records,
            cut_reason=reason,
            rebuilt=self._rebuilt,
        )

    # -- where to start -----------------------------------------------------------------------

    def _checkpoint_record(self, *, clean_stop: bool) -> CheckedRecord | None:
        """The record that the checkpoint names, if it is there and was synced."""
        record = self._record_at(self._checkpoint.logics_physical_offset)
        if record is None or record.store_timestamp != self._checkpoint.logics_msg_timestamp:
            return None
        if clean_stop or record.store_timestamp <= self._checkpoint.physic_msg_timestamp:
            return record
        return None

    def _step_back(self, known: CheckedRecord) -> int:
        """A record boundary further back: the log's start, or an earlier unit of the same queue."""
        if known.phy_offset - self._log.min_offset <= RECHECK_BYTES or not self._table.all_keys():
            return self._log.min_offset
        for step in RECHECK_UNITS:
            offset = known.queue_offset - step
            phy_offset = (
                self._table.peek(known.topic, known.queue_id, offset) if offset >= 0 else -1
            )
            record = self._record_at(phy_offset)
            if record is None or known.phy_offset - phy_offset > RECHECK_BYTES:
                continue
            if (record.topic, record.queue_offset) == (known.topic, offset):
                return phy_offset
        return known.phy_offset

    def _start_of_safe_file(self) -> int:
        for file in reversed(self._log.files.files):
            first = self._record_at(file.from_offset)
            if first is not None and first.store_timestamp <= self._checkpoint.min_timestamp:
                return file.from_offset
        return self._log.min_offset

    def _record_at(self, phy_offset: int) -> CheckedRecord | None:
        file = self._log.files.find(phy_offset)
        if file is None:
            return None
        record = self._check(file, phy_offset)
        return record if isinstance(record, CheckedRecord) else None

    def _check(self, file: MappedFile, phy_offset: int) -> CheckedRecord | Blank | BadRecord:
        return check_record(
            file.view,
            phy_offset - file.from_offset,
            phy_offset=phy_offset,
            check_crc=self._check_crc,
        )

    # -- queues that are missing or short -----------------------------------------------------

    def _scan_whole(self, start: int) -> tuple[int, str]:
        """Scan from the start, or from the log's first record if a queue lacks units."""
        lost = self._table.lost_queues()
        for key in lost:
            self._table.discard(key)
            self._will_rebuild(f"{key[0].decode()}/{key[1]} is missing or short")
        if lost:
            end, reason = self._scan_from(self._log.min_offset)
            if not reason:
                self._restore_ends(lost)
            return end, reason
        try:
            return self._scan_from(start)
        except UnitsMissingError as missing:
            self._will_rebuild(str(missing))
            return self._scan_from(self._log.min_offset)

    def _will_rebuild(self, what: str) -> None:
        self._rebuilt.append(what)
        _log.warning("ConsumeQueue is derived anew from the whole CommitLog reason=%s", what)

    def _scan_from(self, offset: int) -> tuple[int, str]:
        self._deriver.from_start = offset <= self._log.min_offset
        return self._scan(offset)

    def _restore_ends(self, lost: set[QueueKey]) -> None:
        """A queue whose messages have all expired goes on where it was, not at 0."""
        for key in lost:
            queue = self._table.find_or_create(*key)
            if queue.next_offset == queue.min_offset:
                self._table.loader.restart(queue, self._table.known_ends[key])

    # -- the scan -----------------------------------------------------------------------------

    def _scan(self, offset: int) -> tuple[int, str]:
        """Check and derive from offset on; returns where the good records end, and why."""
        file = self._log.files.find(offset)
        while file is not None:
            offset = self._run(file, offset)
            found = self._check(file, offset)
            if isinstance(found, Blank):
                offset = file.end_offset
                file = self._log.files.find(offset)
                continue
            bad = found.reason if isinstance(found, BadRecord) else self._deriver.derive(found)
            if bad is not None:
                self._refuse_to_drop(file, offset, bad)
                return offset, bad
            assert isinstance(found, CheckedRecord)
            self._count(1, LastRecord(found.phy_offset, found.store_timestamp))
            offset += found.size
        return offset, ""

    def _run(self, file: MappedFile, offset: int) -> int:
        """Take all the usual records that follow in the file; returns where they end."""
        if offset < self._deriver.deletions.last_offset:  # may be a deleted topic's
            return offset
        while True:
            position = offset - file.from_offset
            run = self._quick.run(file.view, position, file.from_offset, RUN_RECORDS)
            if run.records == 0:
                return offset
            self._count(run.records, LastRecord(run.last_phy_offset, run.last_store_timestamp))
            offset = file.from_offset + run.position
            if self._on_progress is not None:
                self._on_progress(offset)

    def _count(self, records: int, last: LastRecord) -> None:
        self._last = last
        self._records += records
        self._unwritten += records
        if self._unwritten >= RUN_RECORDS:
            self._unwritten = 0
            self._table.write_out()

    def _refuse_to_drop(self, file: MappedFile, offset: int, reason: str) -> None:
        """Damage is cut off only where a torn write may be; elsewhere a person must decide."""
        following = self._log.files.find(file.end_offset)
        if offset < self._synced_to:
            what_follows = "messages that were safe follow it"
        elif following is not None and self._record_at(following.from_offset) is not None:
            what_follows = "good files follow it"
        else:
            return
        raise StoreCorruptError(
            f"the file {file.path} is damaged at position {offset - file.from_offset} "
            f"({reason or 'the record is missing'}), but {what_follows}"
        )

    # -- the end ------------------------------------------------------------------------------

    def _cut(self, end: int, reason: str) -> None:
        """Truncate the log at its end; what is cut off for a reason is kept aside."""
        file = self._log.files.find(end)
        if reason and file is not None:
            kept = keep_tail(self._disk, self._root, file, end)
            position = end - file.from_offset
            _log.warning(
                "CommitLog cut file=%s position=%d reason=%s kept=%s",
                file.path,
                position,
                reason,
                kept,
            )
        self._log.files.truncate(end)

    def _open_all_queues(self) -> None:
        for topic, queue_id in self._table.all_keys():
            self._table.find(topic, queue_id)

    def _finish(self, end: int, *, flushed_where: int) -> None:
        last = self._last or self._log.last
        self._log.reset(end, flushed_where=flushed_where, last=last)
        self._table.write_out()
