"""A small blocking client that speaks frames: for cases about the wire itself, and for set-up.

It knows nothing of RocketMQ's client logic: no retries, no route cache, no heartbeat that nobody
asked for. One connection is used by one case.
"""

from __future__ import annotations

import itertools
import json
import re
import socket
import time
from typing import TYPE_CHECKING, Any

from pyritemq.protocol.codes import RequestCode
from pyritemq.protocol.command import Command
from pyritemq.protocol.errors import ProtocolError
from pyritemq.protocol.frames import FrameDecoder
from pyritemq.protocol.record import Record, decode_properties, decode_records

if TYPE_CHECKING:
    from collections.abc import Mapping

SECONDS = 20.0
NO_FIELDS: Mapping[str, object] = {}


class WireError(Exception):
    """The server closed, was silent for too long, or sent what is no frame."""


class Wire:
    """One connection. Replies are matched by opaque; what the server asks is kept apart."""

    def __init__(self, address: str, *, binary: bool = False, seconds: float = SECONDS) -> None:
        host, _, port = address.rpartition(":")
        self.address = address
        self.broker = ""
        """The broker's name, for requests that name it."""
        self._binary = binary
        self._seconds = seconds
        try:
            self._socket = socket.create_connection((host, int(port)), timeout=seconds)
        except OSError as error:
            raise WireError(f"cannot connect to {address}: {error}") from error
        self._decoder = FrameDecoder()
        self._opaques = itertools.count(1)
        self._replies: dict[int, Command] = {}
        self.pushed: list[Command] = []

    def call(
        self,
        code: int,
        fields: Mapping[str, object] = NO_FIELDS,
        body: bytes = b"",
        **how: int,
    ) -> Command:
        """Send a request and wait for its reply; `how` as in ask."""
        return self.reply(self.ask(code, fields, body, **how))

    def ask(
        self,
        code: int,
        fields: Mapping[str, object] = NO_FIELDS,
        body: bytes = b"",
        **how: int,
    ) -> int:
        """Send a request and return its opaque without waiting. `how`: version, language, flag."""
        opaque = next(self._opaques)
        command = Command(
            int(code),
            opaque=opaque,
            ext_fields={name: str(value) for name, value in fields.items()},
            body=body,
            serialize_type=1 if self._binary else 0,
        )
        for name, value in how.items():
            setattr(command, name, value)
        self.send_bytes(command.encode())
        return opaque

    def send_bytes(self, data: bytes) -> None:
        try:
            self._socket.sendall(data)
        except OSError as error:
            raise WireError(f"{self.address} took no more bytes: {error}") from error

    def reply(self, opaque: int, *, seconds: float | None = None) -> Command:
        deadline = time.monotonic() + (seconds or self._seconds)
        while opaque not in self._replies:
            self._read(deadline)
        return self._replies.pop(opaque)

    def push(self, code: int, *, seconds: float | None = None) -> Command:
        """The next request of the server with this code."""
        deadline = time.monotonic() + (seconds or self._seconds)
        while True:
            for command in self.pushed:
                if command.code == code:
                    self.pushed.remove(command)
                    return command
            self._read(deadline)

    def has_reply(self, opaque: int, *, within: float) -> bool:
        """Whether a reply comes in that time."""
        deadline = time.monotonic() + within
        try:
            while opaque not in self._replies:
                self._read(deadline)
        except WireError:
            return False
        return True

    def closed_within(self, seconds: float) -> bool:
        """Whether the server closes the connection in that time."""
        deadline = time.monotonic() + seconds
        try:
            while True:
                left = deadline - time.monotonic()
                if left <= 0:
                    return False
                self._socket.settimeout(left)
                if not self._socket.recv(65536):
                    return True
        except TimeoutError:
            return False
        except OSError:
            return True

    def close(self) -> None:
        self._socket.close()

    def __enter__(self) -> Wire:
        return self

    def __exit__(self, *unused: object) -> None:
        self.close()

    def _read(self, deadline: float) -> None:
        left = deadline - time.monotonic()
        if left <= 0:
            raise WireError(f"{self.address} did not answer in time")
        self._socket.settimeout(left)
        try:
            data = self._socket.recv(262144)
        except TimeoutError:
            raise WireError(f"{self.address} did not answer in time") from None
        except OSError as error:
            raise WireError(f"{self.address}: {error}") from error
        if not data:
            raise WireError(f"{self.address} closed the connection")
        try:
            commands = self._decoder.feed(data)
        except ProtocolError as error:
            raise WireError(f"{self.address} sent what is no frame: {error}") from error
        for command in commands:
            if command.is_response:
                self._replies[command.opaque] = command
            else:
                self.pushed.append(command)


def send_fields(
    topic: str, queue_id: int = 0, *, properties: str = "", group: str = "wire", **more: object
) -> dict[str, object]:
    """Ext fields of SEND_MESSAGE_V2; `more` replaces any of them by its letter."""
    now = int(time.time() * 1000)
    fields: dict[str, object] = {"a": group, "b": topic, "c": "TBW102", "d": 4, "e": queue_id}
    fields |= {"f": 0, "g": now, "h": 0, "i": properties, "j": 0, "k": "false", "m": "false"}
    return {**fields, **more}


def pull_fields(
    topic: str, queue_id: int, offset: int, *, group: str, wait_ms: int = 0, **more: object
) -> dict[str, object]:
    """Ext fields of PULL_MESSAGE with its own subscription, so that no heartbeat is needed."""
    fields: dict[str, object] = {"consumerGroup": group, "topic": topic, "queueId": queue_id}
    fields |= {"queueOffset": offset, "maxMsgNums": 32, "sysFlag": 4 | (2 if wait_ms else 0)}
    fields |= {"commitOffset": 0, "suspendTimeoutMillis": wait_ms, "subscription": "*"}
    return {**fields, "subVersion": 0, "expressionType": "TAG", **more}


def send(wire: Wire, topic: str, body: str, queue_id: int = 0, **options: Any) -> Command:  # noqa: ANN401
    fields = send_fields(topic, queue_id, **options)
    return wire.call(RequestCode.SEND_MESSAGE_V2, fields, body.encode())


def pull(wire: Wire, topic: str, queue_id: int, offset: int, **options: Any) -> Command:  # noqa: ANN401
    fields = pull_fields(topic, queue_id, offset, **options)
    return wire.call(RequestCode.PULL_MESSAGE, fields)


def pulled(reply: Command) -> list[Record]:
    return decode_records(bytes(reply.body)) if reply.code == 0 else []


def properties(record: Record) -> dict[str, str]:
    return decode_properties(record.properties)


_BARE_KEY = re.compile(r"([{,]\s*)(-?\d+)(\s*:)")


def java_json(body: bytes | memoryview) -> Any:  # noqa: ANN401
    """A body as fastjson writes it: number keys without quotes."""
    return json.loads(_BARE_KEY.sub(r'\1"\2"\3', bytes(body).decode()))


def heartbeat(
    client_id: str, group: str, topic: str, *, expression: str = "*", model: str = "CLUSTERING"
) -> bytes:
    """Body of HEART_BEAT for one consumer with one subscription, as a Java client sends it."""
    subscription = {
        "classFilterMode": False,
        "codeSet": [],
        "expressionType": "TAG",
        "subString": expression,
        "subVersion": int(time.time() * 1000),
        "tagsSet": [],
        "topic": topic,
    }
    consumer = {
        "consumeFromWhere": "CONSUME_FROM_LAST_OFFSET",
        "consumeType": "CONSUME_PASSIVELY",
        "groupName": group,
        "messageModel": model,
        "subscriptionDataSet": [subscription],
        "unitMode": False,
    }
    data = {"clientID": client_id, "consumerDataSet": [consumer], "producerDataSet": []}
    return json.dumps(data).encode()
