"""Headers of RECALL_MESSAGE: a producer takes back a message that still waits for its time."""

from pyritemq.protocol.fields import Header, header
from pyritemq.protocol.headers.rpc import TopicHeader


@header
class RecallMessageHeader(TopicHeader):
    topic: str
    recall_handle: str
    producer_group: str | None = None


@header
class RecallMessageReplyHeader(Header):
    msg_id: str
