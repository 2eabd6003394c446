"""The bodies of route replies: TopicRouteData in the two spellings that clients read.

Clients since 4.9.4, and any that ask for standard JSON, get quoted broker ids; older Java clients
get fastjson's bare ones ({0:"addr"}). Encoded bodies are kept until the routes or the settings that
they depend on change, because a fleet of clients asks for the same few topics every 30 seconds.

RouteReplies is used on lane CLIENT, by several threads; the cache has its own lock, which is held
for look-ups only.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from pyritemq.compat import fastjson
from pyritemq.server.namesrv.route_data import MASTER_ID, PERM_WRITE

if TYPE_CHECKING:
    from pyritemq.compat.namesrv_conf import NamesrvConfig
    from pyritemq.server.namesrv.kv_config import KvConfig
    from pyritemq.server.namesrv.route_data import BrokerGroup, QueueData, TopicRoute
    from pyritemq.server.namesrv.routes import RouteTable

ORDER_TOPIC_NAMESPACE = "ORDER_TOPIC_CONFIG"
MEMBER_SYNC_PREFIX = "rmq_sys_SYNC_BROKER_MEMBER_"

# A body takes about 300 bytes for each broker of the topic: some tens of megabytes when full.
CACHED_BODIES_MAX = 50_000


class RouteReplies:
    """Encoded routes by topic and spelling."""

    def __init__(self, routes: RouteTable, kv_config: KvConfig, config: NamesrvConfig) -> None:
        self._routes = routes
        self._kv_config = kv_config
        self._config = config
        self._lock = threading.Lock()
        self._cached: dict[tuple[str, bool], bytes] = {}
        self._cached_at: tuple[object, ...] = ()

    def body_for(self, topic: str, *, standard: bool) -> bytes | None:
        """The body for a topic; None if no broker has it."""
        state = self._state()
        with self._lock:
            if state != self._cached_at or len(self._cached) >= CACHED_BODIES_MAX:
                self._cached.clear()
                self._cached_at = state
            body = self._cached.get((topic, standard))
        if body is None:
            body = self._build(topic, standard=standard)
            self._keep(topic, standard=standard, body=body, state=state)
        return body

    def body_for_zone(self, topic: str, zone: str) -> bytes | None:
        """Only brokers of a zone, always in fastjson's spelling: what ZoneRouteRPCHook leaves."""
        route = self._pick(topic)
        if route is None:
            return None
        return fastjson.dumps(_to_json(_filter_by_zone(route, zone), self._order_conf(topic)))

    def _state(self) -> tuple[object, ...]:
        """All that a body depends on.

        Read before the tables are: a body may be newer, never older.
        """
        config = self._config
        return (
            self._routes.version,
            config.support_acting_master,
            config.order_message_enable and self._kv_config.version,
        )

    def _keep(
        self, topic: str, *, standard: bool, body: bytes | None, state: tuple[object, ...]
    ) -> None:
        with self._lock:
            if body is not None and state == self._cached_at:
                self._cached[topic, standard] = body

    def _build(self, topic: str, *, standard: bool) -> bytes | None:
        route = self._pick(topic)
        if route is None:
            return None
        fields = _to_json(route, self._order_conf(topic))
        return fastjson.dumps_standard(fields) if standard else fastjson.dumps(fields)

    def _pick(self, topic: str) -> TopicRoute | None:
        route = self._routes.route_of(topic)
        if (
            route is not None
            and self._config.support_acting_master
            and not topic.startswith(MEMBER_SYNC_PREFIX)
        ):
            for group in route.brokers:
                _appoint_acting_master(group, route.queues)
        return route

    def _order_conf(self, topic: str) -> str | None:
        if not self._config.order_message_enable:
            return None
        return self._kv_config.get(ORDER_TOPIC_NAMESPACE, topic)


def _appoint_acting_master(group: BrokerGroup, queues: list[QueueData]) -> None:
    """Without a master, show the lowest slave as one, if nothing can be written to it anyway."""
    if not group.acting_master or not group.addresses or MASTER_ID in group.addresses:
        return
    own = next(data for data in queues if data.broker_name == group.name)
    if not own.perm & PERM_WRITE:
        group.addresses[MASTER_ID] = group.addresses.pop(min(group.addresses))


def _filter_by_zone(route: TopicRoute, zone: str) -> TopicRoute:
    """Brokers of the zone, and those of others that have lost their master."""
    removed = [
        group
        for group in route.brokers
        if MASTER_ID in group.addresses and (group.zone or "").lower() != zone.lower()
    ]
    removed_names = {group.name for group in removed}
    removed_addresses = {address for group in removed for address in group.addresses.values()}
    return route._replace(
        brokers=[group for group in route.brokers if group.name not in removed_names],
        queues=[data for data in route.queues if data.broker_name not in removed_names],
        filter_servers={
            address: servers
            for address, servers in route.filter_servers.items()
            if address not in removed_addresses
        },
    )


def _to_json(route: TopicRoute, order_conf: str | None) -> dict[str, Any]:
    """Fields in the order of fastjson, nulls left out."""
    fields: dict[str, Any] = {
        "brokerDatas": [broker_group_json(group) for group in route.brokers],
        "filterServerTable": route.filter_servers,
    }
    if order_conf is not None:
        fields["orderTopicConf"] = order_conf
    fields["queueDatas"] = [_queue_data_json(data) for data in route.queues]
    if route.queue_mappings is not None:
        fields["topicQueueMappingByBroker"] = route.queue_mappings
    return fields


def broker_group_json(group: BrokerGroup) -> dict[str, Any]:
    """Java's BrokerData."""
    fields: dict[str, Any] = {
        "brokerAddrs": dict(sorted(group.addresses.items())),
        "brokerName": group.name,
        "cluster": group.cluster,
        "enableActingMaster": group.acting_master,
    }
    if group.zone is not None:
        fields["zoneName"] = group.zone
    return fields


def _queue_data_json(data: QueueData) -> dict[str, Any]:
    return {
        "brokerName": data.broker_name,
        "perm": data.perm,
        "readQueueNums": data.read_queue_nums,
        "topicSysFlag": data.topic_sys_flag,
        "writeQueueNums": data.write_queue_nums,
    }
