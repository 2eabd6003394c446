"""This broker in the tables of its name servers.

Each name server has a task of its own on the trio loop, so one that is dead or slow delays nobody:

    at start           REGISTER_BROKER with all topics
    every 30 seconds   the same again (with forceRegister=false only if QUERY_DATA_VERSION says so)
    a topic changes    REGISTER_BROKER with the changed topics alone, at once
    we change          REGISTER_BROKER with all topics, at once (permission or address: `renew`)
    on stop            UNREGISTER_BROKER

After any failure the next attempt sends all topics, a few seconds later.  That heals every loss: a
name server compares data versions, and one that missed a change has an older version than ours.

`topics_changed` and `settle` are called on lane threads and share `_lock` with the loop:

    1. lane: a topic is saved, `topics_changed` notes it for each name server under a new number
       and wakes the loop.
    2. lane: an admin request calls `settle` and waits until each name server has been tried with
       that number, so that whoever created a topic finds it in the next route that it asks for.
    3. loop: each name server's task takes what is noted for it, tries, and counts the number as
       tried whether it succeeded or not.
"""

from __future__ import annotations

import logging
import threading
from contextlib import suppress
from typing import TYPE_CHECKING

import trio

from pyritemq.server.broker.registration_calls import RegistrationCalls, RegistrationRefused
from pyritemq.server.remoting_client import RemotingError, open_remoting_client

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyritemq.compat.broker_conf import BrokerConfig
    from pyritemq.compat.register_body import TopicConfig
    from pyritemq.server.broker.state.queue_mappings import QueueMappingTable
    from pyritemq.server.broker.state.topics import TopicTable
    from pyritemq.server.remoting_client import RemotingClient

logger = logging.getLogger(__name__)

PERIOD_MS_MIN = 10_000
PERIOD_MS_MAX = 60_000
"""Java clamps registerNameServerPeriod to these: a name server forgets after 120 seconds."""

RETRY_SECONDS = 3.0
"""After a failure; Java waits for its next period.  A name server that comes back is used soon, and
one that is gone costs a refused connection now and then."""

FIRST_TRY_SECONDS = 3.0
"""How long the start of the broker waits for its name servers' first answers."""

SETTLE_SECONDS = 3.0
"""How long an admin request waits for the name servers; a slow one must not hold the lane."""

UNREGISTER_SECONDS = 3.0


class _NameServer:
    """What the broker knows of one name server; on the loop, but for `noted`, `renew`, `tried`."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.registered = False
        self.failing = False
        self.due = 0.0
        self.wake = trio.Event()
        self.first_try = trio.Event()
        self.noted: dict[str, None] = {}
        self.renew = False
        self.tried = 0
        self.told_address: str | None = None


class Registration:
    """Keeps every name server told."""

    def __init__(
        self,
        config: BrokerConfig,
        topics: TopicTable,
        mappings: QueueMappingTable,
        *,
        advertised_address: str,
    ) -> None:
        self._config = config
        self._calls = RegistrationCalls(
            config, topics, mappings, advertised_address=advertised_address
        )
        self._name_servers = [_NameServer(address) for address in config.namesrv_addresses]
        self._lock = threading.Lock()
        self._tried = threading.Condition(self._lock)
        self._number = 0
        self._loop: trio.lowlevel.TrioToken | None = None
        self._keepers = trio.CancelScope()
        self._ended = trio.Event()

    @property
    def master_address(self) -> str | None:
        """The master of this broker's group, as a name server last told; None if there is none."""
        return self._calls.master_address

    @property
    def ha_server_address(self) -> str | None:
        """Where that master replicates from."""
        return self._calls.ha_server_address

    @property
    def is_registered(self) -> bool:
        """Whether a name server knows this broker, or it has none to tell; on the loop."""
        servers = self._name_servers
        return not servers or any(server.registered for server in servers)

    def topics_changed(self, topics: Iterable[TopicConfig]) -> None:
        """Tell the name servers soon; from any thread."""
        with self._lock:
            self._number += 1
            for name_server in self._name_servers:
                name_server.noted.update(dict.fromkeys(topic.topic_name for topic in topics))
            loop = self._loop
        if loop is not None:
            with suppress(trio.RunFinishedError):
                loop.run_sync_soon(self._wake_all)

    def renew(self, *, advertised_address: str | None = None) -> None:
        """Register with all topics soon, perhaps under another address; from any thread."""
        with self._lock:
            self._number += 1
            if advertised_address is not None:
                self._calls.advertised_address = advertised_address
            for name_server in self._name_servers:
                name_server.renew = True
            loop = self._loop
        if loop is not None:
            with suppress(trio.RunFinishedError):
                loop.run_sync_soon(self._wake_all)

    def settle(self, *, timeout_s: float = SETTLE_SECONDS) -> bool:
        """Wait until each name server has been tried with all changes so far; not on the loop.

        Whether that happened in time.
        """
        with self._lock:
            if self._loop is None:
                return False
            number = self._number
            return self._tried.wait_for(lambda: self._all_tried(number), timeout_s)

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Register and stay registered until `stop`; started once each name server was tried."""
        try:
            async with open_remoting_client(on_close=self._link_lost) as client:
                with self._lock:
                    self._loop = trio.lowlevel.current_trio_token()
                await self._keep_all(client, task_status)
                await self._unregister_all(client)
        finally:
            with self._lock:
                self._loop = None
                self._tried.notify_all()
            self._ended.set()

    async def stop(self) -> None:
        """Leave the name servers' tables, then end `run`; bounded by UNREGISTER_SECONDS."""
        self._keepers.cancel()
        await self._ended.wait()

    async def _keep_all(self, client: RemotingClient, task_status: trio.TaskStatus[None]) -> None:
        with self._keepers:
            async with trio.open_nursery() as nursery:
                for name_server in self._name_servers:
                    nursery.start_soon(self._keep_registered, client, name_server)
                    if self._config.enable_slave_acting_master:
                        nursery.start_soon(self._beat, client, name_server)
                with trio.move_on_after(FIRST_TRY_SECONDS):
                    for name_server in self._name_servers:
                        await name_server.first_try.wait()
                task_status.started()
                await trio.sleep_forever()

    async def _keep_registered(self, client: RemotingClient, name_server: _NameServer) -> None:
        while True:
            await self._try(client, name_server)
            name_server.first_try.set()
            await self._wait(name_server)

    async def _wait(self, name_server: _NameServer) -> None:
        """Until it is time for all topics, or there are some to tell a name server that listens."""
        while trio.current_time() < name_server.due:
            name_server.wake = trio.Event()
            number, noted = self._peek_noted(name_server)
            if noted and name_server.registered:
                return
            # One that is down will be told everything when it is back: nobody waits for that.
            self._count_tried(name_server, number)
            with trio.move_on_at(name_server.due):
                await name_server.wake.wait()

    async def _try(self, client: RemotingClient, name_server: _NameServer) -> None:
        """One attempt: all topics if it is time or something failed, else the noted ones."""
        number, noted, renew = self._take_noted(name_server)
        try:
            await self._tell(client, name_server, noted, renew=renew)
            await self._leave_old_address(client, name_server)
        except (RemotingError, RegistrationRefused) as error:
            # Once for each time that it fails, not for each attempt while it is down.
            level = logging.DEBUG if name_server.failing else logging.WARNING
            logger.log(
                level, "registration failed namesrv=%s reason=%s", name_server.address, error
            )
            name_server.failing = True
            self._try_later(name_server)
        except Exception:  # our own fault in one attempt must not end the broker
            logger.exception("registration failed namesrv=%s", name_server.address)
            self._try_later(name_server)
        finally:
            self._count_tried(name_server, number)

    async def _tell(
        self, client: RemotingClient, name_server: _NameServer, noted: list[str], *, renew: bool
    ) -> None:
        address = name_server.address
        now = trio.current_time()
        if name_server.registered and now < name_server.due and not renew:
            if noted:
                await self._calls.register_some(client, address, noted)
            return
        if (
            not name_server.registered
            or noted
            or renew
            or self._config.force_register
            or await self._calls.needs_register(client, address)
        ):
            await self._calls.register_all(client, address)
        if not name_server.registered:
            logger.info("registered namesrv=%s", address)
        name_server.registered = True
        name_server.failing = False
        name_server.due = now + self._period_s

    async def _leave_old_address(self, client: RemotingClient, name_server: _NameServer) -> None:
        """After an address change: else the old one is found dead in its time and the connection,
        which serves the new one too, is closed with it."""
        old, name_server.told_address = name_server.told_address, self._calls.advertised_address
        if old is not None and old != name_server.told_address:
            await self._unregister(client, name_server.address, old)

    async def _beat(self, client: RemotingClient, name_server: _NameServer) -> None:
        """With enableSlaveActingMaster name servers expect a sign of life every second."""
        while True:
            await trio.sleep(self._config.broker_heartbeat_interval / 1000)
            if name_server.registered:
                try:
                    await self._calls.heartbeat(client, name_server.address)
                except RemotingError as error:
                    logger.debug("heartbeat failed reason=%s", error)

    async def _unregister_all(self, client: RemotingClient) -> None:
        with trio.move_on_after(UNREGISTER_SECONDS):
            async with trio.open_nursery() as nursery:
                for name_server in self._name_servers:
                    if name_server.registered:
                        nursery.start_soon(
                            self._unregister,
                            client,
                            name_server.address,
                            self._calls.advertised_address,
                        )

    async def _unregister(self, client: RemotingClient, address: str, advertised: str) -> None:
        try:
            await self._calls.unregister(
                client, address, advertised=advertised, timeout_s=UNREGISTER_SECONDS
            )
            logger.info("unregistered namesrv=%s", address)
        except (RemotingError, RegistrationRefused) as error:
            logger.warning("unregistration failed namesrv=%s reason=%s", address, error)

    @property
    def _period_s(self) -> float:
        period_ms = self._config.register_name_server_period
        return max(PERIOD_MS_MIN, min(period_ms, PERIOD_MS_MAX)) / 1000

    def _link_lost(self, address: str) -> None:
        """A name server that loses the connection drops the broker's routes: register anew, but
        not at once, lest the two play ping-pong."""
        for name_server in self._name_servers:
            if name_server.address == address and name_server.registered:
                self._try_later(name_server)
                name_server.wake.set()

    def _try_later(self, name_server: _NameServer) -> None:
        name_server.registered = False
        name_server.due = trio.current_time() + RETRY_SECONDS

    def _wake_all(self) -> None:
        for name_server in self._name_servers:
            name_server.wake.set()

    def _peek_noted(self, name_server: _NameServer) -> tuple[int, bool]:
        with self._lock:
            return self._number, bool(name_server.noted) or name_server.renew

    def _take_noted(self, name_server: _NameServer) -> tuple[int, list[str], bool]:
        with self._lock:
            noted, renew = list(name_server.noted), name_server.renew
            name_server.noted.clear()
            name_server.renew = False
            return self._number, noted, renew

    def _count_tried(self, name_server: _NameServer, number: int) -> None:
        with self._lock:
            name_server.tried = max(name_server.tried, number)
            self._tried.notify_all()

    def _all_tried(self, number: int) -> bool:
        running = self._loop is not None
        return not running or all(server.tried >= number for server in self._name_servers)
