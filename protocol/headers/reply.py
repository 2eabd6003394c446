"""The header of PUSH_REPLY_MESSAGE_TO_CLIENT: a reply on its way from the broker to the requester.

SEND_REPLY_MESSAGE and SEND_REPLY_MESSAGE_V2 carry a SendMessageHeader, as any send does.
"""

from pyritemq.protocol.fields import Int, Long, header
from pyritemq.protocol.headers.rpc import TopicHeader


@header
class ReplyMessageHeader(TopicHeader):
    producer_group: str
    topic: str
    default_topic: str
    default_topic_queue_nums: Int
    queue_id: Int
    sys_flag: Int
    born_timestamp: Long
    flag: Int
    properties: str | None = None
    reconsume_times: Int | None = None
    unit_mode: bool = False
    born_host: str
    store_host: str
    store_timestamp: Long
