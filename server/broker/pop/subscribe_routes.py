"""The queues of a topic on all brokers, told by name servers (Java: TopicRouteInfoManager).

`queues` is called on the admin lane and may ask a name server; what it hears is kept for as long as
`loadBalancePollNameServerInterval` says, and longer while no name server answers.
"""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING

import trio

from pyritemq.compat import fastjson
from pyritemq.protocol.codes import RequestCode, ResponseCode
from pyritemq.protocol.command import Command
from pyritemq.protocol.headers.route import GetRouteInfoHeader
from pyritemq.server.broker.pop.allocation import Queue
from pyritemq.server.broker.state.topics import PERM_READ
from pyritemq.server.remoting_client import RemotingClient, RemotingError, open_remoting_client

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyritemq.compat.broker_conf import BrokerConfig

logger = logging.getLogger(__name__)

TIMEOUT_SECONDS = 3.0
"""Java's GET_TOPIC_ROUTE_TIMEOUT."""

TOPICS_MAX = 10_000
"""Ours: routes that are kept; any client may ask for any topic."""

QUEUES_MAX = 100_000


class SubscribeRoutes:
    """Queues by topic."""

    def __init__(self, config: BrokerConfig, *, now_ms: Callable[[], int]) -> None:
        self._config = config
        self._now_ms = now_ms
        self._lock = threading.Lock()
        self._known: dict[str, tuple[int, list[Queue]]] = {}
        self._client: RemotingClient | None = None
        self._loop: trio.lowlevel.TrioToken | None = None

    async def run(self) -> None:
        """Be able to ask, until cancelled."""
        try:
            async with open_remoting_client() as self._client:
                self._loop = trio.lowlevel.current_trio_token()
                await trio.sleep_forever()
        finally:
            self._loop = self._client = None

    def queues(self, topic: str) -> list[Queue] | None:
        """Sorted; None if no name server knows the topic.  Not on the loop."""
        now_ms = self._now_ms()
        with self._lock:
            heard_ms, queues = self._known.get(topic, (0, []))
        if queues and now_ms - heard_ms < self._config.load_balance_poll_name_server_interval:
            return queues
        reply = self._ask(topic)
        if reply is None:
            return queues or None
        heard = _queues_of(topic, reply)
        with self._lock:
            self._known.pop(topic, None)
            if heard:
                while len(self._known) >= TOPICS_MAX:
                    del self._known[next(iter(self._known))]
                self._known[topic] = now_ms, heard
        return heard

    def _ask(self, topic: str) -> Command | None:
        loop = self._loop
        if loop is None:
            return None
        try:
            return trio.from_thread.run(self._invoke, topic, trio_token=loop)
        except (trio.RunFinishedError, trio.Cancelled):
            return None

    async def _invoke(self, topic: str) -> Command | None:
        """The first answer of a name server."""
        for address in self._config.namesrv_addresses:
            header = GetRouteInfoHeader(topic=topic)
            command = Command(RequestCode.GET_ROUTEINFO_BY_TOPIC, ext_fields=header.encode())
            try:
                if self._client is not None:
                    return await self._client.invoke(address, command, timeout_s=TIMEOUT_SECONDS)
            except RemotingError as error:
                logger.warning("no route heard namesrv=%s reason=%s", address, error)
        return None


def _queues_of(topic: str, reply: Command) -> list[Queue] | None:
    if reply.code != ResponseCode.SUCCESS:
        return None
    try:
        route = fastjson.loads(bytes(reply.body))
        queues = [
            Queue(topic, str(data["brokerName"]), queue_id)
            for data in route.get("queueDatas") or ()
            if int(data["perm"]) & PERM_READ
            for queue_id in range(min(int(data["readQueueNums"]), QUEUES_MAX))
        ]
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        logger.warning("route passed over topic=%s reason=%r", topic, error)
        return None
    return sorted(queues)
