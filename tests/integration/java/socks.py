"""A way round addresses that are written into examples: a SOCKS5 proxy for official clients.

Some examples say 127.0.0.1:9876 in their code. The 5.x client can be told, by a system property, to
reach such addresses through a proxy; this one takes a connection to that address to the name server
under test and leaves any other where it was going. It runs in threads of this process, knows only
what Netty's handler asks for, and ends with its context.
"""

from __future__ import annotations

import json
import socket
import socketserver
import struct
import threading
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

WRITTEN_IN = ("127.0.0.1", 9876)
NO_AUTHENTICATION = b"\x05\x00"
GRANTED = b"\x05\x00\x00\x01" + bytes(6)
IPV4, DOMAIN = 1, 3
COPY_BYTES = 64 * 1024

BUFFER_SIZES = (
    "-Dcom.rocketmq.remoting.socket.sndbuf.size=65536",
    "-Dcom.rocketmq.remoting.socket.rcvbuf.size=65536",
)
"""With a proxy set, 5.5.0 passes its default sizes of 0 on to the socket, which refuses them."""


class _Proxy(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True
    block_on_close = False
    namesrv: tuple[str, int]


class _Tunnel(socketserver.BaseRequestHandler):
    def handle(self) -> None:
        client: socket.socket = self.request
        assert isinstance(self.server, _Proxy)
        with suppress(OSError, EOFError):
            wanted = _wanted_address(client)
            target = self.server.namesrv if wanted == WRITTEN_IN else wanted
            with socket.create_connection(target) as server:
                client.sendall(GRANTED)
                threading.Thread(target=_copy, args=(server, client), daemon=True).start()
                _copy(client, server)


def _wanted_address(client: socket.socket) -> tuple[str, int]:
    _, methods = _read(client, 2)
    _read(client, methods)
    client.sendall(NO_AUTHENTICATION)
    _, _, _, kind = _read(client, 4)
    if kind == IPV4:
        host = socket.inet_ntoa(_read(client, 4))
    else:
        assert kind == DOMAIN
        host = _read(client, _read(client, 1)[0]).decode()
    (port,) = struct.unpack(">H", _read(client, 2))
    return host, port


def _read(client: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        more = client.recv(size - len(data))
        if not more:
            raise EOFError
        data += more
    return data


def _copy(source: socket.socket, sink: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(COPY_BYTES):
            sink.sendall(data)
    with suppress(OSError):
        sink.shutdown(socket.SHUT_RDWR)


@contextmanager
def flags_to_reach(namesrv: str, *, host: str) -> Iterator[list[str]]:
    """JVM flags with which a client finds `namesrv` at 127.0.0.1:9876; it reaches us at `host`."""
    name, _, port = namesrv.rpartition(":")
    with _Proxy((host, 0), _Tunnel) as proxy:
        proxy.namesrv = (name, int(port))
        threading.Thread(target=proxy.serve_forever, daemon=True).start()
        settings = {"127.0.0.1/32": {"addr": f"{host}:{proxy.server_address[1]}"}}
        try:
            yield [f"-Dcom.rocketmq.socks.proxy.config={json.dumps(settings)}", *BUFFER_SIZES]
        finally:
            proxy.shutdown()
