"""Header of CONSUMER_SEND_MSG_BACK: a consumer names a message that it could not consume."""

from pyritemq.protocol.fields import Int, Long, header
from pyritemq.protocol.headers.rpc import RpcHeader


@header
class ConsumerSendMsgBackHeader(RpcHeader):
    offset: Long
    group: str
    delay_level: Int
    origin_msg_id: str | None = None
    origin_topic: str | None = None
    unit_mode: bool = False
    max_reconsume_times: Int | None = None
