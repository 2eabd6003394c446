"""One client connection: the loop's side (`Connection`) and what lane threads may hold (`Channel`).

All of `Connection` runs on the trio loop.  Frames go out through `Outgoing`; what the socket does
not take waits there and a writer task, started only then, finishes the job.  A peer that does not
read is not read from either once `BACKLOG_HIGH_BYTES` wait for it, and is closed when far too much
does, so a connection's memory is bounded by what it asked for.

`Channel` is safe to use from any thread.  `Channel.call` asks the peer and waits, on a lane thread:

    1. lane: notes the call under an opaque of its own, then looks whether the channel is closed.
    2. loop: `answered` takes the note when the response comes and wakes the lane.
    3. loop: `close` marks the channel closed, then takes all notes that are left and fails them.

A call that is noted after step 3 sees `closed` in step 1, so none waits for its whole timeout.
"""

from __future__ import annotations

import ipaddress
import itertools
import logging
import struct
from concurrent.futures import Future
from typing import TYPE_CHECKING

import trio

from pyritemq.protocol.errors import ProtocolError
from pyritemq.protocol.frames import FrameDecoder
from pyritemq.server.outgoing import Outgoing

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable

    from pyritemq.protocol.command import Command
    from pyritemq.server.lanes import Buffer

logger = logging.getLogger(__name__)

READ_BYTES = 128 * 1024
"""One read: several hundred small sends; more would only delay the first of them."""

BACKLOG_HIGH_BYTES = 4 * 1024 * 1024
"""Above this we stop reading requests of the peer: a few full pulls of 256 KiB for each queue."""

_opaques = itertools.count(1)
"""Of our own requests; `next` on a count is atomic.  A peer only has to send them back."""


class PeerGone(Exception):  # noqa: N818 - what happened to the peer
    """The connection closed before the peer answered."""


class Channel:
    """A connection as the rest of the server sees it; compared by identity."""

    __slots__ = (
        "_calls",
        "_connection",
        "_loop",
        "born_host",
        "closed",
        "local_address",
        "remote_address",
        "remote_ip",
    )

    def __init__(
        self,
        connection: Connection,
        loop: trio.lowlevel.TrioToken,
        *,
        remote: tuple[str, int],
        local: tuple[str, int],
    ) -> None:
        self._connection = connection
        self._loop = loop
        self._calls: dict[int, Future[Command]] = {}
        self.remote_ip = remote[0]
        self.remote_address = f"{remote[0]}:{remote[1]}"
        self.local_address = f"{local[0]}:{local[1]}"
        self.born_host = packed_host(*remote)
        self.closed = False

    def post(self, *commands: Command) -> None:
        """Send frames to the peer; from any thread, dropped if the connection is gone."""
        if not self.closed:
            self.write([command.encode() for command in commands])

    def call(self, command: Command, *, timeout_s: float) -> Command:
        """Ask the peer and wait for its response; from lane threads only, never on the loop.

        Raises PeerGone, or TimeoutError when no response comes in time.
        """
        try:
            return self.ask(command).result(timeout_s)
        finally:
            self.forget(command)

    def ask(self, command: Command) -> Future[Command]:
        """Ask the peer without waiting; from lane threads.  The future fails with PeerGone.

        Whoever stops waiting calls `forget`.
        """
        opaque = command.opaque = next(_opaques) & 0x7FFFFFFF
        answer: Future[Command] = Future()
        self._calls[opaque] = answer
        if self.closed:
            if self._calls.pop(opaque, None) is not None:
                answer.set_exception(PeerGone(self.remote_address))
        else:
            self.post(command)
        return answer

    def forget(self, command: Command) -> None:
        """No longer wait for the response to a command of `ask`."""
        self._calls.pop(command.opaque, None)

    def answered(self, response: Command) -> None:
        """Hand a response to the call that waits for it, if one does; on the loop."""
        answer = self._calls.pop(response.opaque, None)
        if answer is not None:
            answer.set_result(response)

    def fail_calls(self) -> None:
        """No response will come any more; on the loop, after `closed` was set."""
        for opaque in list(self._calls):
            answer = self._calls.pop(opaque, None)
            if answer is not None:
                answer.set_exception(PeerGone(self.remote_address))

    def close(self) -> None:
        """Close the connection soon; from any thread."""
        if not self.closed:
            self.in_loop(self._connection.close)

    def write(self, buffers: list[Buffer]) -> None:
        """Send buffers that together are whole frames; from any thread."""
        self._connection.outgoing.write(buffers)

    def in_loop(self, function: Callable[..., object], *args: object) -> None:
        """Call a function on the loop soon; from any thread."""
        try:
            self._loop.run_sync_soon(function, *args)
        except trio.RunFinishedError:
            self.closed = True


class Nobody(Channel):
    """Where requests of our own come from: a peer that is always gone."""

    __slots__ = ()

    def __init__(self) -> None:
        self._calls = {}
        self.remote_ip = "127.0.0.1"
        self.remote_address = self.local_address = "127.0.0.1:0"
        self.born_host = packed_host(self.remote_ip, 0)
        self.closed = True

    def write(self, buffers: list[Buffer]) -> None:
        """Nobody is told anything."""


class Connection:
    """Reads frames from a socket, on the loop."""

    def __init__(
        self,
        sock: socket.socket,
        *,
        nursery: trio.Nursery,
        loop: trio.lowlevel.TrioToken,
        frame_max: int,
        received: Callable[[Channel, list[Command]], None],
        now: Callable[[], float],
    ) -> None:
        self._sock = sock
        self._nursery = nursery
        self._received = received
        self._now = now
        self._decoder = FrameDecoder(frame_max)
        self._is_writing = False
        self._drained = trio.Event()
        self.last_active = now()
        self.outgoing = Outgoing(sock, wake=self._wake_writer)
        self.channel = Channel(
            self,
            loop,
            remote=sock.getpeername()[:2],
            local=sock.getsockname()[:2],
        )

    async def serve(self) -> None:
        """Read until the peer closes, breaks the protocol or is closed by us."""
        try:
            await self._read_frames()
        except ProtocolError as error:
            logger.warning(
                "connection closed peer=%s reason=%s", self.channel.remote_address, error
            )
        except (OSError, trio.ClosedResourceError):
            pass
        finally:
            self.close()

    async def _read_frames(self) -> None:
        sock = self._sock
        feed = self._decoder.feed
        received = self._received
        channel = self.channel
        while not channel.closed:
            await trio.lowlevel.wait_readable(sock)
            try:
                data = sock.recv(READ_BYTES)
            except BlockingIOError:
                continue
            if not data:
                return
            self.last_active = self._now()
            commands = feed(data)
            if commands:
                received(channel, commands)
            while self.outgoing.backlog_bytes > BACKLOG_HIGH_BYTES and not channel.closed:
                self._start_writing()
                await self._drained.wait()

    def close(self) -> None:
        """Close the socket and wake whoever waits on it; a second call does nothing."""
        if self.channel.closed:
            return
        self.channel.closed = True
        self.channel.fail_calls()
        trio.lowlevel.notify_closing(self._sock)
        self.outgoing.close()
        self._drained.set()

    def _wake_writer(self) -> None:
        """The socket did not take everything; from any thread."""
        self.channel.in_loop(self._start_writing)

    def _start_writing(self) -> None:
        if self.channel.closed:
            return
        if self.outgoing.is_broken:
            self.close()
        elif self.outgoing.is_overfull:
            logger.warning(
                "connection closed peer=%s reason=does_not_read bytes=%d",
                self.channel.remote_address,
                self.outgoing.backlog_bytes,
            )
            self.close()
        elif not self._is_writing:
            self._is_writing = True
            self._drained = trio.Event()
            self._nursery.start_soon(self._write_backlog)

    async def _write_backlog(self) -> None:
        try:
            while self.outgoing.send_more():
                await trio.lowlevel.wait_writable(self._sock)
        except (OSError, trio.ClosedResourceError):
            self.close()
        # No wait since the backlog was seen empty: whoever fills it from now on wakes us anew.
        self._is_writing = False
        self._drained.set()


def packed_host(ip: str, port: int) -> bytes:
    """An address as message records hold it: 4 or 16 bytes of IP, then the port as 4 bytes."""
    address = ipaddress.ip_address(ip.partition("%")[0])
    if address.version == 6 and address.ipv4_mapped is not None:
        address = address.ipv4_mapped
    return address.packed + struct.pack(">i", port)


NOBODY = Nobody()
