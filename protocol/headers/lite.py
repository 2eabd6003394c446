"""Headers of what tools ask about lite topics (5.5)."""

from pyritemq.protocol.fields import Int, header
from pyritemq.protocol.headers.rpc import RpcHeader, TopicHeader


@header
class GetParentTopicInfoHeader(TopicHeader):
    topic: str


@header
class GetLiteTopicInfoHeader(RpcHeader):
    parent_topic: str | None = None
    lite_topic: str | None = None


@header
class GetLiteClientInfoHeader(RpcHeader):
    parent_topic: str | None = None
    group: str | None = None
    client_id: str | None = None
    max_count: Int = 1000


@header
class GetLiteGroupInfoHeader(RpcHeader):
    group: str
    lite_topic: str | None = None
    top_k: Int = 0


@header
class TriggerLiteDispatchHeader(RpcHeader):
    group: str
    client_id: str | None = None
