"""Headers of PULL_MESSAGE and LITE_PULL_MESSAGE."""

from pyritemq.protocol.command import Command
from pyritemq.protocol.fields import Header, Int, Long, header
from pyritemq.protocol.headers.rpc import TopicHeader


@header
class PullMessageHeader(TopicHeader):
    consumer_group: str
    topic: str
    lite_topic: str | None = None
    queue_id: Int
    queue_offset: Long
    max_msg_nums: Int
    sys_flag: Int
    commit_offset: Long
    suspend_timeout_millis: Long
    subscription: str | None = None
    sub_version: Long
    expression_type: str | None = None
    max_msg_bytes: Int | None = None
    request_source: Int | None = None
    proxy_froward_client_id: str | None = None


@header
class PullMessageReplyHeader(Header):
    suggest_which_broker_id: Long
    next_begin_offset: Long
    min_offset: Long
    max_offset: Long
    offset_delta: Long | None = None
    topic_sys_flag: Int | None = None
    group_sys_flag: Int | None = None
    forbidden_type: Int | None = None


def decode_pull(command: Command) -> PullMessageHeader:
    """The header of a PULL_MESSAGE. Raises HeaderSyntaxError, MissingField or InvalidField."""
    return PullMessageHeader.decode(command.ext_fields)
