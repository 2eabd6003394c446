"""Headers of heartbeats, leaving clients and consumer lists."""

from pyritemq.protocol.fields import header, wire
from pyritemq.protocol.headers.rpc import RpcHeader


@header
class HeartbeatHeader(RpcHeader):
    pass


@header
class UnregisterClientHeader(RpcHeader):
    client_id: str = wire("clientID")
    producer_group: str | None = None
    consumer_group: str | None = None


@header
class GetConsumerListByGroupHeader(RpcHeader):
    consumer_group: str


@header
class NotifyConsumerIdsChangedHeader(RpcHeader):
    consumer_group: str
