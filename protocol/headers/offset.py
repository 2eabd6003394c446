"""Headers of consumer offsets, queue bounds and offset by time."""

from enum import StrEnum

from pyritemq.protocol.fields import Header, Int, Long, header
from pyritemq.protocol.headers.rpc import TopicHeader


class BoundaryType(StrEnum):
    """Which offset a search by time gives when several messages share the time."""

    LOWER = "LOWER"
    UPPER = "UPPER"

    @classmethod
    def _missing_(cls, value: object) -> "BoundaryType":
        """Java's BoundaryType.getType: UPPER in any case of letters, all else is LOWER."""
        return cls.UPPER if str(value).upper() == "UPPER" else cls.LOWER


@header
class QueryConsumerOffsetHeader(TopicHeader):
    consumer_group: str
    topic: str
    queue_id: Int
    set_zero_if_not_found: bool | None = None


@header
class QueryConsumerOffsetReplyHeader(Header):
    offset: Long


@header
class UpdateConsumerOffsetHeader(TopicHeader):
    consumer_group: str
    topic: str
    queue_id: Int
    commit_offset: Long


@header
class GetMaxOffsetHeader(TopicHeader):
    topic: str
    queue_id: Int
    committed: bool = True


@header
class GetMaxOffsetReplyHeader(Header):
    offset: Long


@header
class GetMinOffsetHeader(TopicHeader):
    topic: str
    queue_id: Int


@header
class GetMinOffsetReplyHeader(Header):
    offset: Long


@header
class SearchOffsetHeader(TopicHeader):
    topic: str
    lite_topic: str | None = None
    queue_id: Int
    timestamp: Long
    boundary_type: BoundaryType = BoundaryType.LOWER


@header
class SearchOffsetReplyHeader(Header):
    offset: Long


@header
class GetEarliestMsgStoretimeHeader(TopicHeader):
    topic: str
    queue_id: Int


@header
class GetEarliestMsgStoretimeReplyHeader(Header):
    timestamp: Long
