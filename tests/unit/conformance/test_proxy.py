"""The proxy: frames pass in both directions, and its judge changes, drops and answers them."""

from __future__ import annotations

import socketserver
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from pyritemq.conformance.mutations import MUTATIONS, Mutant, Mutation
from pyritemq.conformance.processes import free_port
from pyritemq.conformance.proxy import Proxy
from pyritemq.conformance.wire import Wire, WireError
from pyritemq.protocol.command import Command
from pyritemq.protocol.frames import FrameDecoder

if TYPE_CHECKING:
    from collections.abc import Iterator


class Echo(socketserver.BaseRequestHandler):
    """Answers every request with its own fields, and pushes code 40 before."""

    def handle(self) -> None:
        decoder = FrameDecoder()
        while data := self.request.recv(65536):
            for command in decoder.feed(data):
                self.request.sendall(Command(40).encode())
                fields = dict(command.ext_fields)
                reply = Command(0, opaque=command.opaque, flag=1, ext_fields=fields)
                self.request.sendall(reply.encode())


@pytest.fixture
def echo() -> Iterator[tuple[str, int]]:
    class Server(socketserver.ThreadingTCPServer):
        daemon_threads = True
        block_on_close = False

    with Server(("127.0.0.1", 0), Echo) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield "127.0.0.1", int(server.server_address[1])
        server.shutdown()


@contextmanager
def through(echo: tuple[str, int], mutation: Mutation) -> Iterator[tuple[Proxy, Wire]]:
    port = free_port()
    proxy = Proxy(port, echo, Mutant(mutation))
    with Wire(f"127.0.0.1:{port}", seconds=5) as wire:
        yield proxy, wire
    proxy.close()


def test_what_nobody_touches_passes(echo: tuple[str, int]) -> None:
    with through(echo, Mutation("X", "", "")) as (proxy, wire):
        assert wire.call(10, {"a": "1"}).ext_fields["a"] == "1"
        assert wire.push(40).code == 40
        proxy.close()
        with pytest.raises(WireError):
            wire.call(10)


def test_a_judge_changes_replies_drops_pushes_and_answers_requests(echo: tuple[str, int]) -> None:
    def reply(request: Command, answer: Command) -> Command:
        answer.ext_fields["seen"] = str(request.code)
        return answer

    def request(command: Command) -> Command:
        if command.code == 11:
            return Command(99, opaque=command.opaque, flag=1)
        return command

    mutation = Mutation("X", "", "", request=request, reply=reply, push=lambda command: None)
    with through(echo, mutation) as (_, wire):
        assert wire.call(10).ext_fields["seen"] == "10"
        assert wire.call(11).code == 99
        assert wire.pushed == []


def test_a_dead_server_looks_dead() -> None:
    port, nobody = free_port(), free_port()
    proxy = Proxy(port, ("127.0.0.1", nobody), Mutant(MUTATIONS[0]))
    with Wire(f"127.0.0.1:{port}", seconds=5) as wire:
        assert wire.closed_within(5)
    proxy.close()
