"""Telling the brokers of a group that the lowest of their ids has changed.

Only done with notifyMinBrokerIdChanged=true, as slaves that act for a lost master want to know at
once. Lane threads hand notices in with `tell`; `run` sends them from the trio loop, one-way and on
a connection of their own, because a broker takes requests on its listening port only. A broker that
cannot be reached is passed over: it also asks for its group every second.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import trio

from pyritemq.protocol.codes import RequestCode
from pyritemq.protocol.command import FLAG_ONEWAY, Command
from pyritemq.protocol.headers.registration import NotifyMinBrokerIdChangeHeader

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyritemq.server.namesrv.route_data import MinBrokerIdChange

logger = logging.getLogger(__name__)

SEND_TIMEOUT_S = 0.3  # Java's timeout for the one-way call
NOTICES_MAX = 1000  # as many groups as may change at once; more are dropped and logged


class MinBrokerIdNotifier:
    """See the module's words."""

    def __init__(self) -> None:
        self._inbox, self._outbox = trio.open_memory_channel[tuple[str, bytes]](NOTICES_MAX)
        self._loop: trio.lowlevel.TrioToken | None = None

    def tell(self, changes: Iterable[MinBrokerIdChange]) -> None:
        """Queue the notices of some changes; from any thread, dropped unless `run` runs."""
        for change in changes:
            frame = _command(change).encode()
            for address in change.notify:
                if self._loop is not None:
                    self._loop.run_sync_soon(self._queue, address, frame)

    def _queue(self, address: str, frame: bytes) -> None:
        try:
            self._inbox.send_nowait((address, frame))
        except trio.WouldBlock:
            logger.warning("min broker id notice dropped broker=%s reason=too_many", address)

    async def run(self) -> None:
        self._loop = trio.lowlevel.current_trio_token()
        try:
            async for address, frame in self._outbox:
                await _send(address, frame)
        finally:
            self._loop = None


def _command(change: MinBrokerIdChange) -> Command:
    header = NotifyMinBrokerIdChangeHeader(
        min_broker_id=change.min_broker_id,
        min_broker_addr=change.min_broker_addr,
        offline_broker_addr=change.offline_broker_addr,
        ha_broker_addr=change.ha_broker_addr,
    )
    return Command(
        RequestCode.NOTIFY_MIN_BROKER_ID_CHANGE, flag=FLAG_ONEWAY, ext_fields=header.encode()
    )


async def _send(address: str, frame: bytes) -> None:
    host, _, port = address.rpartition(":")
    try:
        with trio.fail_after(SEND_TIMEOUT_S):
            stream = await trio.open_tcp_stream(host.strip("[]"), int(port))
            async with stream:
                await stream.send_all(frame)
    except (OSError, ValueError, trio.TooSlowError, trio.BrokenResourceError) as error:
        logger.warning("min broker id notice failed broker=%s reason=%s", address, error)
