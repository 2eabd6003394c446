"""Bounded clients for crash tests: plain sockets, a few connections, a few requests in flight.

They never stop by themselves: they work until their server dies, and remember what was answered:
which sends with SEND_OK, and which offsets were committed.
"""

from __future__ import annotations

import socket
import threading
from typing import NamedTuple

from integration.wire import pull_fields, send_fields
from pyritemq.protocol.codes import RequestCode, ResponseCode
from pyritemq.protocol.command import Command
from pyritemq.protocol.frames import FrameDecoder

TOPIC = "Crash"
GROUP = "committers"
QUEUES = 4
IN_FLIGHT = 16
TIMEOUT_SECONDS = 20


class Acked(NamedTuple):
    """A send that was answered with SEND_OK."""

    body: bytes
    queue_id: int
    queue_offset: int


class Connection:
    """A blocking connection that sends requests and reads replies by opaque."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=TIMEOUT_SECONDS)
        self._decoder = FrameDecoder()
        self._opaque = 0

    def send(self, code: int, fields: dict[str, object], body: bytes = b"") -> int:
        self._opaque += 1
        ext_fields = {name: str(value) for name, value in fields.items()}
        command = Command(code, opaque=self._opaque, ext_fields=ext_fields, body=body)
        self._socket.sendall(command.encode())
        return self._opaque

    def receive(self) -> list[Command]:
        """Replies that have come; raises OSError or EOFError when the server is gone."""
        data = self._socket.recv(1 << 18)
        if not data:
            raise EOFError("the server closed the connection")
        return [command for command in self._decoder.feed(data) if command.is_response]

    def call(self, code: int, fields: dict[str, object], body: bytes = b"") -> Command:
        opaque = self.send(code, fields, body)
        while True:
            for reply in self.receive():
                if reply.opaque == opaque:
                    return reply

    def close(self) -> None:
        self._socket.close()


class Producer(threading.Thread):
    """Sends over one connection until the server dies."""

    def __init__(self, port: int, name: str) -> None:
        super().__init__(name=name, daemon=True)
        self._connection = Connection(port)
        self._sent: dict[int, tuple[bytes, int]] = {}
        self._number = 0
        self.acked: list[Acked] = []
        self.refused: list[str] = []
        self.busy = threading.Event()

    def run(self) -> None:
        try:
            while True:
                while len(self._sent) < IN_FLIGHT:
                    self._send_one()
                for reply in self._connection.receive():
                    self._take(reply)
        except (OSError, EOFError):
            self.busy.set()
        finally:
            self._connection.close()

    def _send_one(self) -> None:
        self._number += 1
        queue_id = self._number % QUEUES
        body = f"{self.name}-{self._number}-".encode() + b"x" * (self._number * 37 % 900)
        fields = send_fields(TOPIC, queue_id, properties="TAGS\x01TagA\x02")
        opaque = self._connection.send(RequestCode.SEND_MESSAGE_V2, fields, body)
        self._sent[opaque] = (body, queue_id)

    def _take(self, reply: Command) -> None:
        body, queue_id = self._sent.pop(reply.opaque)
        if reply.code != ResponseCode.SUCCESS:
            self.refused.append(f"{reply.code} {reply.remark}")
            return
        self.acked.append(Acked(body, queue_id, int(reply.ext_fields["queueOffset"])))
        self.busy.set()


class Committer(threading.Thread):
    """Commits ever higher offsets of one group over one connection until the server dies."""

    def __init__(self, port: int, start: int) -> None:
        super().__init__(daemon=True)
        self._connection = Connection(port)
        self.committed = start  # acknowledged, or asked for when the server died

    def run(self) -> None:
        try:
            # a pull makes the group known
            fields = pull_fields(TOPIC, 0, 0, group=GROUP, count=1)
            self._connection.call(RequestCode.PULL_MESSAGE, fields)
            while True:
                self.committed += 1
                for queue_id in range(QUEUES):
                    fields = offset_fields(queue_id) | {"commitOffset": self.committed}
                    reply = self._connection.call(RequestCode.UPDATE_CONSUMER_OFFSET, fields)
                    assert reply.code == ResponseCode.SUCCESS, reply.remark
        except (OSError, EOFError):
            return
        finally:
            self._connection.close()


def offset_fields(queue_id: int) -> dict[str, object]:
    return {"consumerGroup": GROUP, "topic": TOPIC, "queueId": queue_id}
