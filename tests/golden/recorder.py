"""A TCP proxy that keeps one example of every kind of frame that passes.

It reads frames with its own few lines, not with pyritemq.protocol, so that the vectors stay an
oracle for that package. One thread per direction of a connection; bytes are forwarded untouched.
"""

from __future__ import annotations

import contextlib
import json
import socket
import struct
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

REPLY_BIT = 1
SERIALISATIONS = ("json", "rocketmq")
CHUNK = 64 * 1024


@dataclass(frozen=True)
class Peek:
    """What of a frame decides its kind."""

    serialisation: str
    code: int
    opaque: int
    flag: int
    has_remark: bool
    ext_names: frozenset[str]
    has_body: bool

    @property
    def is_reply(self) -> bool:
        return bool(self.flag & REPLY_BIT)


def peek(frame: bytes) -> Peek:
    """Read the header of a whole frame, its 4-byte length included."""
    word = struct.unpack_from(">I", frame, 4)[0]
    kind, header_length = word >> 24, word & 0xFFFFFF
    header = frame[8 : 8 + header_length]
    has_body = len(frame) > 8 + header_length
    return (_peek_json, _peek_binary)[kind](header, has_body)


def _peek_json(header: bytes, has_body: bool) -> Peek:
    fields = json.loads(header)
    return Peek(
        serialisation="json",
        code=fields["code"],
        opaque=fields["opaque"],
        flag=fields["flag"],
        has_remark=fields.get("remark") is not None,
        ext_names=frozenset(fields.get("extFields") or ()),
        has_body=has_body,
    )


def _peek_binary(header: bytes, has_body: bool) -> Peek:
    code, _language, _version, opaque, flag, remark_length = struct.unpack_from(">hbhiii", header)
    at = 17 + remark_length
    ext_length = struct.unpack_from(">i", header, at)[0]
    at, end, names = at + 4, at + 4 + ext_length, set()
    while at < end:
        name_length = struct.unpack_from(">h", header, at)[0]
        names.add(header[at + 2 : at + 2 + name_length].decode())
        at += 2 + name_length
        at += 4 + struct.unpack_from(">i", header, at)[0]
    return Peek("rocketmq", code, opaque, flag, remark_length > 0, frozenset(names), has_body)


@dataclass(frozen=True)
class Vector:
    source: str
    direction: str
    request_code: int
    code: int
    serialisation: str
    frame: bytes


class Recorder:
    """Keeps the smallest frame of each kind; shared by all proxies and their threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._vectors: dict[tuple[object, ...], Vector] = {}

    def vectors(self) -> list[Vector]:
        with self._lock:
            return list(self._vectors.values())

    def record(self, source: str, seen: Peek, request_code: int, frame: bytes) -> None:
        direction = "reply" if seen.is_reply else "request"
        vector = Vector(source, direction, request_code, seen.code, seen.serialisation, frame)
        oneway = seen.flag & 2
        key = (source, direction, request_code, seen.code, seen.serialisation, oneway)
        key += (seen.has_remark, seen.ext_names, seen.has_body)
        with self._lock:
            kept = self._vectors.get(key)
            if kept is None or len(frame) < len(kept.frame):
                self._vectors[key] = vector


class Conversation:
    """One proxied connection: knows which request each reply answers, in both directions."""

    def __init__(self, recorder: Recorder, dialler: str, listener: str) -> None:
        self._recorder = recorder
        self._sources = {"up": dialler, "down": listener}
        self._open_requests: dict[tuple[str, int], int] = {}

    def frame(self, direction: str, frame: bytes) -> None:
        seen = peek(frame)
        asker = {"up": "down", "down": "up"}[direction] if seen.is_reply else direction
        if not seen.is_reply:
            self._open_requests[asker, seen.opaque] = seen.code
        request_code = self._open_requests.get((asker, seen.opaque), -1)
        self._recorder.record(self._sources[direction], seen, request_code, frame)


class Proxy:
    """Listens on one address, dials another for each connection, and records what passes."""

    def __init__(
        self,
        recorder: Recorder,
        *,
        listen: tuple[str, int],
        target: tuple[str, int],
        dialler: Callable[[], str],
        listener: str,
    ) -> None:
        self._recorder, self._target = recorder, target
        self._dialler, self._listener = dialler, listener
        self._server = socket.create_server(listen)
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        self._server.close()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._server.accept()
            except OSError:
                return
            try:
                far = socket.create_connection(self._target, timeout=10)
            except OSError:
                near.close()
                continue
            far.settimeout(None)
            talk = Conversation(self._recorder, self._dialler(), self._listener)
            for ends in ((near, far, "up"), (far, near, "down")):
                threading.Thread(target=_pump, args=(*ends, talk), daemon=True).start()


def _pump(source: socket.socket, sink: socket.socket, direction: str, talk: Conversation) -> None:
    pending = b""
    try:
        while data := source.recv(CHUNK):
            pending += data
            while len(pending) >= 4:
                end = 4 + struct.unpack_from(">I", pending)[0]
                if len(pending) < end:
                    break
                talk.frame(direction, pending[:end])
                pending = pending[end:]
            sink.sendall(data)  # after recording, or a quick reply would come before its request
    except OSError:
        pass
    finally:
        for one in (source, sink):
            _end(one)


def _end(one: socket.socket) -> None:
    """Close for both directions, so that the thread blocked on the other end wakes."""
    with contextlib.suppress(OSError):
        one.shutdown(socket.SHUT_RDWR)
    one.close()
