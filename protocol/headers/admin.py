"""Headers of administration: configuration, statistics, consumers, offsets and the store."""

from pyritemq.protocol.fields import Header, Int, Long, header, wire
from pyritemq.protocol.headers.rpc import RpcHeader, TopicHeader


@header
class GetBrokerConfigReplyHeader(Header):
    version: str


@header
class GetAllTopicConfigHeader(RpcHeader):
    data_version: str | None = None
    topic_seq: Int | None = None
    max_topic_num: Int | None = None


@header
class GetAllTopicConfigReplyHeader(Header):
    total_topic_num: Int


@header
class GetTopicStatsInfoHeader(TopicHeader):
    topic: str


@header
class GetSubscriptionGroupConfigHeader(RpcHeader):
    group: str


@header
class GetAllSubscriptionGroupHeader(RpcHeader):
    data_version: str | None = None
    group_seq: Int | None = None
    max_group_num: Int | None = None


@header
class GetAllSubscriptionGroupReplyHeader(Header):
    total_group_num: Int


@header
class DeleteSubscriptionGroupHeader(RpcHeader):
    group_name: str
    clean_offset: bool = False


@header
class UpdateGroupForbiddenHeader(TopicHeader):
    group: str
    topic: str
    readable: bool | None = None


@header
class GetConsumeStatsHeader(TopicHeader):
    consumer_group: str
    topic: str | None = None
    topic_list: str | None = None

    @property
    def topics(self) -> list[str]:
        """The topics of `topic_list`, which separates them with semicolons."""
        return [name for name in (self.topic_list or "").split(";") if name.strip()]


@header
class GetConsumeStatsInBrokerHeader(Header):
    is_order: bool


@header
class ViewBrokerStatsDataHeader(Header):
    stats_name: str
    stats_key: str


@header
class QueryTopicConsumeByWhoHeader(TopicHeader):
    topic: str


@header
class QueryTopicsByConsumerHeader(RpcHeader):
    group: str


@header
class QuerySubscriptionByConsumerHeader(TopicHeader):
    group: str
    topic: str | None = None


@header
class QueryConsumeTimeSpanHeader(TopicHeader):
    topic: str
    group: str


@header
class GetConsumerRunningInfoHeader(RpcHeader):
    consumer_group: str
    client_id: str
    jstack_enable: bool = False


@header
class ConsumeMessageDirectlyHeader(TopicHeader):
    consumer_group: str
    client_id: str | None = None
    msg_id: str | None = None
    topic: str | None = None


@header
class GetConsumerStatusHeader(TopicHeader):
    topic: str
    group: str
    client_addr: str | None = None


@header
class ResetOffsetHeader(TopicHeader):
    group: str
    topic: str
    queue_id: Int = -1
    offset: Long | None = None
    timestamp: Long
    force: bool = wire("isForce")


@header
class CloneGroupOffsetHeader(RpcHeader):
    src_group: str
    dest_group: str
    topic: str | None = None
    offline: bool = False


@header
class QueryCorrectionOffsetHeader(TopicHeader):
    filter_groups: str | None = None
    compare_group: str
    topic: str


@header
class QueryConsumeQueueHeader(TopicHeader):
    topic: str
    queue_id: Int = 0
    index: Long = 0
    count: Int = 0
    consumer_group: str | None = None


@header
class ExchangeHAInfoReplyHeader(Header):
    master_ha_address: str | None = None
    master_flush_offset: Long | None = None
    master_address: str | None = None
