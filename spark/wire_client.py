"""A blocking client of RocketMQ's wire protocol: enough to read, to send and to ask for routes.

Used by one thread: the driver's, or a task's. Requests may be sent ahead of their replies. Every
wait has a deadline, and whatever goes wrong is a BrokerError that names the address.
"""

import itertools
import socket
from types import TracebackType
from typing import Final, Self

from pyritemq.protocol.codes import RequestCode, ResponseCode
from pyritemq.protocol.command import Command
from pyritemq.protocol.errors import ProtocolError
from pyritemq.protocol.frames import FrameDecoder
from pyritemq.spark.errors import BrokerError

READ_BYTES: Final = 1 << 20
FRAME_MAX: Final = 128 << 20
"""Ours: a PULL reply may be as large as the broker allows; its own limit is 128 MiB."""

Fields = dict[str, object]


class RefusedError(BrokerError):
    """The server answered with an error code."""

    def __init__(self, message: str, code: int = 0) -> None:
        super().__init__(message, code)
        self.code = code

    def __str__(self) -> str:
        return str(self.args[0])


class WireClient:
    """One connection."""

    def __init__(self, address: str, *, timeout_ms: int) -> None:
        self.address = address
        self._timeout = timeout_ms / 1000
        host, _, port = address.rpartition(":")
        try:
            self._socket = socket.create_connection((host.strip("[]"), int(port)), self._timeout)
        except (OSError, ValueError) as error:
            raise BrokerError(f"cannot connect to {address}: {error}") from error
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._decoder = FrameDecoder(FRAME_MAX)
        self._opaques = itertools.count(1)
        self._replies: dict[int, Command] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        self._socket.close()

    def call(self, code: RequestCode, fields: Fields, body: bytes = b"") -> Command:
        """The reply to a request. Raises RefusedError unless it is SUCCESS."""
        reply = self.receive(self.send(code, fields, body))
        if reply.code != ResponseCode.SUCCESS:
            raise self.refused(code, reply)
        return reply

    def refused(self, code: RequestCode, reply: Command) -> RefusedError:
        remark = (reply.remark or "").splitlines()
        what = remark[0] if remark else "no remark"
        text = f"{self.address} answers {code.name} with code {reply.code}: {what}"
        return RefusedError(text, reply.code)

    def send(self, code: RequestCode, fields: Fields, body: bytes = b"") -> int:
        """Send without waiting; returns what `receive` takes."""
        opaque = next(self._opaques)
        ext = {name: _text(value) for name, value in fields.items() if value is not None}
        command = Command(int(code), opaque=opaque, ext_fields=ext, body=body)
        try:
            self._socket.sendall(command.encode())
        except OSError as error:
            raise BrokerError(f"the connection to {self.address} broke: {error}") from error
        return opaque

    def receive(self, opaque: int) -> Command:
        while opaque not in self._replies:
            self._read()
        return self._replies.pop(opaque)

    def _read(self) -> None:
        try:
            data = self._socket.recv(READ_BYTES)
        except TimeoutError:
            raise BrokerError(
                f"no reply from {self.address} within {self._timeout:g} s (option 'timeoutMs')"
            ) from None
        except OSError as error:
            raise BrokerError(f"the connection to {self.address} broke: {error}") from error
        if not data:
            raise BrokerError(f"{self.address} closed the connection")
        try:
            commands = self._decoder.feed(data)
        except ProtocolError as error:
            raise BrokerError(f"{self.address} does not speak RocketMQ: {error}") from error
        for command in commands:
            if command.is_response:  # a server's own requests concern clients with a group
                self._replies[command.opaque] = command


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
