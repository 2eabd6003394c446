"""Calls to other servers: one connection for each address, opened when needed, replies by opaque.

All of it runs on the trio loop.  Registration uses it to reach name servers.  A connection that
breaks fails the calls that wait on it with RemotingError, is forgotten, and the next call opens a
new one; `on_close` hears of it.  Requests that the other side starts are ignored.
"""

from __future__ import annotations

import itertools
import logging
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import trio

from pyritemq.protocol.command import FLAG_ONEWAY
from pyritemq.protocol.errors import ProtocolError
from pyritemq.protocol.frames import FrameDecoder

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from pyritemq.protocol.command import Command

logger = logging.getLogger(__name__)

CONNECT_SECONDS = 3.0
"""Java's connectTimeoutMillis."""

READ_BYTES = 64 * 1024
OPAQUE_MASK = 0x7FFFFFFF


class RemotingError(Exception):
    """A call got no reply: no connection, a broken one, or none in time."""


@asynccontextmanager
async def open_remoting_client(
    *, on_close: Callable[[str], None] = lambda address: None
) -> AsyncIterator[RemotingClient]:
    """A client that lives as long as the block; leaving it closes the connections."""
    async with trio.open_nursery() as nursery:
        try:
            yield RemotingClient(nursery, on_close)
        finally:
            nursery.cancel_scope.cancel()


class RemotingClient:
    """Invokes requests at addresses, `host:port`."""

    def __init__(self, nursery: trio.Nursery, on_close: Callable[[str], None]) -> None:
        self._nursery = nursery
        self._on_close = on_close
        self._links: dict[str, _Link] = {}
        self._connecting: dict[str, trio.Lock] = {}
        self._opaques = itertools.count(1)

    async def invoke(self, address: str, command: Command, *, timeout_s: float) -> Command:
        """Send a request and wait for its reply.  Raises RemotingError."""
        command.opaque = next(self._opaques) & OPAQUE_MASK
        try:
            with trio.fail_after(timeout_s):
                link = await self._link(address)
                return await link.invoke(command)
        except trio.TooSlowError:
            raise RemotingError(f"no reply from {address} within {timeout_s:g} s") from None

    async def invoke_oneway(self, address: str, command: Command, *, timeout_s: float) -> None:
        """Send a request that asks for no reply.  Raises RemotingError."""
        command.opaque = next(self._opaques) & OPAQUE_MASK
        command.flag |= FLAG_ONEWAY
        try:
            with trio.fail_after(timeout_s):
                link = await self._link(address)
                await link.send(command)
        except trio.TooSlowError:
            raise RemotingError(f"nothing sent to {address} within {timeout_s:g} s") from None

    async def _link(self, address: str) -> _Link:
        async with self._connecting.setdefault(address, trio.Lock()):
            link = self._links.get(address)
            if link is None:
                link = _Link(address, await _connect(address))
                self._links[address] = link
                self._nursery.start_soon(self._read, link)
            return link

    async def _read(self, link: _Link) -> None:
        try:
            await link.read_replies()
        finally:
            self._links.pop(link.address, None)
            link.fail_waiting()
        self._on_close(link.address)


class _Link:
    """One open connection and the calls that wait on it."""

    def __init__(self, address: str, stream: trio.SocketStream) -> None:
        self.address = address
        self._stream = stream
        self._send_lock = trio.Lock()
        self._waiting: dict[int, _Waiter] = {}

    async def invoke(self, command: Command) -> Command:
        waiter = self._waiting[command.opaque] = _Waiter()
        try:
            await self.send(command)
            await waiter.done.wait()
        finally:
            self._waiting.pop(command.opaque, None)
        if waiter.reply is None:
            raise RemotingError(f"the connection to {self.address} broke")
        return waiter.reply

    async def send(self, command: Command) -> None:
        async with self._send_lock:
            frame = command.encode()
            try:
                await self._stream.send_all(frame)
            except trio.Cancelled:
                # A frame that went out in part would make nonsense of the next.
                await trio.aclose_forcefully(self._stream)
                raise
            except (trio.BrokenResourceError, trio.ClosedResourceError):
                await trio.aclose_forcefully(self._stream)
                raise RemotingError(f"the connection to {self.address} broke") from None

    async def read_replies(self) -> None:
        """Hand replies to their calls until the connection ends."""
        decoder = FrameDecoder()
        try:
            while data := await self._stream.receive_some(READ_BYTES):
                for command in decoder.feed(data):
                    self._take(command)
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            pass
        except ProtocolError as error:
            logger.warning("connection closed peer=%s reason=%s", self.address, error)
        finally:
            await trio.aclose_forcefully(self._stream)

    def fail_waiting(self) -> None:
        for waiter in self._waiting.values():
            waiter.done.set()

    def _take(self, command: Command) -> None:
        waiter = self._waiting.get(command.opaque) if command.is_response else None
        if waiter is not None:
            waiter.reply = command
            waiter.done.set()


class _Waiter:
    __slots__ = ("done", "reply")

    def __init__(self) -> None:
        self.done = trio.Event()
        self.reply: Command | None = None


async def _connect(address: str) -> trio.SocketStream:
    host, _, port = address.rpartition(":")
    try:
        with trio.fail_after(CONNECT_SECONDS):
            return await trio.open_tcp_stream(host.strip("[]"), int(port))
    except trio.TooSlowError:
        raise RemotingError(f"no connection to {address} within {CONNECT_SECONDS:g} s") from None
    except (OSError, ValueError) as error:
        raise RemotingError(f"no connection to {address}: {_reason(error)}") from None


def _reason(error: Exception) -> object:
    """What the system said; trio wraps that once for all addresses that a name has."""
    cause = error.__cause__
    if isinstance(cause, BaseExceptionGroup):
        cause = cause.exceptions[0]
    cause = cause or error
    return cause.strerror or cause if isinstance(cause, OSError) else cause
