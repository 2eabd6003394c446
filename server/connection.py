"""One client connection: the loop's side (`Connection`) and what lane threads may hold (`Channel`).

All of `Connection` runs on the trio loop, as callbacks of `Loop`: a connection has no task.  Frames
go out through `Outgoing`; what the socket does not take waits there until the socket can be written
again.  A peer that does not read is not read from either once `BACKLOG_HIGH_BYTES` wait for it, and
is closed when far too much does, so a connection's memory is bounded by what it asked for.

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

from pyritemq.protocol.errors import ProtocolError
from pyritemq.protocol.frames import FrameDecoder
from pyritemq.server.loop import BROKEN, READABLE, WRITABLE
from pyritemq.server.outgoing import Outgoing

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable

    from pyritemq.protocol.command import Command
    from pyritemq.server.lanes import Buffer
    from pyritemq.server.loop import Loop

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
        loop: Loop,
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
        if not self._loop.call_soon(function, *args):
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
        loop: Loop,
        frame_max: int,
        received: Callable[[Channel, list[Command]], None],
        closed: Callable[[Connection], None],
        now: Callable[[], float],
    ) -> None:
        self._sock = sock
        self._loop = loop
        self._received = received
        self._closed = closed
        self._now = now
        self._decoder = FrameDecoder(frame_max)
        self._is_reading = True
        self._is_writing = False
        self.last_active = now()
        self.outgoing = Outgoing(sock, wake=self._wake_writer)
        self.channel = Channel(
            self,
            loop,
            remote=sock.getpeername()[:2],
            local=sock.getsockname()[:2],
        )

    def open(self) -> None:
        """Begin to read."""
        self._loop.watch(self._sock, self._ready)

    def close(self) -> None:
        """Close the socket and tell whoever waits for the peer; a second call does nothing."""
        if self.channel.closed:
            return
        self.channel.closed = True
        self._is_reading = False
        self.channel.fail_calls()
        self._loop.forget(self._sock)
        self.outgoing.close()
        self._closed(self)

    def _ready(self, events: int) -> None:
        try:
            if events & WRITABLE:
                self._write_backlog()
            if self._is_reading:
                self._read()
            elif events & BROKEN:
                self.close()
        except OSError:
            self.close()
        except ProtocolError as error:
            logger.warning(
                "connection closed peer=%s reason=%s", self.channel.remote_address, error
            )
            self.close()
        except Exception:
            logger.exception("connection closed peer=%s", self.channel.remote_address)
            self.close()

    def _read(self) -> None:
        try:
            data = self._sock.recv(READ_BYTES)
        except BlockingIOError:
            return
        if not data:
            self.close()
            return
        self.last_active = self._now()
        commands = self._decoder.feed(data)
        if commands:
            self._received(self.channel, commands)
        if self.outgoing.backlog_bytes > BACKLOG_HIGH_BYTES:
            self._start_writing()

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
        else:
            self._watch(writing=True)

    def _write_backlog(self) -> None:
        # Nothing comes between a backlog that is seen empty and the change of what is watched:
        # whoever fills it from now on wakes us anew.
        self._watch(writing=self.outgoing.send_more())

    def _watch(self, *, writing: bool) -> None:
        """Watch for what matters now; nothing is read while far too much waits to be written."""
        reading = not writing or self.outgoing.backlog_bytes <= BACKLOG_HIGH_BYTES
        if (reading, writing) != (self._is_reading, self._is_writing):
            self._is_reading, self._is_writing = reading, writing
            self._loop.change(self._sock, READABLE * reading | WRITABLE * writing)


def packed_host(ip: str, port: int) -> bytes:
    """An address as message records hold it: 4 or 16 bytes of IP, then the port as 4 bytes."""
    address = ipaddress.ip_address(ip.partition("%")[0])
    if address.version == 6 and address.ipv4_mapped is not None:
        address = address.ipv4_mapped
    return address.packed + struct.pack(">i", port)


NOBODY = Nobody()
