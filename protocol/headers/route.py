"""Headers of what clients and tools ask a name server about topics."""

from pyritemq.protocol.fields import Header, header
from pyritemq.protocol.headers.rpc import TopicHeader


@header
class GetRouteInfoHeader(TopicHeader):
    topic: str
    accept_standard_json_only: bool | None = None


@header
class GetTopicsByClusterHeader(Header):
    cluster: str


@header
class DeleteTopicFromNamesrvHeader(TopicHeader):
    topic: str
    cluster_name: str | None = None


@header
class RegisterTopicHeader(TopicHeader):
    topic: str
