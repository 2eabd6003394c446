"""The store's layouts as `construct` declarations: documentation, and oracle for the fast paths.

Nothing that serves requests imports this module: construct costs a server memory and start-up time
that it has no use for. Tests hold consume_queue.py, index_file.py, checkpoint.py and
record_codec.py equal to it.
The message record itself is MessageRecord in protocol/record_layout.py, since it travels as well.
"""

from construct import Array, Bytes, Const, Int32sb, Int64sb, Struct, this

from pyritemq.protocol.record import MAGIC_BLANK
from pyritemq.storage.checkpoint import CHECKPOINT_FILE_SIZE

# consumequeue/TOPIC/QUEUE/00000000000000000000: 300,000 of these; Java: ConsumeQueue
QueueUnit = Struct(
    "phy_offset" / Int64sb,  # of the record in the CommitLog
    "size" / Int32sb,  # of the record; 0 behind the last unit, 2^31-1 before the first message
    "tags_code" / Int64sb,  # hash of the tags; delivery time in SCHEDULE_TOPIC_XXXX
)

# commitlog/00000000000000000000: at the end of each file but the last; Java: BLANK_MAGIC_CODE
BlankFiller = Struct(
    "size" / Int32sb,  # bytes from here to the end of the file, this head included
    "magic" / Const(MAGIC_BLANK, Int32sb),
    "rest" / Bytes(this.size - 8),  # any value
)

# checkpoint; Java: StoreCheckpoint
CheckpointFile = Struct(
    "physic_msg_timestamp" / Int64sb,
    "logics_msg_timestamp" / Int64sb,
    "index_msg_timestamp" / Int64sb,
    "master_flushed_offset" / Int64sb,
    "confirm_phy_offset" / Int64sb,
    "logics_physical_offset" / Int64sb,
    "rest" / Bytes(CHECKPOINT_FILE_SIZE - 48),
)

# index/20261118094500123; Java: IndexHeader
IndexFileHeader = Struct(
    "begin_timestamp" / Int64sb,  # store time of the first record with an item
    "end_timestamp" / Int64sb,  # and of the last one
    "begin_phy_offset" / Int64sb,
    "end_phy_offset" / Int64sb,
    "hash_slot_count" / Int32sb,  # slots in use
    "index_count" / Int32sb,  # number of the next item; the first one has number 1
)

# Java: IndexFile
IndexItem = Struct(
    "key_hash" / Int32sb,  # |hash of topic#key|; topic#T#tags for tags
    "phy_offset" / Int64sb,  # of the record in the CommitLog
    "time_diff" / Int32sb,  # seconds from the file's begin timestamp to the record's
    "next_index" / Int32sb,  # number of the item before it in the same slot, 0 for none
)


def index_file_layout(slots: int, items: int) -> Struct:
    """A whole index file; Java's has 5,000,000 slots and 20,000,000 items."""
    return Struct(
        "header" / IndexFileHeader,
        "slots" / Array(slots, Int32sb),  # number of the newest item of the slot, 0 for none
        "items" / Array(items, IndexItem),  # the first one, number 0, is never used
    )
