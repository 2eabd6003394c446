"""Recordings: what clients asked a server, and what it answered, one exchange a line.

The recorder is a judge of the proxy: it changes nothing. A recording is JSON lines, so that it can
be read, cut and kept as a fixture.
"""

from __future__ import annotations

import itertools
import json
import threading
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from pyritemq.protocol.command import Command

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

EXCHANGES_MAX = 200_000
ONE_WAY = 2


class RecordingError(Exception):
    """A file is no recording; the message says where."""


@dataclass(frozen=True)
class Said:
    """A command as it was said, apart from its opaque."""

    code: int
    fields: dict[str, str]
    body: str = ""
    remark: str | None = None
    flag: int = 0
    language: int = 0
    version: int = 0
    binary: bool = False

    def command(self) -> Command:
        return Command(
            self.code,
            ext_fields=dict(self.fields),
            body=bytes.fromhex(self.body),
            flag=self.flag,
            language=self.language,
            version=self.version,
            serialize_type=int(self.binary),
        )


@dataclass(frozen=True)
class Exchange:
    """One request to one node; without a reply where it was one-way or never answered."""

    number: int
    node: str
    request: Said
    reply: Said | None = None


def said(command: Command) -> Said:
    return Said(
        code=command.code,
        fields=dict(command.ext_fields),
        body=bytes(command.body).hex(),
        remark=command.remark,
        flag=command.flag,
        language=command.language,
        version=command.version,
        binary=bool(command.serialize_type),
    )


class Recorder:
    """Collects exchanges of any number of nodes; judge(node) is what sits in a proxy."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._numbers = itertools.count(1)
        self._asked: dict[int, Exchange] = {}
        self._by_request: dict[int, int] = {}

    def judge(self, node: str) -> _Listening:
        return _Listening(self, node)

    def asked(self, node: str, command: Command) -> None:
        with self._lock:
            number = next(self._numbers)
            if number > EXCHANGES_MAX:
                return
            self._asked[number] = Exchange(number, node, said(command))
            self._by_request[id(command)] = number

    def answered(self, request: Command, reply: Command) -> None:
        with self._lock:
            number = self._by_request.pop(id(request), None)
            if number is not None:
                first = self._asked[number]
                self._asked[number] = Exchange(number, first.node, first.request, said(reply))

    def exchanges(self) -> list[Exchange]:
        with self._lock:
            return [self._asked[number] for number in sorted(self._asked)]


class _Listening:
    """A judge that lets everything pass."""

    def __init__(self, recorder: Recorder, node: str) -> None:
        self._recorder = recorder
        self._node = node

    def request(self, command: Command) -> Command | None:
        self._recorder.asked(self._node, command)
        return command

    def reply(self, request: Command, reply: Command) -> Command | None:
        self._recorder.answered(request, reply)
        return reply

    def push(self, command: Command) -> Command | None:
        return command


def write(path: Path, exchanges: Iterable[Exchange], addresses: dict[str, str]) -> None:
    """The first line has the addresses of the nodes: a replay puts its own in their place."""
    lines = [json.dumps({"addresses": addresses})]
    lines += [json.dumps(asdict(one), ensure_ascii=False) for one in exchanges]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def read(path: Path) -> tuple[list[Exchange], dict[str, str]]:
    addresses: dict[str, str] = {}
    exchanges: list[Exchange] = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        try:
            data = json.loads(line)
            if number == 1:
                addresses = {str(name): str(value) for name, value in data["addresses"].items()}
            else:
                exchanges.append(_exchange(data))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise RecordingError(f"{path}, line {number}: no recording: {error}") from error
    if not addresses:
        raise RecordingError(f"{path}: empty")
    return exchanges, addresses


def _exchange(data: dict[str, Any]) -> Exchange:
    reply = data.get("reply")
    return Exchange(
        int(data["number"]),
        str(data["node"]),
        Said(**data["request"]),
        Said(**reply) if reply else None,
    )
