"""A proxy that understands frames: what clients and a server say passes through a judge's hands.

The judge may keep a copy (the recorder) or change things (mutations, which show that cases can
fail). Threads of this process; one pair for each connection; everything ends with close().
"""

from __future__ import annotations

import contextlib
import socket
import threading
from typing import TYPE_CHECKING, Protocol

from pyritemq.protocol.errors import ProtocolError
from pyritemq.protocol.frames import FrameDecoder

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyritemq.protocol.command import Command

READ_BYTES = 256 * 1024
BACKLOG = 64
PENDING_MAX = 100_000
"""Requests of one connection whose reply has not come; one-way requests never get one."""


class Judge(Protocol):
    """Sees every frame, on the threads of many connections. None drops a frame."""

    def request(self, command: Command) -> Command | None:
        """From the client; may also answer itself, by giving back a response."""

    def reply(self, request: Command, reply: Command) -> Command | None: ...

    def push(self, command: Command) -> Command | None:
        """A request of the server to the client."""


class Proxy:
    """Listens on one port and passes on to one address."""

    def __init__(self, port: int, target: tuple[str, int], judge: Judge) -> None:
        self._target = target
        self._judge = judge
        self._lock = threading.Lock()
        self._open: set[socket.socket] = set()
        self._closed = False
        self._listener = socket.create_server(("", port), backlog=BACKLOG)
        threading.Thread(target=self._accept, name=f"proxy {port}", daemon=True).start()

    def close(self) -> None:
        with self._lock:
            self._closed = True
            sockets = list(self._open)
        for each in (self._listener, *sockets):
            _shut(each)

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            try:
                server = socket.create_connection(self._target, timeout=10)
            except OSError:
                client.close()  # the server is down: so are we
                continue
            server.settimeout(None)
            with self._lock:
                self._open |= {client, server}
                closed = self._closed
            if closed:
                _shut(client)
                _shut(server)
                return
            _Link(client, server, self._judge, self._forget).start()

    def _forget(self, *sockets: socket.socket) -> None:
        with self._lock:
            self._open.difference_update(sockets)


class _Link:
    """One client's connection and ours to the server."""

    def __init__(
        self,
        client: socket.socket,
        server: socket.socket,
        judge: Judge,
        forget: Callable[..., None],
    ) -> None:
        self._client, self._server = client, server
        self._judge, self._forget = judge, forget
        self._asked: dict[int, Command] = {}
        self._to_client = threading.Lock()

    def start(self) -> None:
        for source, handle in (
            (self._client, self._from_client),
            (self._server, self._from_server),
        ):
            threading.Thread(target=self._pump, args=(source, handle), daemon=True).start()

    def _pump(self, source: socket.socket, handle: Callable[[Command], None]) -> None:
        decoder = FrameDecoder()
        with contextlib.suppress(OSError, ProtocolError):
            while data := source.recv(READ_BYTES):
                for command in decoder.feed(data):
                    handle(command)
        self._forget(self._client, self._server)
        _shut(self._client)
        _shut(self._server)

    def _from_client(self, command: Command) -> None:
        if command.is_response:
            self._server.sendall(command.encode())
            return
        changed = self._judge.request(command)
        if changed is None:
            return
        if changed.is_response:
            self._send_client(changed)
            return
        if len(self._asked) < PENDING_MAX:
            self._asked[command.opaque] = command
        self._server.sendall(changed.encode())

    def _from_server(self, command: Command) -> None:
        if command.is_response:
            request = self._asked.pop(command.opaque, None)
            changed = self._judge.reply(request, command) if request is not None else command
        else:
            changed = self._judge.push(command)
        if changed is not None:
            self._send_client(changed)

    def _send_client(self, command: Command) -> None:
        data = command.encode()
        with self._to_client:
            self._client.sendall(data)


def _shut(each: socket.socket) -> None:
    with contextlib.suppress(OSError):
        each.shutdown(socket.SHUT_RDWR)
    each.close()
