"""A bare client for tests: speaks frames, knows nothing of RocketMQ's client logic."""

import itertools

import trio

from pyritemq.protocol.codes import RequestCode
from pyritemq.protocol.command import Command
from pyritemq.protocol.frames import FrameDecoder

TIMEOUT_SECONDS = 20


class Wire:
    """One connection; replies are matched by opaque, requests of the server are kept apart."""

    def __init__(self, stream):
        self.stream = stream
        self._decoder = FrameDecoder()
        self._opaques = itertools.count(1)
        self._replies = {}
        self.pushed = []

    @classmethod
    async def connect(cls, address):
        host, _, port = address.rpartition(":")
        return cls(await trio.open_tcp_stream(host, int(port)))

    async def call(self, code, fields=None, body=b"", *, serialize_type=0):
        opaque = await self.ask(code, fields, body, serialize_type=serialize_type)
        return await self.reply(opaque)

    async def ask(self, code, fields=None, body=b"", *, serialize_type=0, flag=0):
        """Send a request and return its opaque without waiting."""
        opaque = next(self._opaques)
        command = Command(
            int(code),
            opaque=opaque,
            flag=flag,
            ext_fields={name: str(value) for name, value in (fields or {}).items()},
            body=body,
            serialize_type=serialize_type,
        )
        await self.stream.send_all(command.encode())
        return opaque

    async def reply(self, opaque):
        with trio.fail_after(TIMEOUT_SECONDS):
            while opaque not in self._replies:
                await self._read()
        return self._replies.pop(opaque)

    async def push(self):
        """The next request that the server sends of its own accord."""
        with trio.fail_after(TIMEOUT_SECONDS):
            while not self.pushed:
                await self._read()
        return self.pushed.pop(0)

    async def closed_by_peer(self):
        """Wait until the server closes; frames before that are kept."""
        with trio.fail_after(TIMEOUT_SECONDS):
            try:
                while data := await self.stream.receive_some(65536):
                    self._take(data)
            except trio.BrokenResourceError:
                return

    async def aclose(self):
        await self.stream.aclose()

    async def _read(self):
        data = await self.stream.receive_some(65536)
        if not data:
            raise EOFError("the server closed the connection")
        self._take(data)

    def _take(self, data):
        for command in self._decoder.feed(data):
            if command.is_response:
                self._replies[command.opaque] = command
            else:
                self.pushed.append(command)


def send_fields(topic, queue_id=0, *, properties="", group="producers", default_queues=4):
    """Ext fields of SEND_MESSAGE_V2."""
    return {
        "a": group,
        "b": topic,
        "c": "TBW102",
        "d": default_queues,
        "e": queue_id,
        "f": 0,
        "g": 1_700_000_000_000,
        "h": 0,
        "i": properties,
        "j": 0,
        "k": "false",
        "m": "false",
    }


def pull_fields(topic, queue_id, offset, *, group="consumers", wait_ms=0, count=32, tags="*"):
    """Ext fields of PULL_MESSAGE with its own subscription, so that no heartbeat is needed."""
    return {
        "consumerGroup": group,
        "topic": topic,
        "queueId": queue_id,
        "queueOffset": offset,
        "maxMsgNums": count,
        "sysFlag": 4 | (2 if wait_ms else 0),
        "commitOffset": 0,
        "suspendTimeoutMillis": wait_ms,
        "subscription": tags,
        "subVersion": 0,
        "expressionType": "TAG",
    }


async def send(wire, topic, body, queue_id=0, **options):
    return await wire.call(
        RequestCode.SEND_MESSAGE_V2, send_fields(topic, queue_id, **options), body
    )


async def pull(wire, topic, queue_id=0, offset=0, **options):
    return await wire.call(
        RequestCode.PULL_MESSAGE, pull_fields(topic, queue_id, offset, **options)
    )
