"""Headers with which brokers and tools talk to a name server about brokers."""

from pyritemq.protocol.fields import Header, Int, Long, header


@header
class RegisterBrokerHeader(Header):
    broker_name: str
    broker_addr: str
    cluster_name: str
    ha_server_addr: str
    broker_id: Long
    heartbeat_timeout_millis: Long | None = None
    enable_acting_master: bool | None = None
    compressed: bool = False
    body_crc32: Int = 0


@header
class RegisterBrokerReplyHeader(Header):
    ha_server_addr: str | None = None
    master_addr: str | None = None


@header
class UnRegisterBrokerHeader(Header):
    broker_name: str
    broker_addr: str
    cluster_name: str
    broker_id: Long


@header
class BrokerHeartbeatHeader(Header):
    cluster_name: str
    broker_addr: str
    broker_name: str
    broker_id: Long | None = None
    epoch: Int | None = None
    max_offset: Long | None = None
    confirm_offset: Long | None = None
    heartbeat_timeout_mills: Long | None = None
    election_priority: Int | None = None


@header
class QueryDataVersionHeader(Header):
    broker_name: str
    broker_addr: str
    cluster_name: str
    broker_id: Long


@header
class QueryDataVersionReplyHeader(Header):
    changed: bool


@header
class GetBrokerMemberGroupHeader(Header):
    cluster_name: str
    broker_name: str


@header
class NotifyMinBrokerIdChangeHeader(Header):
    min_broker_id: Long | None = None
    broker_name: str | None = None
    min_broker_addr: str | None = None
    offline_broker_addr: str | None = None
    ha_broker_addr: str | None = None


@header
class WipeWritePermOfBrokerHeader(Header):
    broker_name: str


@header
class WipeWritePermOfBrokerReplyHeader(Header):
    wipe_topic_count: Int


@header
class AddWritePermOfBrokerHeader(Header):
    broker_name: str


@header
class AddWritePermOfBrokerReplyHeader(Header):
    add_topic_count: Int
