"""Headers of topic administration on a broker."""

from pyritemq.protocol.fields import Int, header
from pyritemq.protocol.headers.rpc import TopicHeader


@header
class CreateTopicHeader(TopicHeader):
    topic: str
    default_topic: str
    read_queue_nums: Int
    write_queue_nums: Int
    perm: Int
    topic_filter_type: str
    topic_sys_flag: Int | None = None
    order: bool = False
    attributes: str | None = None
    force: bool = False


@header
class DeleteTopicHeader(TopicHeader):
    topic: str


@header
class GetTopicConfigHeader(TopicHeader):
    topic: str
