"""Which brokers are alive, where they are, and which of them hold a topic's queues.

RouteTable is the name server's whole state besides the KV configuration; it follows Java 5.5.0's
RouteInfoManager. Handlers call it on lanes CLIENT and ADMIN, the expiry scan from a worker thread;
one lock guards all tables and is held for look-ups and updates only, never across I/O.

`version` grows with every change that a route can show, so that encoded replies can be kept until
then. A registration that repeats what is known, which is nearly all of them, does not change it.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from pyritemq.server.namesrv.route_data import (
    HEARTBEAT_TIMEOUT_MS,
    MASTER_ID,
    PERM_READ,
    PERM_WRITE,
    BrokerAddress,
    BrokerGroup,
    LiveBroker,
    MasterAddresses,
    MinBrokerIdChange,
    QueueData,
    Registration,
    TopicRoute,
    Unregistration,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from pyritemq.compat.register_body import DataVersion, TopicConfig
    from pyritemq.server.connection import Channel

# Far above any real cluster. Without a bound, a peer that registers a new name with each request
# would fill the memory; past it, registrations of new addresses fail and known ones go on.
LIVE_BROKERS_MAX = 10_000


class TooManyBrokers(Exception):  # noqa: N818 - a refusal, not an error of ours
    """LIVE_BROKERS_MAX is reached."""


class SingleTopicRefused(Exception):  # noqa: N818 - likewise
    """A broker that has not registered as a whole sent one topic only."""


class RouteTable:
    """All routes; see the module's words on locking."""

    def __init__(self, monotonic_ms: Callable[[], int]) -> None:
        self._monotonic_ms = monotonic_ms
        self._lock = threading.Lock()
        self._topics: dict[str, dict[str, QueueData]] = {}  # topic -> broker name -> queues
        self._brokers: dict[str, BrokerGroup] = {}
        self._clusters: dict[str, dict[str, None]] = {}  # cluster -> broker names, in order
        self._live: dict[BrokerAddress, LiveBroker] = {}
        self._filter_servers: dict[BrokerAddress, list[str]] = {}
        self._queue_mappings: dict[str, dict[str, Mapping[str, Any]]] = {}
        self.version = 0

    # Brokers come

    def register(
        self, registration: Registration, *, delete_absent_topics: bool = False
    ) -> tuple[MasterAddresses, MinBrokerIdChange | None]:
        """Take a broker in or renew it. Raises SingleTopicRefused or TooManyBrokers."""
        with self._lock:
            group = self._brokers.get(registration.name) or BrokerGroup(
                registration.cluster, registration.name
            )
            lowest_before = min(group.addresses, default=MASTER_ID)
            self._drop_old_id(group, registration)
            if self._conflicts(group, registration):
                self._live.pop(registration.key, None)
                return MasterAddresses(), None
            if registration.broker_id not in group.addresses and len(registration.body.topics) == 1:
                raise SingleTopicRefused
            self._check_room(registration.key)
            known = self._join(group, registration)
            self._take_topics(group, registration, known=known, delete=delete_absent_topics)
            self._renew(registration)
            change = (
                _min_broker_id_change(group, None, registration.ha_server_addr)
                if registration.broker_id < lowest_before
                else None
            )
            return self._master_of(group, registration), change

    def _drop_old_id(self, group: BrokerGroup, registration: Registration) -> None:
        """A slave that became master: its address is listed once, under its new id."""
        stale = [
            broker_id
            for broker_id, address in group.addresses.items()
            if address == registration.address and broker_id != registration.broker_id
        ]
        for broker_id in stale:
            del group.addresses[broker_id]
            self.version += 1

    def _conflicts(self, group: BrokerGroup, registration: Registration) -> bool:
        """Another address holds this id and has seen a later state: an old master comes back."""
        holder = group.addresses.get(registration.broker_id)
        if holder is None or holder == registration.address:
            return False
        live = self._live.get(BrokerAddress(registration.cluster, holder))
        theirs = registration.body.data_version.state_version
        return live is not None and live.data_version.state_version > theirs

    def _check_room(self, key: BrokerAddress) -> None:
        if key not in self._live and len(self._live) >= LIVE_BROKERS_MAX:
            raise TooManyBrokers

    def _join(self, group: BrokerGroup, registration: Registration) -> bool:
        """Put the address into its group and cluster; True if the group knew this id before."""
        before = group.addresses.get(registration.broker_id)
        shown = (group.zone, group.acting_master, before, group.name in self._brokers)
        group.zone = registration.zone
        group.acting_master = bool(registration.acting_master)
        group.addresses[registration.broker_id] = registration.address
        self._brokers[group.name] = group
        self._clusters.setdefault(registration.cluster, {})[group.name] = None
        if shown != (group.zone, group.acting_master, registration.address, True):
            self.version += 1
        return bool(before)

    def _take_topics(
        self, group: BrokerGroup, registration: Registration, *, known: bool, delete: bool
    ) -> None:
        """The master's topics count, or those of the lowest slave of a 5.x group."""
        is_master = registration.broker_id == MASTER_ID
        is_prime_slave = (
            not is_master
            and registration.acting_master is not None
            and registration.broker_id == min(group.addresses)
        )
        if not (is_master or is_prime_slave):
            return
        body = registration.body
        if delete and not body.queue_mappings:
            self._delete_absent_topics(group.name, body.topics)
        changed = not known or self._is_changed(registration.key, body.data_version)
        read_only = is_prime_slave and group.acting_master
        for topic in body.topics.values():
            if changed or group.name not in self._topics.get(topic.topic_name, ()):
                self._put_topic(group.name, topic, read_only=read_only)
        if changed:
            self._put_queue_mappings(body.queue_mappings)

    def _put_topic(self, broker_name: str, topic: TopicConfig, *, read_only: bool) -> None:
        perm = topic.perm & ~PERM_WRITE if read_only else topic.perm
        queues = QueueData(
            broker_name, topic.read_queue_nums, topic.write_queue_nums, perm, topic.topic_sys_flag
        )
        by_broker = self._topics.setdefault(topic.topic_name, {})
        if by_broker.get(broker_name) != queues:
            by_broker[broker_name] = queues
            self.version += 1

    def _put_queue_mappings(self, mappings: Mapping[str, Mapping[str, Any]]) -> None:
        """A mapping counts for the broker name that it carries itself."""
        for topic, mapping in mappings.items():
            self._queue_mappings.setdefault(topic, {})[mapping["bname"]] = mapping
            self.version += 1

    def _delete_absent_topics(self, broker_name: str, present: Mapping[str, object]) -> None:
        for topic in [t for t, by_broker in self._topics.items() if broker_name in by_broker]:
            if topic not in present:
                self._remove_queues(topic, broker_name)

    def _renew(self, registration: Registration) -> None:
        timeout = registration.timeout_ms
        self._live[registration.key] = LiveBroker(
            last_update_ms=self._monotonic_ms(),
            timeout_ms=HEARTBEAT_TIMEOUT_MS if timeout is None else timeout,
            data_version=registration.body.data_version,
            channel=registration.channel,
            ha_server_addr=registration.ha_server_addr,
        )
        servers = registration.body.filter_servers
        if servers is not None and servers != self._filter_servers.get(registration.key, []):
            self.version += 1
            if servers:
                self._filter_servers[registration.key] = servers
            else:
                del self._filter_servers[registration.key]

    def _master_of(self, group: BrokerGroup, registration: Registration) -> MasterAddresses:
        master = group.addresses.get(MASTER_ID)
        if registration.broker_id == MASTER_ID or master is None:
            return MasterAddresses()
        live = self._live.get(BrokerAddress(registration.cluster, master))
        return MasterAddresses(live.ha_server_addr, master) if live else MasterAddresses()

    # Brokers are heard of

    def is_changed(self, key: BrokerAddress, data_version: DataVersion) -> bool:
        """Whether a broker has topics to tell: nothing known of it, or another version."""
        with self._lock:
            return self._is_changed(key, data_version)

    def _is_changed(self, key: BrokerAddress, data_version: DataVersion) -> bool:
        live = self._live.get(key)
        return live is None or live.data_version != data_version

    def data_version(self, key: BrokerAddress) -> DataVersion | None:
        with self._lock:
            live = self._live.get(key)
            return live.data_version if live else None

    def touch(self, key: BrokerAddress) -> None:
        """A heartbeat; one of an unknown broker is no news."""
        with self._lock:
            live = self._live.get(key)
            if live:
                live.last_update_ms = self._monotonic_ms()

    # Brokers go

    def unregister(self, leaving: Iterable[Unregistration]) -> list[MinBrokerIdChange]:
        """Remove addresses, and with the last one of a name its topics, in one pass over these."""
        with self._lock:
            return self._unregister(leaving)

    def expire_silent(
        self,
    ) -> tuple[list[tuple[BrokerAddress, LiveBroker]], list[MinBrokerIdChange]]:
        """Remove brokers that were silent beyond their timeout, and say which they were."""
        with self._lock:
            now = self._monotonic_ms()
            silent = [
                (key, live)
                for key, live in self._live.items()
                if live.last_update_ms + live.timeout_ms < now
            ]
            return silent, self._unregister_keys([key for key, _ in silent])

    def drop_channel(self, channel: Channel) -> tuple[list[BrokerAddress], list[MinBrokerIdChange]]:
        """Remove what registered on a connection that is gone."""
        with self._lock:
            keys = [key for key, live in self._live.items() if live.channel is channel]
            return keys, self._unregister_keys(keys)

    def _unregister_keys(self, keys: list[BrokerAddress]) -> list[MinBrokerIdChange]:
        leaving = []
        for key in keys:
            del self._live[key]
            leaving += [
                Unregistration(key.cluster, key.address, group.name, broker_id)
                for group in self._brokers.values()
                if group.cluster == key.cluster
                for broker_id, address in group.addresses.items()
                if address == key.address
            ]
        return self._unregister(leaving) if leaving else []

    def _unregister(self, leaving: Iterable[Unregistration]) -> list[MinBrokerIdChange]:
        removed: set[str] = set()
        reduced: set[str] = set()
        changes: list[MinBrokerIdChange] = []
        for gone in leaving:
            key = BrokerAddress(gone.cluster, gone.address)
            self._live.pop(key, None)
            self._filter_servers.pop(key, None)
            group = self._brokers.get(gone.name)
            if group is None:
                continue
            was_lowest = gone.broker_id == min(group.addresses, default=None)
            _remove_address(group, gone.address)
            if not group.addresses:
                self._remove_group(group)
                removed.add(gone.name)
            else:
                reduced.add(gone.name)
                if was_lowest and group.acting_master:
                    changes.append(_min_broker_id_change(group, gone.address, None))
        self.version += 1
        self._clean_topics(removed, reduced - removed)
        return changes

    def _remove_group(self, group: BrokerGroup) -> None:
        """Forget a name, also in clusters that it registered with after its first one."""
        del self._brokers[group.name]
        for cluster, names in list(self._clusters.items()):
            names.pop(group.name, None)
            if not names:
                del self._clusters[cluster]

    def _clean_topics(self, removed: set[str], reduced: set[str]) -> None:
        """Drop queues of names that are gone; without a master, acting masters take no messages."""
        read_only = {name for name in reduced if self._lacks_master(name)}
        for topic, by_broker in list(self._topics.items()):
            for name in removed & by_broker.keys():
                self._remove_queues(topic, name)
            for name in read_only & by_broker.keys():
                queues = by_broker[name]
                by_broker[name] = queues._replace(perm=queues.perm & ~PERM_WRITE)

    def _lacks_master(self, broker_name: str) -> bool:
        group = self._brokers[broker_name]
        return group.acting_master and min(group.addresses) > MASTER_ID

    def _remove_queues(self, topic: str, broker_name: str) -> None:
        by_broker = self._topics[topic]
        del by_broker[broker_name]
        if not by_broker:
            del self._topics[topic]
            # Java keeps it for ever, and an ordinary topic of this name would be taken for static.
            self._queue_mappings.pop(topic, None)
        self.version += 1

    # Topics

    def route_of(self, topic: str) -> TopicRoute | None:
        """Copies of what is known of a topic, or None without a live broker for it."""
        with self._lock:
            by_broker = self._topics.get(topic)
            if by_broker is None:
                return None
            groups = [self._brokers[n].copy() for n in by_broker if n in self._brokers]
            if not groups:
                return None
            mappings = self._queue_mappings.get(topic)
            return TopicRoute(
                queues=list(by_broker.values()),
                brokers=groups,
                filter_servers=self._filter_servers_of(groups),
                queue_mappings=None if mappings is None else dict(mappings),
            )

    def _filter_servers_of(self, groups: list[BrokerGroup]) -> dict[str, list[str]]:
        if not self._filter_servers:
            return {}
        found = {}
        for group in groups:
            for address in group.addresses.values():
                servers = self._filter_servers.get(BrokerAddress(group.cluster, address))
                if servers:
                    found[address] = servers
        return found

    def put_topic(self, topic: str, queues: list[QueueData]) -> bool:
        """Set a topic's queues by hand; False if one is on a broker that is not known.

        As in Java, the queues before that one are kept if the topic was known already.
        """
        with self._lock:
            by_broker = dict(self._topics.get(topic, {}))
            accepted = True
            for data in queues:
                if data.broker_name not in self._brokers:
                    accepted = False
                    break
                by_broker[data.broker_name] = data
            if accepted or topic in self._topics:
                self._topics[topic] = by_broker
                self.version += 1
            return accepted

    def delete_topic(self, topic: str, cluster: str | None = None) -> None:
        """Forget a topic everywhere or, given a cluster, on its brokers only."""
        with self._lock:
            by_broker = self._topics.get(topic, {})
            names = by_broker.keys() if not cluster else self._clusters.get(cluster, {}).keys()
            for name in list(by_broker.keys() & names):
                self._remove_queues(topic, name)

    def set_write_perm(self, broker_name: str, *, writable: bool) -> int:
        """Take from or give to a broker the right to be written to; the number of its topics."""
        with self._lock:
            count = 0
            for by_broker in self._topics.values():
                queues = by_broker.get(broker_name)
                if queues is None:
                    continue
                perm = PERM_READ | PERM_WRITE if writable else queues.perm & ~PERM_WRITE
                by_broker[broker_name] = queues._replace(perm=perm)
                count += 1
            self.version += 1
            return count

    # What is there

    def topic_names(self, where: Callable[[QueueData], bool] | None = None) -> list[str]:
        """All topics, or those whose first queues satisfy `where` (as Java looks at the first)."""
        with self._lock:
            if where is None:
                return list(self._topics)
            return [t for t, by in self._topics.items() if where(next(iter(by.values())))]

    def topic_names_in(self, cluster: str) -> list[str]:
        with self._lock:
            names = self._clusters.get(cluster, {}).keys()
            return [t for t, by_broker in self._topics.items() if names & by_broker.keys()]

    def system_names(self) -> tuple[list[str], str | None]:
        """Cluster and broker names, each of which is a topic, and the address of some broker."""
        with self._lock:
            names = dict.fromkeys(
                name for cluster, brokers in self._clusters.items() for name in (cluster, *brokers)
            )
            addresses = (a for g in self._brokers.values() for a in g.addresses.values())
            return list(names), next(addresses, None)

    def clusters(self) -> tuple[list[BrokerGroup], dict[str, list[str]]]:
        """Copies of all broker groups, and the broker names of each cluster."""
        with self._lock:
            groups = [group.copy() for group in self._brokers.values()]
            return groups, {cluster: list(names) for cluster, names in self._clusters.items()}

    def members_of(self, broker_name: str) -> dict[int, str]:
        with self._lock:
            group = self._brokers.get(broker_name)
            return dict(group.addresses) if group else {}


def _remove_address(group: BrokerGroup, address: str) -> None:
    for broker_id in [i for i, listed in group.addresses.items() if listed == address]:
        del group.addresses[broker_id]


def _min_broker_id_change(
    group: BrokerGroup, offline: str | None, ha_server_addr: str | None
) -> MinBrokerIdChange:
    """A broker that went: tell all that stay. One that came: tell those that were there."""
    lowest = min(group.addresses)
    told = [
        address
        for broker_id, address in group.addresses.items()
        if offline is not None or len(group.addresses) == 1 or broker_id != lowest
    ]
    return MinBrokerIdChange(lowest, group.addresses[lowest], offline, ha_server_addr, told)
