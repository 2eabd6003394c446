"""The write side of a connection: frames stay whole and in order, whoever writes."""

import socket
import threading

import pytest

from pyritemq.server import outgoing as module
from pyritemq.server.outgoing import Outgoing


class Pair:
    """A connected pair of sockets, the writing one not blocking."""

    def __init__(self):
        self.writer, self.reader = socket.socketpair()
        self.writer.setblocking(False)
        self.writer.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
        self.wakes = threading.Semaphore(0)
        self.outgoing = Outgoing(self.writer, wake=self.wakes.release)

    def read(self, size):
        data = b""
        while len(data) < size:
            data += self.reader.recv(size - len(data))
        return data

    def close(self):
        self.outgoing.close()
        self.reader.close()


@pytest.fixture
def pair():
    pair = Pair()
    yield pair
    pair.close()


def test_what_the_socket_takes_goes_out_at_once_and_nobody_is_woken(pair):
    pair.outgoing.write([b"head", b"body"])
    assert pair.read(8) == b"headbody"
    assert pair.outgoing.backlog_bytes == 0
    assert not pair.wakes.acquire(blocking=False)


def test_the_rest_waits_in_order_and_the_loop_is_told(pair):
    first, second = bytes(200_000), b"second"
    pair.outgoing.write([first])
    assert pair.wakes.acquire(blocking=False)
    pair.outgoing.write([second])
    assert 0 < pair.outgoing.backlog_bytes <= 200_006
    received = b""
    while pair.outgoing.send_more():
        received += pair.reader.recv(65536)
    received += pair.read(200_006 - len(received))
    assert received == first + second
    assert pair.outgoing.backlog_bytes == 0


def test_frames_of_many_threads_stay_whole(pair):
    def write(byte):
        for _ in range(50):
            pair.outgoing.write([bytes([byte]) * 10, bytes([byte]) * 300])

    threads = [threading.Thread(target=write, args=(number,)) for number in range(1, 5)]
    for thread in threads:
        thread.start()
    total, received = 4 * 50 * 310, b""
    while len(received) < total:
        pair.outgoing.send_more()
        received += pair.reader.recv(65536)
    for thread in threads:
        thread.join()
    frames = [received[start : start + 310] for start in range(0, total, 310)]
    assert all(len(set(frame)) == 1 for frame in frames)


def test_nothing_is_sent_once_it_is_closed(pair):
    pair.outgoing.close()
    pair.outgoing.write([b"late"])
    assert pair.reader.recv(10) == b""
    assert not pair.outgoing.is_broken


def test_a_peer_that_is_gone_is_noticed_and_the_loop_is_told(pair):
    pair.reader.close()
    pair.outgoing.write([b"x"])
    assert pair.outgoing.is_broken
    assert pair.wakes.acquire(blocking=False)


def test_a_peer_that_reads_nothing_becomes_overfull(pair, monkeypatch):
    monkeypatch.setattr(module, "BACKLOG_MAX_BYTES", 100_000)
    pair.outgoing.write([bytes(90_000)])
    assert pair.wakes.acquire(blocking=False)
    assert not pair.outgoing.is_overfull
    pair.outgoing.write([bytes(90_000)])
    assert pair.outgoing.is_overfull
    assert pair.wakes.acquire(blocking=False)


def test_a_frame_of_more_parts_than_the_system_takes_goes_out_whole(pair):
    parts = [bytes([number % 251]) * 100 for number in range(3000)]
    pair.outgoing.write(list(parts))
    received = b""
    while pair.outgoing.send_more():
        received += pair.reader.recv(1 << 20)
    whole = b"".join(parts)
    received += pair.read(len(whole) - len(received))
    assert received == whole
