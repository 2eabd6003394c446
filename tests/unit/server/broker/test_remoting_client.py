"""The client for calls to other servers, over streams in memory and a clock that jumps."""

from __future__ import annotations

import pytest
import trio
import trio.testing

from pyritemq.protocol.codes import RequestCode
from pyritemq.protocol.command import Command
from pyritemq.protocol.frames import FrameDecoder
from pyritemq.server import remoting_client
from pyritemq.server.remoting_client import RemotingError, open_remoting_client


class Peer:
    """The other ends of all connections that the client opened."""

    def __init__(self) -> None:
        self.streams: list[trio.StapledStream] = []
        self.refuses = False

    async def connect(self, address):
        await trio.lowlevel.checkpoint()
        if self.refuses:
            raise RemotingError(f"no connection to {address}")
        ours, theirs = trio.testing.memory_stream_pair()
        self.streams.append(theirs)
        return ours

    async def receive(self, count=1, stream=-1):
        decoder, commands = FrameDecoder(), []
        while len(commands) < count:
            commands += decoder.feed(await self.streams[stream].receive_some())
        return commands


@pytest.fixture
def peer(monkeypatch):
    peer = Peer()
    monkeypatch.setattr(remoting_client, "_connect", peer.connect)
    return peer


def request():
    return Command(RequestCode.GET_KV_CONFIG)


async def test_replies_find_their_calls_in_any_order(peer, autojump_clock):
    replies = {}

    async def call(client, name):
        replies[name] = await client.invoke("a:1", request(), timeout_s=5)

    async with open_remoting_client() as client, trio.open_nursery() as nursery:
        nursery.start_soon(call, client, "first")
        await trio.testing.wait_all_tasks_blocked()
        nursery.start_soon(call, client, "second")
        await trio.testing.wait_all_tasks_blocked()
        first, second = await peer.receive(2)
        frames = second.make_reply(0, "2").encode() + first.make_reply(0, "1").encode()
        await peer.streams[0].send_all(frames)
    assert {name: reply.remark for name, reply in replies.items()} == {"first": "1", "second": "2"}
    assert len(peer.streams) == 1


async def test_late_and_unknown_frames_are_passed_over(peer, autojump_clock):
    async with open_remoting_client() as client:
        with pytest.raises(RemotingError, match="no reply from a:1 within 2 s"):
            await client.invoke("a:1", request(), timeout_s=2)
        (late,) = await peer.receive()
        await peer.streams[0].send_all(late.make_reply().encode() + request().encode())

        async with trio.open_nursery() as nursery:
            nursery.start_soon(answer_one, peer)
            reply = await client.invoke("a:1", request(), timeout_s=2)
        assert reply.remark == "fine"


async def answer_one(peer):
    await trio.testing.wait_all_tasks_blocked()
    (command,) = await peer.receive()
    await peer.streams[-1].send_all(command.make_reply(0, "fine").encode())


async def test_broken_connection_fails_its_calls_and_the_next_opens_another(peer, autojump_clock):
    lost = []
    async with open_remoting_client(on_close=lost.append) as client:

        async def hang_up():
            await trio.testing.wait_all_tasks_blocked()
            await peer.streams[0].aclose()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(hang_up)
            with pytest.raises(RemotingError, match="the connection to a:1 broke"):
                await client.invoke("a:1", request(), timeout_s=60)
        await trio.testing.wait_all_tasks_blocked()
        assert lost == ["a:1"]
        async with trio.open_nursery() as nursery:
            nursery.start_soon(answer_one, peer)
            assert (await client.invoke("a:1", request(), timeout_s=5)).remark == "fine"
    assert len(peer.streams) == 2


async def test_nonsense_from_the_peer_closes_the_connection(peer, autojump_clock):
    async with open_remoting_client() as client, trio.open_nursery() as nursery:

        async def babble():
            await trio.testing.wait_all_tasks_blocked()
            await peer.streams[0].send_all(b"\xff" * 64)

        nursery.start_soon(babble)
        with pytest.raises(RemotingError):
            await client.invoke("a:1", request(), timeout_s=60)


async def test_refused_connection_is_an_error(peer, autojump_clock):
    peer.refuses = True
    async with open_remoting_client() as client:
        with pytest.raises(RemotingError, match="no connection to a:1"):
            await client.invoke("a:1", request(), timeout_s=5)


async def test_oneway_request_waits_for_nothing(peer, autojump_clock):
    async with open_remoting_client() as client:
        await client.invoke_oneway("a:1", request(), timeout_s=5)
        (command,) = await peer.receive()
    assert command.is_oneway


async def test_addresses_have_connections_of_their_own(peer, autojump_clock):
    async with open_remoting_client() as client:
        for address in ("a:1", "b:1", "a:1"):
            await client.invoke_oneway(address, request(), timeout_s=5)
    assert len(peer.streams) == 2


async def test_real_socket_and_nobody_listening():
    async with trio.open_nursery() as nursery:

        async def serve(stream):
            (command,) = FrameDecoder().feed(await stream.receive_some())
            await stream.send_all(command.make_reply(0, "hello").encode())

        (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
        port = listener.socket.getsockname()[1]
        nursery.start_soon(trio.serve_listeners, serve, [listener])
        async with open_remoting_client() as client:
            reply = await client.invoke(f"127.0.0.1:{port}", request(), timeout_s=5)
            assert reply.remark == "hello"
        nursery.cancel_scope.cancel()
    async with open_remoting_client() as client:
        with pytest.raises(RemotingError, match="no connection"):
            await client.invoke(f"127.0.0.1:{port}", request(), timeout_s=5)
