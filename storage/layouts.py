"""The store's layouts as `construct` declarations: documentation, and oracle for the fast paths.

Nothing that serves requests imports this module: construct costs a server memory and start-up time
that it has no use for. Tests hold consume_queue.py, index_file.py, checkpoint.py, timers/ and
record_codec.py equal to it.
The message record itself is MessageRecord in protocol/record_layout.py, since it travels as well.
"""

from construct import Array, Bytes, Const, Int16sb, Int32sb, Int64sb, Struct, this

from pyritemq.protocol.record import MAGIC_BLANK
from pyritemq.storage.checkpoint import CHECKPOINT_FILE_SIZE
from pyritemq.storage.timers.checkpoint import TIMER_CHECKPOINT_SIZE
from pyritemq.storage.timers.log import BLANK_MAGIC

# consumequeue/TOPIC/QUEUE/00000000000000000000: 300,000 of these; Java: ConsumeQueue
QueueUnit = Struct(
    "phy_offset" / Int64sb,  # of the record in the CommitLog
    "size" / Int32sb,  # of the record; 0 behind the last unit, 2^31-1 before the first message
    "tags_code" / Int64sb,  # hash of the tags; delivery time in SCHEDULE_TOPIC_XXXX
)

# consumequeue_ext/TOPIC/QUEUE/00000000000000000000: as many as fit into 48 MiB; ConsumeQueueExt
ExtUnit = Struct(
    "size" / Int16sb,  # of all of it; -1 where a file has no room for the next one
    "tags_code" / Int64sb,  # what the ConsumeQueue unit would hold
    "store_timestamp" / Int64sb,
    "bit_map_size" / Int16sb,
    "bit_map" / Bytes(this.bit_map_size),  # of the groups whose SQL filter the message matches
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


# timerwheel: 2 × 604,800 of these, found by time / precision modulo their number; Java: Slot
TimerSlot = Struct(
    "time" / Int64sb,  # time / precision; a slot with another time is empty
    "first_pos" / Int64sb,  # of the slot's first unit in the timer log
    "last_pos" / Int64sb,  # of its last unit, which begins the chain
    "num" / Int32sb,  # timers; a recall counts -1
    "magic" / Int32sb,  # 0
)

# timerlog/00000000000000000000: as many as fit into 100 MiB; Java: TimerLog
TimerLogUnit = Struct(
    "size" / Int32sb,  # 52
    "prev_pos" / Int64sb,  # of the unit before it in its slot, -1 for none
    "magic" / Int32sb,  # 1, 2: to be rolled, 4: a recall
    "enqueue_ms" / Int64sb,  # rounded down to the precision
    "delay_ms" / Int32sb,  # from then on
    "phy_offset" / Int64sb,  # of the message in the CommitLog
    "phy_size" / Int32sb,
    "topic_hash" / Int32sb,  # of the message's real topic
    "reserved" / Int64sb,
)

# timerlog: where a file has no room for a unit and this; Java: BLANK_MAGIC_CODE
TimerLogBlank = Struct(
    "size" / Int32sb,  # bytes to the end of the file
    "zero" / Const(0, Int64sb),
    "magic" / Const(BLANK_MAGIC, Int32sb),
)

# config/timercheck; Java: TimerCheckpoint
TimerCheckpointFile = Struct(
    "last_read_time_ms" / Int64sb,
    "last_timer_log_flush_pos" / Int64sb,
    "last_timer_queue_offset" / Int64sb,
    "master_timer_queue_offset" / Int64sb,
    "state_version" / Int64sb,
    "timestamp" / Int64sb,
    "counter" / Int64sb,
    "rest" / Bytes(TIMER_CHECKPOINT_SIZE - 56),
)
