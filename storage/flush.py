"""When to flush: the clockwork of the background thread, as decisions without I/O.

The server runs one flusher thread; each time it comes round, MessageStore.housekeep asks this
schedule what is due. The numbers are Java's settings: the CommitLog is synced each interval if
enough pages are dirty, and in any case at the thorough interval; ConsumeQueues are written out each
interval and synced at theirs, followed by a checkpoint.

Under SYNC_FLUSH none of this makes a message safe: put_batch itself syncs once for the whole drain
before it publishes. Only messages that nobody waits for (WAIT is false) are left to the flusher,
which then comes for the first byte, as GroupCommitService does.

Java's transient store pool (write to a buffer outside the mapping first, so that a busy page cache
does not stall the writer) has no counterpart: appends are positional writes already.
"""

from pyritemq.storage.config import StoreConfig

PAGE_SIZE = 4096


class _Timer:
    """Comes due once an interval, and at once if the clock was set back."""

    def __init__(self, interval_ms: int, now_ms: int) -> None:
        self._interval_ms = interval_ms
        self._due_ms = now_ms + interval_ms

    def is_due(self, now_ms: int) -> bool:
        if self._due_ms - self._interval_ms <= now_ms < self._due_ms:
            return False
        self._due_ms = now_ms + self._interval_ms
        return True


class FlushSchedule:
    """Remembers when each flush was last due; used by one thread."""

    def __init__(self, config: StoreConfig, now_ms: int) -> None:
        is_sync = config.flush_disk_type == "SYNC_FLUSH"
        self._least_bytes = 1 if is_sync else config.flush_commit_log_least_pages * PAGE_SIZE
        self._thorough = _Timer(config.flush_commit_log_thorough_interval_ms, now_ms)
        self._write_out = _Timer(config.flush_interval_consume_queue_ms, now_ms)
        self._checkpoint = _Timer(config.flush_consume_queue_thorough_interval_ms, now_ms)

    def is_commit_log_due(self, now_ms: int, dirty_bytes: int) -> bool:
        is_thorough = self._thorough.is_due(now_ms)
        return dirty_bytes > 0 and (is_thorough or dirty_bytes >= self._least_bytes)

    def is_write_out_due(self, now_ms: int) -> bool:
        return self._write_out.is_due(now_ms)

    def is_checkpoint_due(self, now_ms: int) -> bool:
        return self._checkpoint.is_due(now_ms)
