"""Recovery's fast road over the CommitLog: checks and derives the usual kind of record in one loop.

Called by recovery alone, before any lane runs. A run ends, without harm, at the first record that
is in any way out of the ordinary (damage, filler, IPv6, a transaction half, a delayed message, a
queue that is not open yet, a gap); recovery takes that one with check_record and Deriver, which
decide, and comes back. So nothing is decided here: a property test holds both roads to one result.

It exists for its speed: 1 GiB of records with bodies of 128 to 1,024 bytes takes 4.1 s of CPU, and
took 8.1 s record by record (Python 3.11, 2026-11-18; bench in docs/store.md).
"""

from struct import Struct
from typing import Final, NamedTuple
from zlib import crc32

from pyritemq.compat.java_hash import tags_code
from pyritemq.protocol.record import MAGIC_V1, TRANSACTION_MASK
from pyritemq.storage.derive import SCHEDULE_TOPIC
from pyritemq.storage.queue_table import QueueTable
from pyritemq.storage.record_codec import HEAD_V4, HOSTS_V6, TOPIC_V1_MAX

# the head of a record with IPv4 hosts: only what deriving needs is unpacked
QUICK_HEAD: Final = Struct(">iiii4xqqi8x8xq8x4x8xi")
TAG_CODES_MAX: Final = 4096  # ours: tags are few, but nothing bounds them

_TAGS: Final = b"TAGS\x01"
_SEPARATOR: Final = 0x02
_UNUSUAL_FLAGS: Final = HOSTS_V6 | TRANSACTION_MASK


class Run(NamedTuple):
    """How far a run came; the last record's offset is -1 if there was none."""

    position: int
    records: int
    last_phy_offset: int
    last_store_timestamp: int


class QuickDeriver:
    """Places the units of usual records; keeps tags' codes between runs."""

    def __init__(self, table: QueueTable, *, check_crc: bool, may_stage: bool = True) -> None:
        """Without may_stage a run ends where a unit is missing: deriving it takes more."""
        self._table = table
        self._may_stage = may_stage
        self._check_crc = check_crc
        self._codes: dict[bytes, int] = {}

    def run(self, view: memoryview, position: int, from_offset: int, records_max: int) -> Run:
        """Check and derive from position of a file on, until something unusual or records_max.

        Flat for the same reason as Appender._write: each line is paid for once a record.
        """
        unpack = QUICK_HEAD.unpack_from
        head_size = HEAD_V4.size
        queues = self._table.queues
        check_crc = self._check_crc
        view_size = len(view)
        last_head = view_size - head_size
        count = 0
        last = timestamp = -1
        while count < records_max and position <= last_head:
            size, magic, crc, queue_id, queue_offset, own_offset, flags, stored, body_size = unpack(
                view, position
            )
            topic_at = position + head_size + body_size
            end = position + size
            if (
                magic != MAGIC_V1
                or own_offset != from_offset + position
                or flags & _UNUSUAL_FLAGS
                or body_size < 0
                or not topic_at < end <= view_size
            ):
                break
            tail = bytes(view[topic_at:end])  # topic and properties, each with its length
            topic_size = tail[0]
            at = topic_size + 3
            if (
                topic_size > TOPIC_V1_MAX
                or at > len(tail)
                or at + (tail[at - 2] << 8 | tail[at - 1]) != len(tail)
            ):
                break
            topic = tail[1 : at - 2]
            queue = queues.get((topic, queue_id))
            if queue is None or topic == SCHEDULE_TOPIC or queue_offset > queue.next_offset:
                break
            if check_crc and body_size:
                body = view[position + head_size : topic_at]
                if crc32(body) & 0x7FFFFFFF != crc:
                    break
            if queue_offset == queue.next_offset:
                code = self._code(tail, at)
                if code is None or not self._may_stage:
                    break
                queue.stage(own_offset, size, code)
                queue.max_offset = queue_offset + 1
                if not queue.dirty:
                    self._table.mark_dirty(queue)
            last = own_offset
            timestamp = stored
            count += 1
            position = end
        return Run(position, count, last, timestamp)

    def _code(self, tail: bytes, properties_at: int) -> int | None:
        """Hash of the tags; None if the name occurs where it might not be one."""
        at = tail.rfind(_TAGS, properties_at)
        if at < 0:
            return 0
        if at != properties_at and tail[at - 1] != _SEPARATOR:
            return None
        end = tail.find(_SEPARATOR, at)
        tags = tail[at + 5 : end if end >= 0 else len(tail)]
        code = self._codes.get(tags)
        if code is None:
            if len(self._codes) >= TAG_CODES_MAX:
                self._codes.clear()
            code = self._codes[tags] = tags_code(tags.decode("utf-8", "replace"))
        return code
