"""The file `config/timercheck`: how far timers were taken in and delivered (TimerCheckpoint).

Written by the flusher after the timer log and the wheel are durable, read once at the start. Seven
8-byte integers at the start of a page; the layout is declared in layouts.py. The first 56 bytes are
the body of a GET_TIMER_CHECK_POINT reply as well.
"""

from dataclasses import astuple, dataclass
from pathlib import Path
from struct import Struct
from typing import Final

from pyritemq.storage.disk import Disk

TIMER_CHECKPOINT_SIZE: Final = 4096
FIELDS: Final = Struct(">7q")


@dataclass(slots=True, frozen=True)
class TimerCheckpoint:
    """Offsets are of rmq_sys_wheel_timer's queue 0."""

    last_read_time_ms: int = 0  # slots before it have been delivered
    last_timer_log_flush_pos: int = 0  # the timer log was durable to here
    last_timer_queue_offset: int = 0  # messages below it are in the wheel, or delivered
    master_timer_queue_offset: int = 0
    state_version: int = 0
    timestamp: int = 0
    counter: int = 0

    def pack(self) -> bytes:
        return FIELDS.pack(*astuple(self))

    @classmethod
    def unpack(cls, data: bytes) -> "TimerCheckpoint":
        return cls(*FIELDS.unpack(data))


def load_timer_checkpoint(disk: Disk, path: Path) -> TimerCheckpoint:
    """What the file says; all zeroes if it is missing or too short."""
    try:
        data = disk.open(path).read_at(0, FIELDS.size)
    except FileNotFoundError:
        return TimerCheckpoint()
    return TimerCheckpoint.unpack(data) if len(data) == FIELDS.size else TimerCheckpoint()


def save_timer_checkpoint(disk: Disk, path: Path, checkpoint: TimerCheckpoint) -> None:
    """Overwrite in place, as Java does: 56 bytes lie in one sector, which is written whole."""
    disk.make_dirs(path.parent)
    file = disk.open(path, create=True)
    if file.size() != TIMER_CHECKPOINT_SIZE:
        file.resize(TIMER_CHECKPOINT_SIZE)
    file.write_at(0, checkpoint.pack())
    file.sync()
