"""Wheel, log and checkpoint together: opened, brought into agreement, made durable.

The log is the wheel's truth for whatever was appended last: at the start the units since the last
checkpoint, and a file's worth before it, are read again and put into their slots, as Java does.
"""

from collections.abc import Callable, Iterator
from pathlib import Path

from pyritemq.storage.disk import Disk, RealDisk
from pyritemq.storage.timers.checkpoint import (
    TimerCheckpoint,
    load_timer_checkpoint,
    save_timer_checkpoint,
)
from pyritemq.storage.timers.log import TimerLog
from pyritemq.storage.timers.wheel import TimerWheel


class TimerFiles:
    """The timers of one store folder."""

    def __init__(
        self, root: Path, *, precision_ms: int, log_file_size: int, disk: Disk | None = None
    ) -> None:
        """Open and recover. Raises StorageError."""
        self._disk = disk or RealDisk()
        self._disk.make_dirs(root)
        self._checkpoint_path = root / "config" / "timercheck"
        self.checkpoint = load_timer_checkpoint(self._disk, self._checkpoint_path)
        self.wheel = TimerWheel(self._disk, root / "timerwheel", precision_ms=precision_ms)
        self.log = TimerLog(self._disk, root / "timerlog", file_size=log_file_size)
        self.log.load()
        self.logged = self._recover(log_file_size)

    def _recover(self, log_file_size: int) -> set[int]:
        """CommitLog offsets of the messages that the log has beyond what the checkpoint counts.

        Whoever takes messages in from the checkpoint's offset on passes over these.
        """
        flushed = self.checkpoint.last_timer_log_flush_pos
        logged: set[int] = set()

        def found() -> Iterator[tuple[int, int]]:
            for pos, due_ms, phy_offset in self.log.recover(max(flushed - log_file_size, 0)):
                if pos >= flushed:
                    logged.add(phy_offset)
                yield due_ms, pos

        self.wheel.revise(found())
        self.log.flushed_where = min(flushed, self.log.end)  # what was found may not be durable
        return logged

    def save(self, make_checkpoint: Callable[[int], TimerCheckpoint]) -> None:
        """Make log and wheel durable, then what the checkpoint counts on them for.

        `make_checkpoint` is told how far the log was durable before, and is asked first: all that
        it counts has been written by then.
        """
        checkpoint = make_checkpoint(self.log.flushed_where)
        self.log.sync()
        self.wheel.sync()
        save_timer_checkpoint(self._disk, self._checkpoint_path, checkpoint)
        self.checkpoint = checkpoint
