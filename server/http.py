"""A very small HTTP server for the operations port: a few paths, short answers, one a connection.

Runs on the loop.  Knows nothing of what is answered: `answer` is given each request.  Bounds are
there because the port may be reached by anyone: a request's head is small and comes soon.
"""

from __future__ import annotations

import logging
from contextlib import suppress
from http import HTTPStatus
from typing import TYPE_CHECKING, NamedTuple

import trio

if TYPE_CHECKING:
    import socket
    from collections.abc import Awaitable, Callable, Mapping

    Answer = Callable[["HttpRequest"], Awaitable["HttpReply"]]

logger = logging.getLogger(__name__)

HEAD_MAX_BYTES = 8192
HEAD_SECONDS = 5
SEND_SECONDS = 30
CONNECTIONS_MAX = 64

TEXT = "text/plain; charset=utf-8"
JSON = "application/json"


class HttpRequest(NamedTuple):
    """The head of a request; `path` is without its query, header names are in small letters."""

    method: str
    path: str
    headers: Mapping[str, str]


class HttpReply(NamedTuple):
    status: HTTPStatus
    body: str
    content_type: str = TEXT
    headers: Mapping[str, str] = {}


async def serve_http(listener: socket.socket, answer: Answer) -> None:
    """Answer until cancelled."""
    limit = trio.CapacityLimiter(CONNECTIONS_MAX)

    async def serve(stream: trio.SocketStream) -> None:
        async with limit:
            with suppress(trio.BrokenResourceError, trio.ClosedResourceError):  # it has gone
                await _serve_one(stream, answer)
            await trio.aclose_forcefully(stream)

    await trio.serve_listeners(
        serve, [trio.SocketListener(trio.socket.from_stdlib_socket(listener))]
    )


async def _serve_one(stream: trio.SocketStream, answer: Answer) -> None:
    head = b""
    with trio.move_on_after(HEAD_SECONDS):
        head = await _read_head(stream)
    if not head:
        return
    request = parse_head(head)
    if request is None:
        reply = HttpReply(HTTPStatus.BAD_REQUEST, "this is not an HTTP request\n")
    else:
        reply = await _answer(request, answer)
    with trio.move_on_after(SEND_SECONDS):
        is_head = request is not None and request.method == "HEAD"
        await stream.send_all(encode_reply(reply, with_body=not is_head))


async def _answer(request: HttpRequest, answer: Answer) -> HttpReply:
    try:
        return await answer(request)
    except Exception:  # the port's edge: nothing may end the server
        logger.exception("operations request failed path=%s", request.path)
        return HttpReply(HTTPStatus.INTERNAL_SERVER_ERROR, "this failed; the log says why\n")


async def _read_head(stream: trio.SocketStream) -> bytes:
    """Up to the blank line; nothing if the client leaves before it, or says too much."""
    data = b""
    while len(data) < HEAD_MAX_BYTES:
        more = await stream.receive_some(HEAD_MAX_BYTES)
        if not more:
            return b""
        data += more
        if b"\r\n\r\n" in data:
            return data[: data.index(b"\r\n\r\n")]
    return b"?"


def parse_head(head: bytes) -> HttpRequest | None:
    """The request line and the headers; None if it is not HTTP/1."""
    lines = head.decode("latin-1").split("\r\n")
    words = lines[0].split(" ")
    if len(words) != 3 or not words[1].startswith("/") or not words[2].startswith("HTTP/1."):
        return None
    headers = {}
    for line in lines[1:]:
        name, colon, value = line.partition(":")
        if not colon:
            return None
        headers[name.strip().lower()] = value.strip()
    return HttpRequest(words[0], words[1].partition("?")[0], headers)


def encode_reply(reply: HttpReply, *, with_body: bool = True) -> bytes:
    body = reply.body.encode()
    lines = [
        f"HTTP/1.1 {reply.status.value} {reply.status.phrase}",
        f"Content-Type: {reply.content_type}",
        f"Content-Length: {len(body)}",
        "Cache-Control: no-store",
        "Connection: close",
        *(f"{name}: {value}" for name, value in reply.headers.items()),
    ]
    head = "\r\n".join(lines) + "\r\n\r\n"
    return head.encode("latin-1") + (body if with_body else b"")
