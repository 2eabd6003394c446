"""Listening sockets: accepts connections and closes those that stay silent.  Runs on the loop."""

from __future__ import annotations

import errno
import logging
import socket
from typing import TYPE_CHECKING

import trio

from pyritemq.server.connection import Connection
from pyritemq.server.loop import current_loop

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyritemq.protocol.command import Command
    from pyritemq.server.connection import Channel

logger = logging.getLogger(__name__)

IDLE_SCAN_SECONDS = 10

OUT_OF_FILES = {errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM}


class AddressInUse(Exception):  # noqa: N818 - shown to the user as a sentence
    """The address cannot be listened on; the text says which and why."""


def bind(host: str, port: int, *, backlog: int = 1024) -> socket.socket:
    """A listening socket, or `AddressInUse` with one sentence for the user."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind((host, port))
        sock.listen(backlog)
    except OSError as error:
        sock.close()
        raise AddressInUse(f"cannot listen on {host}:{port}: {error.strerror}") from error
    except OverflowError as error:
        sock.close()
        raise AddressInUse(f"cannot listen on {host}:{port}: not a port number") from error
    sock.setblocking(False)
    return sock


class Listener:
    """Accepts on any number of sockets and keeps the connections until they close."""

    def __init__(
        self,
        sockets: list[socket.socket],
        *,
        frame_max: int,
        idle_seconds: float,
        received: Callable[[Channel, list[Command]], None],
        closed: Callable[[Channel], None],
    ) -> None:
        self._sockets = sockets
        self._frame_max = frame_max
        self._idle_seconds = idle_seconds
        self._received = received
        self._closed = closed
        self.connections: set[Connection] = set()

    async def run(self) -> None:
        """Serve until cancelled; then the listening sockets and all connections are closed."""
        try:
            async with trio.open_nursery() as nursery:
                for sock in self._sockets:
                    nursery.start_soon(self._accept, sock)
                nursery.start_soon(self._close_idle)
        finally:
            for sock in self._sockets:
                sock.close()
            for connection in list(self.connections):
                connection.close()

    def stop_accepting(self) -> None:
        """Close the listening sockets; connections live on."""
        for sock in self._sockets:
            trio.lowlevel.notify_closing(sock)
            sock.close()

    @property
    def connection_count(self) -> int:
        return len(self.connections)

    async def _accept(self, sock: socket.socket) -> None:
        while True:
            try:
                await trio.lowlevel.wait_readable(sock)
                client, _ = sock.accept()
            except BlockingIOError:
                continue
            except trio.ClosedResourceError:
                return
            except OSError as error:
                if error.errno not in OUT_OF_FILES:
                    continue
                logger.warning("accept failed reason=%s", error.strerror)
                await trio.sleep(0.1)
                continue
            self._welcome(client)

    def _welcome(self, client: socket.socket) -> None:
        client.setblocking(False)
        try:
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            connection = Connection(
                client,
                loop=current_loop(),
                frame_max=self._frame_max,
                received=self._received,
                closed=self._gone,
                now=trio.current_time,
            )
            connection.open()
        except OSError:  # the peer was gone before we looked
            client.close()
            return
        self.connections.add(connection)

    def _gone(self, connection: Connection) -> None:
        self.connections.discard(connection)
        self._closed(connection.channel)

    async def _close_idle(self) -> None:
        """Close what has neither been read nor written for too long."""
        while True:
            await trio.sleep(IDLE_SCAN_SECONDS)
            oldest = trio.current_time() - self._idle_seconds
            for connection in list(self.connections):
                if connection.last_active < oldest:
                    logger.info(
                        "connection closed peer=%s reason=idle", connection.channel.remote_address
                    )
                    connection.close()
