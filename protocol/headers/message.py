"""Headers that ask for stored messages by where they lie or by their keys."""

from pyritemq.protocol.fields import Header, Int, Long, header
from pyritemq.protocol.headers.rpc import TopicHeader


@header
class QueryMessageHeader(TopicHeader):
    topic: str
    key: str
    max_num: Int
    begin_timestamp: Long
    end_timestamp: Long
    index_type: str | None = None  # "K", "U" or "T" (tags), since 5.5.0
    last_key: str | None = None  # where to go on, for Java's RocksDB index only


@header
class QueryMessageReplyHeader(Header):
    index_last_update_timestamp: Long
    index_last_update_phyoffset: Long


@header
class ViewMessageHeader(Header):
    topic: str | None = None
    offset: Long
