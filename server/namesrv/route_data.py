"""The words of the name server's tables: brokers, their groups, queues, routes, registrations.

Plain data, made by handlers and by RouteTable; what RouteTable hands out are copies.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyritemq.compat.register_body import DataVersion, RegisterBrokerBody
    from pyritemq.server.connection import Channel

MASTER_ID = 0
PERM_WRITE = 2
PERM_READ = 4
UNIT_FLAG = 1
UNIT_SUB_FLAG = 2

# What a broker that announces no heartbeat timeout gets (RouteInfoManager, 5.5.0).
HEARTBEAT_TIMEOUT_MS = 120_000


class BrokerAddress(NamedTuple):
    """A live broker's key: one address may serve two clusters."""

    cluster: str
    address: str


class QueueData(NamedTuple):
    """A topic's queues on one broker name."""

    broker_name: str
    read_queue_nums: int
    write_queue_nums: int
    perm: int
    topic_sys_flag: int


@dataclass(slots=True)
class BrokerGroup:
    """A master and its slaves: one broker name (Java: BrokerData)."""

    cluster: str
    name: str
    addresses: dict[int, str] = field(default_factory=dict)
    zone: str | None = None
    acting_master: bool = False

    def copy(self) -> BrokerGroup:
        return BrokerGroup(
            self.cluster, self.name, dict(self.addresses), self.zone, self.acting_master
        )


@dataclass(slots=True)
class LiveBroker:
    """A broker that is heard of: when, what it told, and on which connection."""

    last_update_ms: int
    timeout_ms: int
    data_version: DataVersion
    channel: Channel
    ha_server_addr: str


@dataclass(frozen=True, slots=True)
class Registration:
    """What a broker says of itself in REGISTER_BROKER."""

    cluster: str
    address: str
    name: str
    broker_id: int
    ha_server_addr: str
    body: RegisterBrokerBody
    channel: Channel
    zone: str | None = None
    timeout_ms: int | None = None
    acting_master: bool | None = None  # None: a broker of 4.x, which knows nothing of it

    @property
    def key(self) -> BrokerAddress:
        return BrokerAddress(self.cluster, self.address)


class MasterAddresses(NamedTuple):
    """What a slave is told in reply."""

    ha_server_addr: str | None = None
    master_addr: str | None = None


class MinBrokerIdChange(NamedTuple):
    """The lowest broker id of a group has changed; these of its brokers are to be told."""

    min_broker_id: int
    min_broker_addr: str
    offline_broker_addr: str | None
    ha_broker_addr: str | None
    notify: list[str]


class Unregistration(NamedTuple):
    """A broker address that goes away."""

    cluster: str
    address: str
    name: str
    broker_id: int


class TopicRoute(NamedTuple):
    """A topic's route as copies that the caller may change."""

    queues: list[QueueData]
    brokers: list[BrokerGroup]
    filter_servers: dict[str, list[str]]
    queue_mappings: dict[str, Mapping[str, Any]] | None
