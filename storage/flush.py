"""When to flush: the clockwork of the background thread, as decisions without I/O.

The server runs one flusher thread; each time it comes round, MessageStore.housekeep asks this
schedule what is due. The numbers are Java's settings: the CommitLog is synced each interval if
enough pages are dirty, and in any case at the thorough interval; ConsumeQueues are written out each
interval and synced at theirs, followed by a checkpoint.

Under SYNC_FLUSH none of this makes a message safe: put_batch itself syncs once for the whole drain
before it publishes. Java's transient store pool (write to a buffer outside the mapping first, so
that a busy page cache does not stall the writer) has no counterpart: appends are positional writes
already.
"""

from pyritemq.storage.config import StoreConfig

PAGE_SIZE = 4096


class FlushSchedule:
    """Remembers when the thorough flushes were last due; used by one thread."""

    def __init__(self, config: StoreConfig, now_ms: int) -> None:
        self._least_bytes = config.flush_commit_log_least_pages * PAGE_SIZE
        self._log_thorough_ms = config.flush_commit_log_thorough_interval_ms
        self._queues_ms = config.flush_interval_consume_queue_ms
        self._queues_thorough_ms = config.flush_consume_queue_thorough_interval_ms
        self._log_thorough_at = now_ms + self._log_thorough_ms
        self._queues_at = now_ms + self._queues_ms
        self._queues_thorough_at = now_ms + self._queues_thorough_ms

    def is_commit_log_due(self, now_ms: int, dirty_bytes: int) -> bool:
        if now_ms >= self._log_thorough_at:
            self._log_thorough_at = now_ms + self._log_thorough_ms
            return dirty_bytes > 0
        return dirty_bytes > 0 and dirty_bytes >= self._least_bytes

    def is_write_out_due(self, now_ms: int) -> bool:
        if now_ms < self._queues_at:
            return False
        self._queues_at = now_ms + self._queues_ms
        return True

    def is_checkpoint_due(self, now_ms: int) -> bool:
        if now_ms < self._queues_thorough_at:
            return False
        self._queues_thorough_at = now_ms + self._queues_thorough_ms
        return True
