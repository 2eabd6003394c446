"""Lanes: bounded, drained in batches, and independent of each other."""

import itertools
import threading
from types import SimpleNamespace

from pyritemq.server.lanes import Lane, LanePool, Outbox


def request(number=0):
    return SimpleNamespace(number=number, received_ns=0)


class Gate:
    """A lane's `run` that blocks until it is opened and remembers what it was given."""

    def __init__(self):
        self.entered = threading.Semaphore(0)
        self.open = threading.Event()
        self.drains = []

    def run(self, requests, outbox):
        self.drains.append([request.number for request in requests])
        self.entered.release()
        assert self.open.wait(10)


def pool(run, *, threads=1, capacity=100, post=lambda outbox: None):
    return LanePool(Lane.PULL, threads=threads, capacity=capacity, run=run, post=post)


def test_all_that_waits_is_taken_as_one_drain():
    gate = Gate()
    lane = pool(gate.run)
    lane.offer([request(1)])
    assert gate.entered.acquire(timeout=10)
    lane.offer([request(2), request(3)])
    lane.offer([request(4)])
    gate.open.set()
    lane.close()
    assert gate.drains == [[1], [2, 3, 4]]


def test_a_full_lane_hands_back_what_does_not_fit():
    gate = Gate()
    lane = pool(gate.run, capacity=3)
    assert lane.offer([request(1), request(2)]) == []
    refused = lane.offer([request(3), request(4), request(5)])
    assert [one.number for one in refused] == [4, 5]
    assert lane.statistics().refused == 2
    gate.open.set()
    lane.close()


def test_served_requests_make_room_again():
    gate = Gate()
    gate.open.set()
    lane = pool(gate.run, capacity=3)
    lane.offer([request(1), request(2), request(3)])
    lane.close()
    assert lane.statistics().queued == 0
    assert lane.statistics().requests == 3


def test_a_slow_request_does_not_hold_up_the_next_one_where_there_are_threads():
    """The only idle thread had just been given a slow job when the next job came: it waited too."""
    gate = Gate()
    lane = pool(gate.run, threads=2)
    lane.offer([request(1)])
    assert gate.entered.acquire(timeout=10)
    lane.offer([request(2)])
    assert gate.entered.acquire(timeout=10), "the second request never started"
    gate.open.set()
    lane.close()
    assert gate.drains == [[1], [2]]


def test_close_finishes_what_is_queued_and_refuses_what_comes_after():
    gate = Gate()
    lane = pool(gate.run)
    lane.offer([request(1)])
    lane.offer([request(2)])
    gate.open.set()
    lane.close()
    assert [*itertools.chain(*gate.drains)] == [1, 2]
    late = [request(3)]
    assert lane.offer(late) == late


def test_a_notice_of_our_own_is_taken_even_by_a_full_lane():
    gate = Gate()
    lane = pool(gate.run, capacity=1)
    lane.offer([request(1)])
    lane.insist(request(2))
    gate.open.set()
    lane.close()
    assert [*itertools.chain(*gate.drains)] == [1, 2]


def test_replies_of_one_drain_are_posted_once_and_in_order():
    posted = []

    def run(requests, outbox):
        for one in requests:
            outbox.add(channel, b"%d" % one.number)

    channel = object()
    lane = pool(run, post=posted.append)
    lane.offer([request(1), request(2), request(3)])
    lane.close()
    assert [outbox.chunks for outbox in posted] == [{channel: [b"1", b"2", b"3"]}]


def test_an_idle_lane_has_no_threads():
    lane = pool(lambda requests, outbox: None)
    assert lane.statistics().threads == 0
    lane.close()


def test_an_outbox_keeps_the_parts_of_a_frame_together():
    outbox = Outbox()
    outbox.add("a", b"head", b"body")
    outbox.add("b", b"x")
    outbox.add("a", b"next")
    assert outbox.chunks == {"a": [b"head", b"body", b"next"], "b": [b"x"]}


def test_a_paused_lane_lets_its_drain_end_and_starts_no_other_until_it_is_resumed():
    gate = Gate()
    lane = pool(gate.run, threads=2)
    lane.offer([request(1)])
    assert gate.entered.acquire(timeout=10)
    assert not lane.pause(timeout_s=0.01), "a drain is under way"
    gate.open.set()
    assert lane.pause(timeout_s=10)
    lane.offer([request(2)])
    lane.offer([request(3)])  # by a thread of its own, which starts while the lane is paused
    assert not gate.entered.acquire(timeout=0.05)
    lane.resume()
    lane.close()
    assert sorted(gate.drains) == [[1], [2], [3]] or sorted(gate.drains) == [[1], [2, 3]]


def test_what_waits_behind_a_drain_that_hangs_can_be_taken_back():
    gate = Gate()
    lane = pool(gate.run, capacity=4)
    lane.offer([request(1)])
    assert gate.entered.acquire(timeout=10)
    lane.offer([request(2), request(3)])
    lane.offer([request(4)])
    taken = lane.take_back(lambda one: one.number != 3)
    assert [one.number for one in taken] == [2, 4]
    assert lane.offer([request(5), request(6)]) == []  # there is room again
    gate.open.set()
    lane.close()
    assert [number for drain in gate.drains for number in drain] == [1, 3, 5, 6]
