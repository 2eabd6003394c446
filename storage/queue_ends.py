"""The file `queueends`: how many units each ConsumeQueue had when the checkpoint was written.

Ours, not Java's, which never looks at it. A queue is derived from the CommitLog, but a queue that
is missing or short looks like a new or a slow one; Java then starts it anew, and its old messages
are out of reach. With this list a start notices, and rebuilds that queue from the CommitLog.

Written by the flusher with each checkpoint, read once by recovery, and believed only together with
that same checkpoint: a Java broker that had the store in between may have deleted queues.

    magic 8 | logics msg timestamp i64 | logics physical offset i64 | count i32
    each: queue offset of the end i64 | queue id i32 | topic length i16 | topic
    CRC-32 u32
"""

from pathlib import Path
from struct import Struct, error
from typing import Final
from zlib import crc32

from pyritemq.storage.checkpoint import Checkpoint
from pyritemq.storage.disk import Disk

QueueEnds = dict[tuple[bytes, int], int]

NAME: Final = "queueends"
_MAGIC: Final = b"PYRQEND1"
_HEAD: Final = Struct(">8sqqi")
_ENTRY: Final = Struct(">qih")
_CRC: Final = Struct(">I")


def pack_queue_ends(ends: QueueEnds, checkpoint: Checkpoint) -> bytes:
    parts = [
        _HEAD.pack(
            _MAGIC, checkpoint.logics_msg_timestamp, checkpoint.logics_physical_offset, len(ends)
        )
    ]
    for (topic, queue_id), end in ends.items():
        parts += (_ENTRY.pack(end, queue_id, len(topic)), topic)
    data = b"".join(parts)
    return data + _CRC.pack(crc32(data))


def unpack_queue_ends(data: bytes, checkpoint: Checkpoint) -> QueueEnds:
    """The list; empty if it is damaged or was written with another checkpoint."""
    try:
        magic, timestamp, offset, count = _HEAD.unpack_from(data)
        (crc,) = _CRC.unpack(data[-_CRC.size :])
    except error:
        return {}
    named = (checkpoint.logics_msg_timestamp, checkpoint.logics_physical_offset)
    if (magic, timestamp, offset) != (_MAGIC, *named) or crc != crc32(data[: -_CRC.size]):
        return {}
    ends: QueueEnds = {}
    at = _HEAD.size
    for _ in range(count):
        end, queue_id, topic_size = _ENTRY.unpack_from(data, at)
        at += _ENTRY.size
        ends[data[at : at + topic_size], queue_id] = end
        at += topic_size
    return ends


def load_queue_ends(disk: Disk, root: Path, checkpoint: Checkpoint) -> QueueEnds:
    try:
        file = disk.open(root / NAME)
    except FileNotFoundError:
        return {}
    return unpack_queue_ends(file.read_at(0, file.size()), checkpoint)


def save_queue_ends(disk: Disk, root: Path, ends: QueueEnds, checkpoint: Checkpoint) -> None:
    """Replace the file; the checkpoint that it goes with is written afterwards."""
    data = pack_queue_ends(ends, checkpoint)
    temporary = root / f"{NAME}.tmp"
    file = disk.open(temporary, create=True)
    file.resize(len(data))
    file.write_at(0, data)
    file.sync()
    disk.replace(temporary, root / NAME)
