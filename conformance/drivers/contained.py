"""Drivers in containers: the same lines, through the engine's attached streams."""

from __future__ import annotations

import contextlib
import struct
import threading
from typing import TYPE_CHECKING, Any

from docker.errors import APIError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from testcontainers.core.container import DockerContainer

TAIL_LINES = 40
STDOUT = 1
_HEADER = struct.Struct(">BxxxI")
"""What the engine puts before each piece of a stream: which one it is, and the piece's length."""


class ContainerChannel:
    """Attached stdin and stdout of one container, which is removed when the channel closes."""

    def __init__(self, container: DockerContainer) -> None:
        self._container = container.with_kwargs(**_open_stdin(container))
        self._container.start()
        self._wrapped = container.get_wrapped_container()
        # logs=1 brings what the driver said before we listened: its hello.
        wanted = {"stdin": 1, "stdout": 1, "stderr": 0, "stream": 1, "logs": 1}
        self._stream = self._wrapped.attach_socket(params=wanted)
        self._socket = getattr(self._stream, "_sock", self._stream)
        self._socket.settimeout(None)
        self._gone = threading.Event()
        self._log = ""

    def write(self, line: str) -> None:
        self._socket.sendall(line.encode() + b"\n")

    def lines(self) -> Iterator[str]:
        rest = b""
        for piece in self._pieces():
            *whole, rest = (rest + piece).split(b"\n")
            for line in whole:
                yield line.decode("utf-8", "replace")

    def _pieces(self) -> Iterator[bytes]:
        while True:
            header = self._read(_HEADER.size)
            if header is None:
                return
            stream, size = _HEADER.unpack(header)
            data = self._read(size)
            if data is None:
                return
            if stream == STDOUT:
                yield data

    def _read(self, size: int) -> bytes | None:
        """Exactly so many bytes; None when the container's streams have ended."""
        parts: list[bytes] = []
        while size:
            try:
                part = self._socket.recv(min(size, 65536))
            except OSError:
                return None
            if not part:
                return None
            parts.append(part)
            size -= len(part)
        return b"".join(parts)

    def close(self) -> None:
        if self._gone.is_set():
            return
        self._log = self.log_tail()
        self._gone.set()
        with contextlib.suppress(OSError):
            self._stream.close()
        with contextlib.suppress(APIError):
            self._container.stop()

    def kill(self) -> None:
        with contextlib.suppress(APIError):
            self._wrapped.kill()

    def log_tail(self) -> str:
        if self._gone.is_set():
            return self._log
        try:
            text = self._wrapped.logs(stdout=False, tail=TAIL_LINES)
        except APIError:
            return self._log
        return bytes(text).decode("utf-8", "replace")


def _open_stdin(container: DockerContainer) -> dict[str, Any]:
    """with_kwargs replaces what was given before: keep that."""
    return {**getattr(container, "_kwargs", {}), "stdin_open": True}
