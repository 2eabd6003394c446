"""Who is connected: producer groups and consumer groups with their clients.

Owner: the client lane (heartbeats, unregistration, closed connections, the expiry scan).  Each
table has one lock, held for look-ups and for putting a new value in place, never across a post to a
connection.  A `ConsumerGroup` is immutable and replaced whole when its membership or subscriptions
change, so the pull lane may keep the one that it looked up.

A group that changes is told at once: `on_change(group, channels)` is called after the lock is
released, with the connections that are left in the group; `on_empty(group)` when none is.
"""

from __future__ import annotations

import logging
import threading
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING

from pyritemq.protocol.codes import RequestCode
from pyritemq.protocol.command import FLAG_ONEWAY, Command
from pyritemq.protocol.headers.client import NotifyConsumerIdsChangedHeader
from pyritemq.server.broker.state.subscriptions import BROADCASTING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from pyritemq.server.broker.state.subscriptions import ConsumerData, Subscription
    from pyritemq.server.clock import Clock
    from pyritemq.server.connection import Channel

logger = logging.getLogger(__name__)

CHANNEL_EXPIRED_MS = 120_000
"""A client that is silent for longer is dropped; clients send a heartbeat every 30 seconds."""

SCAN_SECONDS = 10
"""How often Java's ClientHousekeepingService looks for silent clients."""

AVAILABLE_CHANNEL_TRIES = 3
"""How many connections of a group Java tries before it gives up on finding an open one."""


@dataclass(slots=True, eq=False)
class Client:
    """One connection as a member of a group (Java: ClientChannelInfo); seen_ms moves on."""

    channel: Channel
    client_id: str
    language: int
    version: int
    seen_ms: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerGroup:
    """A consumer group at one moment."""

    name: str
    consume_type: str | None = None
    message_model: str | None = None
    consume_from_where: str | None = None
    clients: Mapping[Channel, Client] = field(default_factory=lambda: MappingProxyType({}))
    subscriptions: Mapping[str, Subscription] = field(default_factory=lambda: MappingProxyType({}))

    @property
    def client_ids(self) -> list[str]:
        return [client.client_id for client in self.clients.values()]

    @property
    def is_broadcasting(self) -> bool:
        return self.message_model == BROADCASTING

    def without(self, channel: Channel) -> ConsumerGroup:
        left = {key: client for key, client in self.clients.items() if key is not channel}
        return replace(self, clients=MappingProxyType(left))


class ProducerTable:
    """Producer groups (Java: ProducerManager)."""

    def __init__(self, clock: Clock, *, expired_ms: int = CHANNEL_EXPIRED_MS) -> None:
        self._clock = clock
        self._expired_ms = expired_ms
        self._lock = threading.Lock()
        self._groups: dict[str, dict[Channel, Client]] = {}
        self._by_client_id: dict[str, Channel] = {}
        self._turn = 0

    def register(self, group: str, client: Client) -> None:
        """A heartbeat: join the group, or be seen again."""
        client.seen_ms = now_ms = _monotonic_ms(self._clock)
        with self._lock:
            clients = self._groups.setdefault(group, {})
            known = clients.get(client.channel)
            if known is None:
                clients[client.channel] = client
                self._by_client_id[client.client_id] = client.channel
            else:
                known.seen_ms = now_ms
        if known is None:
            logger.info(
                "producer joined group=%s client=%s peer=%s",
                group,
                client.client_id,
                client.channel.remote_address,
            )

    def unregister(self, group: str, channel: Channel) -> None:
        """A producer says goodbye."""
        with self._lock:
            self._remove(group, channel)

    def channel_closed(self, channel: Channel) -> None:
        """A connection ended: it leaves every group that it was in."""
        with self._lock:
            for group in [name for name, clients in self._groups.items() if channel in clients]:
                self._remove(group, channel)

    def scan(self) -> None:
        """Drop and close the clients that have been silent for too long."""
        oldest_ms = _monotonic_ms(self._clock) - self._expired_ms
        with self._lock:
            silent = [
                (group, client.channel)
                for group, clients in self._groups.items()
                for client in clients.values()
                if client.seen_ms < oldest_ms
            ]
            for group, channel in silent:
                self._remove(group, channel)
        for group, channel in silent:
            logger.warning("producer expired group=%s peer=%s", group, channel.remote_address)
            channel.close()

    def adopt(self, other: ProducerTable) -> None:
        """Go on with another table's members, before anyone uses this one."""
        with other._lock:
            self._groups = {group: dict(clients) for group, clients in other._groups.items()}
            self._by_client_id = dict(other._by_client_id)

    def clients(self, group: str) -> list[Client] | None:
        """The group's clients, or None for a group that nobody is in."""
        with self._lock:
            clients = self._groups.get(group)
            return None if clients is None else list(clients.values())

    def groups(self) -> dict[str, list[Client]]:
        """All groups with their clients."""
        with self._lock:
            return {group: list(clients.values()) for group, clients in self._groups.items()}

    def find_channel(self, client_id: str) -> Channel | None:
        """The connection that a producer last registered with."""
        with self._lock:
            return self._by_client_id.get(client_id)

    def available_channel(self, group: str) -> Channel | None:
        """An open connection of the group, another one at each call."""
        with self._lock:
            channels = list(self._groups.get(group, ()))
            self._turn += 1
            turn = self._turn
        for step in range(min(AVAILABLE_CHANNEL_TRIES, len(channels))):
            channel = channels[(turn + step) % len(channels)]
            if not channel.closed:
                return channel
        return None

    def _remove(self, group: str, channel: Channel) -> None:
        clients = self._groups.get(group, {})
        client = clients.pop(channel, None)
        if client is None:
            return
        if self._by_client_id.get(client.client_id) is channel:
            del self._by_client_id[client.client_id]
        if not clients:
            del self._groups[group]


class ConsumerTable:
    """Consumer groups (Java: ConsumerManager)."""

    def __init__(
        self,
        clock: Clock,
        *,
        on_change: Callable[[str, list[Channel]], None],
        expired_ms: int = CHANNEL_EXPIRED_MS,
    ) -> None:
        self._clock = clock
        self._on_change = on_change
        self.on_empty: Callable[[str], None] = lambda group: None
        self._expired_ms = expired_ms
        self._lock = threading.Lock()
        self._groups: dict[str, ConsumerGroup] = {}
        self._fingerprints: dict[str, int] = {}

    def register(
        self,
        data: ConsumerData,
        client: Client,
        *,
        notify: bool,
        with_subscriptions: bool = True,
    ) -> bool:
        """A heartbeat of one group; whether a client or a topic came or went."""
        client.seen_ms = _monotonic_ms(self._clock)
        with self._lock:
            old = self._groups.get(data.group_name) or ConsumerGroup(name=data.group_name)
            clients, joined = _with_client(old, client)
            subscriptions, resubscribed = old.subscriptions, False
            if with_subscriptions:
                subscriptions, resubscribed = _subscribe(old, data.subscriptions)
            group = self._groups[data.group_name] = ConsumerGroup(
                name=data.group_name,
                consume_type=data.consume_type,
                message_model=data.message_model,
                consume_from_where=data.consume_from_where,
                clients=clients,
                subscriptions=subscriptions,
            )
        changed = joined or resubscribed
        if changed:
            logger.info(
                "consumer group changed group=%s client=%s peer=%s topics=%s",
                group.name,
                client.client_id,
                client.channel.remote_address,
                ",".join(group.subscriptions),
            )
            self._tell(group, notify=notify)
        return changed

    def unregister(self, group: str, channel: Channel, *, notify: bool) -> None:
        """A consumer says goodbye; those that are left are told."""
        with self._lock:
            left = self._remove(group, channel)
        if left is not None:
            self._tell(left, notify=notify)

    def channel_closed(self, channel: Channel) -> None:
        """A connection ended: it leaves every group that it was in."""
        with self._lock:
            names = [name for name, group in self._groups.items() if channel in group.clients]
            left = [self._remove(name, channel) for name in names]
        for group in left:
            if group is not None:
                self._tell(group, notify=True)

    def scan(self) -> None:
        """Drop and close the clients that have been silent for too long.

        Java does not tell the group here; closing the connection does, and so does this: the ones
        that are left hear of it at once.
        """
        oldest_ms = _monotonic_ms(self._clock) - self._expired_ms
        with self._lock:
            silent = [
                client.channel
                for group in self._groups.values()
                for client in group.clients.values()
                if client.seen_ms < oldest_ms
            ]
        for channel in silent:
            logger.warning("consumer expired peer=%s", channel.remote_address)
            self.channel_closed(channel)
            channel.close()

    def adopt(self, other: ConsumerTable) -> None:
        """Go on with another table's members, before anyone uses this one."""
        with other._lock:
            self._groups = dict(other._groups)
            self._fingerprints = dict(other._fingerprints)

    def exchange_fingerprint(self, group: str, fingerprint: int) -> int | None:
        """Keep a heartbeat's fingerprint and return the one before; forgotten with the group."""
        with self._lock:
            before = self._fingerprints.get(group)
            if group in self._groups:
                self._fingerprints[group] = fingerprint
            return before

    def get(self, group: str) -> ConsumerGroup | None:
        """A group that has at least one client."""
        with self._lock:
            return self._groups.get(group)

    def groups(self) -> dict[str, ConsumerGroup]:
        """All groups."""
        with self._lock:
            return dict(self._groups)

    def find_subscription(self, group: str, topic: str) -> Subscription | None:
        """What a group asked for of a topic."""
        with self._lock:
            found = self._groups.get(group)
        return None if found is None else found.subscriptions.get(topic)

    def groups_of_topic(self, topic: str) -> set[str]:
        """The groups that subscribe to a topic now."""
        with self._lock:
            groups = list(self._groups.values())
        return {group.name for group in groups if topic in group.subscriptions}

    def _remove(self, name: str, channel: Channel) -> ConsumerGroup | None:
        """Under the lock: what is left of the group, or None if the channel was not in it."""
        group = self._groups.get(name)
        if group is None or channel not in group.clients:
            return None
        left = group.without(channel)
        if left.clients:
            self._groups[name] = left
        else:
            del self._groups[name]
            self._fingerprints.pop(name, None)
        return left

    def _tell(self, group: ConsumerGroup, *, notify: bool) -> None:
        if not group.clients:
            self.on_empty(group.name)
        if notify and group.clients and not group.is_broadcasting:
            self._on_change(group.name, list(group.clients))


def notify_consumer_ids_changed(group: str, channels: Iterable[Channel]) -> None:
    """Tell clients to rebalance now; one-way, as Java's Broker2Client does it."""
    ext_fields = NotifyConsumerIdsChangedHeader(consumer_group=group).encode()
    for channel in channels:
        command = Command(
            RequestCode.NOTIFY_CONSUMER_IDS_CHANGED, flag=FLAG_ONEWAY, ext_fields=ext_fields
        )
        channel.post(command)


def _with_client(group: ConsumerGroup, client: Client) -> tuple[Mapping[Channel, Client], bool]:
    known = group.clients.get(client.channel)
    if known is not None and known.client_id == client.client_id:
        known.seen_ms = client.seen_ms
        return group.clients, False
    clients = {**group.clients, client.channel: client}
    # Java: a connection that changes its client id is replaced, but that is no change of the group.
    return MappingProxyType(clients), known is None


def _subscribe(
    group: ConsumerGroup, subscriptions: Iterable[Subscription]
) -> tuple[Mapping[str, Subscription], bool]:
    """The group's topics after a heartbeat; a newer expression alone does not count as a change."""
    wanted: dict[str, Subscription] = {}
    for new in subscriptions:
        old = wanted.get(new.topic) or group.subscriptions.get(new.topic)
        wanted[new.topic] = new if old is None or new.sub_version > old.sub_version else old
    return MappingProxyType(wanted), wanted.keys() != group.subscriptions.keys()


def _monotonic_ms(clock: Clock) -> int:
    return clock.monotonic_ns() // 1_000_000
