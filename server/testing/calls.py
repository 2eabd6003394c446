"""One request and its reply over a socket, blocking: what a test sets up before its client runs."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

from pyritemq.protocol.codes import RequestCode, ResponseCode
from pyritemq.protocol.command import Command
from pyritemq.protocol.frames import FrameDecoder

if TYPE_CHECKING:
    from collections.abc import Mapping

CALL_SECONDS = 10.0
READ_BYTES = 65536


class CallRefused(Exception):  # noqa: N818 - an answer, not a fault of ours
    """The server answered with another code than SUCCESS; the text has both code and remark."""


def call(
    address: str, code: RequestCode, fields: Mapping[str, object], body: bytes = b""
) -> Command:
    """Raises CallRefused, or OSError when the server cannot be reached or does not answer."""
    host, _, port = address.rpartition(":")
    texts = {name: _text(value) for name, value in fields.items()}
    request = Command(int(code), opaque=1, ext_fields=texts, body=body)
    with socket.create_connection((host, int(port)), timeout=CALL_SECONDS) as sock:
        sock.sendall(request.encode())
        reply = _read_reply(sock)
    if reply.code != ResponseCode.SUCCESS:
        raise CallRefused(f"{code.name}: code {reply.code}, {reply.remark}")
    return reply


def _read_reply(sock: socket.socket) -> Command:
    decoder = FrameDecoder()
    while data := sock.recv(READ_BYTES):
        for command in decoder.feed(data):
            if command.is_response:
                return command
    raise ConnectionError("the server closed the connection without an answer")


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
