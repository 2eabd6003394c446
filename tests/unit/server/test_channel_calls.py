"""Requests of the server's own: a lane thread asks a client and waits for what it answers."""

from __future__ import annotations

import threading

import pytest

from pyritemq.protocol.codes import RequestCode
from pyritemq.protocol.command import Command, decode_frame
from pyritemq.server.connection import NOBODY, Channel, PeerGone


class Loop:
    """Runs at once what it is given."""

    def call_soon(self, function, *args):
        function(*args)
        return True


class Peer:
    """Takes frames and does with each request what the test says."""

    def __init__(self, react):
        self.react = react
        self.outgoing = self
        self.channel = Channel(self, Loop(), remote=("192.0.2.7", 5), local=("192.0.2.1", 10911))

    def write(self, buffers):
        for buffer in buffers:
            self.react(self.channel, decode_frame(bytes(buffer)[4:]))


def ask() -> Command:
    return Command(RequestCode.GET_CONSUMER_RUNNING_INFO)


def test_call_returns_the_response_with_the_same_opaque():
    def react(channel, request):
        channel.answered(Command(0, opaque=request.opaque + 1, flag=1, remark="of another call"))
        channel.answered(request.make_reply(remark="mine"))

    assert Peer(react).channel.call(ask(), timeout_s=5).remark == "mine"


def test_two_calls_have_different_opaques():
    seen = []

    def react(channel, request):
        seen.append(request.opaque)
        channel.answered(request.make_reply())

    channel = Peer(react).channel
    channel.call(ask(), timeout_s=5)
    channel.call(ask(), timeout_s=5)
    assert len(set(seen)) == 2


def test_call_without_a_response_times_out_and_is_forgotten():
    late = []
    channel = Peer(lambda channel, request: late.append(request)).channel
    with pytest.raises(TimeoutError):
        channel.call(ask(), timeout_s=0)
    channel.answered(late[0].make_reply())
    assert not channel._calls


def test_call_fails_at_once_when_the_connection_closes():
    def react(channel, request):
        channel.closed = True
        threading.Thread(target=channel.fail_calls).start()

    with pytest.raises(PeerGone):
        Peer(react).channel.call(ask(), timeout_s=30)


def test_call_on_a_closed_connection_fails_without_waiting():
    with pytest.raises(PeerGone):
        NOBODY.call(ask(), timeout_s=30)


def test_several_peers_may_be_asked_before_any_is_waited_for():
    asked = []
    channels = [Peer(lambda channel, request: asked.append(request)).channel for _ in range(2)]
    futures = [channel.ask(ask()) for channel in channels]
    assert not any(future.done() for future in futures)
    for channel, request in zip(reversed(channels), reversed(asked), strict=True):
        channel.answered(request.make_reply(remark=str(request.opaque)))
    assert [future.result(0).remark for future in futures] == [str(r.opaque) for r in asked]


def test_an_answer_to_a_forgotten_question_is_dropped():
    asked = []
    channel = Peer(lambda channel, request: asked.append(request)).channel
    question = ask()
    future = channel.ask(question)
    channel.forget(question)
    channel.answered(asked[0].make_reply())
    assert not future.done()
