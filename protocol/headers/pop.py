"""Headers of POP consumption: pop, ack, change of the invisible time, peek, and asking whether a
pop would find something."""

from pyritemq.protocol.fields import Header, Int, Long, header
from pyritemq.protocol.headers.rpc import TopicHeader


@header
class PopMessageHeader(TopicHeader):
    consumer_group: str
    topic: str
    queue_id: Int  # -1: any queue
    max_msg_nums: Int
    invisible_time: Long
    poll_time: Long
    born_time: Long
    init_mode: Int
    exp_type: str | None = None
    exp: str | None = None
    order: bool = False
    attempt_id: str | None = None


@header
class PopMessageReplyHeader(Header):
    pop_time: Long
    invisible_time: Long
    revive_qid: Int
    rest_num: Long
    start_offset_info: str | None = None
    msg_offset_info: str | None = None
    order_count_info: str | None = None


@header
class AckMessageHeader(TopicHeader):
    consumer_group: str
    topic: str
    queue_id: Int
    extra_info: str
    offset: Long
    lite_topic: str | None = None


@header
class ChangeInvisibleTimeHeader(TopicHeader):
    consumer_group: str
    topic: str
    queue_id: Int
    extra_info: str
    offset: Long
    invisible_time: Long
    lite_topic: str | None = None
    suspend: bool = False


@header
class ChangeInvisibleTimeReplyHeader(Header):
    pop_time: Long
    invisible_time: Long
    revive_qid: Int


@header
class NotificationHeader(TopicHeader):
    consumer_group: str
    topic: str
    queue_id: Int
    poll_time: Long
    born_time: Long
    order: bool = False
    attempt_id: str | None = None
    exp_type: str | None = None
    exp: str | None = None


@header
class NotificationReplyHeader(Header):
    has_msg: bool
    polling_full: bool = False


@header
class PollingInfoHeader(TopicHeader):
    consumer_group: str
    topic: str
    queue_id: Int


@header
class PollingInfoReplyHeader(Header):
    polling_num: Int


@header
class PeekMessageHeader(TopicHeader):
    topic: str
    queue_id: Int
    max_msg_nums: Int
    consumer_group: str
