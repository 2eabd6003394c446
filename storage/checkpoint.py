"""The file `checkpoint`: how far CommitLog and ConsumeQueues were durable (StoreCheckpoint).

Written by the flusher after a thorough flush and at the stop, read once by recovery. Six 8-byte
integers at the start of a page of 4096 bytes; the layout is declared in layouts.py.
"""

from dataclasses import dataclass
from pathlib import Path
from struct import Struct
from typing import Final

from pyritemq.storage.disk import Disk

CHECKPOINT_FILE_SIZE: Final = 4096
FIELDS: Final = Struct(">6q")
_MARGIN_MS: Final = 3_000  # StoreCheckpoint.getMinTimestamp steps back this far


@dataclass(slots=True, kw_only=True)
class Checkpoint:
    """Times are store timestamps of messages; what lies before them was synced."""

    physic_msg_timestamp: int = 0  # the CommitLog
    logics_msg_timestamp: int = 0  # the ConsumeQueues
    index_msg_timestamp: int = 0  # the index files
    master_flushed_offset: int = 0
    confirm_phy_offset: int = 0
    logics_physical_offset: int = 0  # the last record whose unit is in a synced ConsumeQueue

    @property
    def min_timestamp(self) -> int:
        """A time before which CommitLog and ConsumeQueues are both safe."""
        earlier = min(self.physic_msg_timestamp, self.logics_msg_timestamp)
        return max(earlier - _MARGIN_MS, 0)

    def pack(self) -> bytes:
        return FIELDS.pack(
            self.physic_msg_timestamp,
            self.logics_msg_timestamp,
            self.index_msg_timestamp,
            self.master_flushed_offset,
            self.confirm_phy_offset,
            self.logics_physical_offset,
        )

    @classmethod
    def unpack(cls, data: bytes) -> "Checkpoint":
        physic, logics, index, master, confirm, offset = FIELDS.unpack(data)
        return cls(
            physic_msg_timestamp=physic,
            logics_msg_timestamp=logics,
            index_msg_timestamp=index,
            master_flushed_offset=master,
            confirm_phy_offset=confirm,
            logics_physical_offset=offset,
        )


def load_checkpoint(disk: Disk, path: Path) -> Checkpoint:
    """What the file says; all zeroes, so nothing is trusted, if it is missing or too short."""
    try:
        data = disk.open(path).read_at(0, FIELDS.size)
    except FileNotFoundError:
        return Checkpoint()
    return Checkpoint.unpack(data) if len(data) == FIELDS.size else Checkpoint()


def save_checkpoint(disk: Disk, path: Path, checkpoint: Checkpoint) -> None:
    """Overwrite in place, as Java does: 48 bytes lie in one sector, which is written whole."""
    file = disk.open(path, create=True)
    if file.size() != CHECKPOINT_FILE_SIZE:
        file.resize(CHECKPOINT_FILE_SIZE)
    file.write_at(0, checkpoint.pack())
    file.sync()
