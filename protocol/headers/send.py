"""Headers of SEND_MESSAGE, SEND_MESSAGE_V2 and SEND_BATCH_MESSAGE."""

from collections.abc import Mapping
from typing import Self

from pyritemq.protocol.command import Command
from pyritemq.protocol.fields import Header, Int, Long, decode_short, encode_short, header, wire
from pyritemq.protocol.headers.rpc import TopicHeader


@header
class SendMessageHeader(TopicHeader):
    """SEND_MESSAGE uses the long names; SEND_MESSAGE_V2 and SEND_BATCH_MESSAGE the letters.

    What Java reads through a getter that turns null into 0 or false has that default here. The
    letter ``n`` is the broker's name, a field of all request headers.
    """

    producer_group: str = wire(short="a")
    topic: str = wire(short="b")
    default_topic: str = wire(short="c")
    default_topic_queue_nums: Int = wire(short="d")
    queue_id: Int = wire(short="e")
    sys_flag: Int = wire(short="f")
    born_timestamp: Long = wire(short="g")
    flag: Int = wire(short="h")
    properties: str | None = wire(default=None, short="i")
    reconsume_times: Int = wire(default=0, short="j")
    unit_mode: bool = wire(default=False, short="k")
    batch: bool = wire(default=False, short="m")
    max_reconsume_times: Int | None = wire(default=None, short="l")

    @classmethod
    def decode_v2(cls, ext: Mapping[str, str]) -> Self:
        """Read the one-letter names. Raises MissingField or InvalidField."""
        return decode_short(cls, ext)

    def encode_v2(self) -> dict[str, str]:
        """Write the one-letter names in their order, as Java's client does."""
        return encode_short(self)


@header
class SendMessageReplyHeader(Header):
    msg_id: str
    queue_id: Int
    queue_offset: Long
    transaction_id: str | None = None
    batch_uniq_id: str | None = None
    recall_handle: str | None = None


def decode_send_v2(command: Command) -> SendMessageHeader:
    """The header of a SEND_MESSAGE_V2 or SEND_BATCH_MESSAGE. Raises HeaderSyntaxError,
    MissingField or InvalidField."""
    return SendMessageHeader.decode_v2(command.ext_fields)
