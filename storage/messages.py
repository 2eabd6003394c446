"""What goes into the store and what comes out: the values of put_batch and get.

MessageToStore is made by the server for each message it accepts; PutResult and GetResult go back.
The statuses have the names and the order of Java's PutMessageStatus and GetMessageStatus.
"""

from dataclasses import dataclass
from enum import Enum, IntEnum
from typing import NamedTuple


class PutStatus(Enum):
    PUT_OK = 0
    FLUSH_DISK_TIMEOUT = 1
    FLUSH_SLAVE_TIMEOUT = 2
    SLAVE_NOT_AVAILABLE = 3
    SERVICE_NOT_AVAILABLE = 4
    CREATE_MAPPED_FILE_FAILED = 5
    MESSAGE_ILLEGAL = 6
    PROPERTIES_SIZE_EXCEEDED = 7
    OS_PAGE_CACHE_BUSY = 8
    UNKNOWN_ERROR = 9
    IN_SYNC_REPLICAS_NOT_ENOUGH = 10
    PUT_TO_REMOTE_BROKER_FAIL = 11
    LMQ_CONSUME_QUEUE_NUM_EXCEEDED = 12
    WHEEL_TIMER_FLOW_CONTROL = 13
    WHEEL_TIMER_MSG_ILLEGAL = 14
    WHEEL_TIMER_NOT_ENABLE = 15


STORED = frozenset(
    {
        PutStatus.PUT_OK,
        PutStatus.FLUSH_DISK_TIMEOUT,
        PutStatus.FLUSH_SLAVE_TIMEOUT,
        PutStatus.SLAVE_NOT_AVAILABLE,
    }
)
"""The message is in the store, whatever else was asked for besides."""


class GetStatus(IntEnum):  # its hash is the integer's: a pull looks two things up by it
    FOUND = 0
    NO_MATCHED_MESSAGE = 1
    MESSAGE_WAS_REMOVING = 2
    OFFSET_FOUND_NULL = 3
    OFFSET_OVERFLOW_BADLY = 4
    OFFSET_OVERFLOW_ONE = 5
    OFFSET_TOO_SMALL = 6
    NO_MATCHED_LOGIC_QUEUE = 7
    NO_MESSAGE_IN_QUEUE = 8
    OFFSET_RESET = 9


class MessageToStore:
    """One message as the broker accepted it; the store adds offsets, time and checksum.

    Hosts are the address' bytes followed by the port as a 4-byte integer: 8 bytes for IPv4, 20 for
    IPv6; the store sets the sysFlag bits that tell the two apart. tags_code is Java's hash of the
    TAGS property, 0 without tags; None lets the store derive it, which a delayed message needs,
    whose code is its delivery time, counted from the store's own timestamp.
    """

    __slots__ = (
        "body",
        "born_host",
        "born_timestamp",
        "flag",
        "prepared_transaction_offset",
        "properties",
        "queue_id",
        "reconsume_times",
        "store_host",
        "sys_flag",
        "tags_code",
        "topic",
    )

    def __init__(
        self,
        topic: bytes,
        queue_id: int,
        body: bytes | memoryview,
        properties: bytes = b"",
        *,
        tags_code: int | None = 0,
        flag: int = 0,
        sys_flag: int = 0,
        born_timestamp: int = 0,
        born_host: bytes = b"\x7f\x00\x00\x01\x00\x00\x00\x00",
        store_host: bytes = b"\x7f\x00\x00\x01\x00\x00\x00\x00",
        reconsume_times: int = 0,
        prepared_transaction_offset: int = 0,
    ) -> None:
        self.topic = topic
        self.queue_id = queue_id
        self.body = body
        self.properties = properties
        self.tags_code = tags_code
        self.flag = flag
        self.sys_flag = sys_flag
        self.born_timestamp = born_timestamp
        self.born_host = born_host
        self.store_host = store_host
        self.reconsume_times = reconsume_times
        self.prepared_transaction_offset = prepared_transaction_offset


class PutResult(NamedTuple):
    """Where one message went; offsets mean something only with PUT_OK and FLUSH_DISK_TIMEOUT."""

    status: PutStatus
    phy_offset: int
    queue_offset: int
    store_timestamp: int
    size: int


class QueryResult(NamedTuple):
    """Records found by key, oldest first, and the last record that the index knew of."""

    records: list[memoryview]
    index_last_update_timestamp: int
    index_last_update_phy_offset: int


@dataclass(slots=True)
class GetResult:
    """Records found by one get; physically adjacent ones share a slice.

    The slices are views of the mapped CommitLog: they stay valid as long as they are referenced,
    whatever happens to the file.
    """

    status: GetStatus
    next_begin_offset: int
    min_offset: int
    max_offset: int
    slices: list[memoryview]
    count: int
    bytes_total: int
    suggest_pulling_from_slave: bool
