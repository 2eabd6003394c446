"""Held pulls: woken by a message that they want, or when their time is up, and never lost."""

from types import SimpleNamespace

import pytest
import trio
import trio.testing

from pyritemq.server.broker.long_polling import Arrival, HeldPull, LongPolling

KEY = ("Topic", 3)


class Queue:
    """One queue's end and the pulls that were given back."""

    def __init__(self):
        self.end = 0
        self.resumed = []
        self.polling = LongPolling(
            queue_end=lambda topic, queue_id: self.end, resume=self.resumed.extend
        )

    def hold(self, *, offset=0, tags=None, wait_ms=15_000, closed=False, expression=None):
        request = SimpleNamespace(channel=SimpleNamespace(closed=closed), suspended=False)
        self.polling.hold(
            HeldPull(
                request,
                KEY,
                offset=offset,
                tag_hashes=tags,
                wait_ms=wait_ms,
                expression=expression,
            )
        )
        return request

    def arrive(self, *tags):
        self.end += 1
        self.polling.announce([Arrival(KEY, self.end, frozenset(tags or {0}))])


@pytest.fixture
async def queue(nursery):
    queue = Queue()
    await nursery.start(queue.polling.run)
    return queue


async def settle():
    await trio.testing.wait_all_tasks_blocked()


async def test_an_arrival_wakes_the_waiting_pull_at_once(queue, autojump_clock):
    request = queue.hold()
    await settle()
    began = trio.current_time()
    assert queue.polling.is_awaited(KEY)
    queue.arrive()
    await settle()
    assert queue.resumed == [request]
    assert request.suspended
    assert trio.current_time() == began
    assert not queue.polling.is_awaited(KEY)


async def test_a_message_that_came_before_the_pull_was_held_is_not_missed(queue, autojump_clock):
    queue.end = 1
    request = queue.hold(offset=0)
    await settle()
    assert queue.resumed == [request]


async def test_time_up_gives_the_pull_back(queue, autojump_clock):
    request = queue.hold(wait_ms=15_000)
    await settle()
    await trio.sleep(14)
    assert queue.resumed == []
    await trio.sleep(2)
    assert queue.resumed == [request]


async def test_a_tag_that_nobody_wants_wakes_nobody(queue, autojump_clock):
    request = queue.hold(tags=frozenset({7}))
    await settle()
    queue.arrive(8)
    await settle()
    assert queue.resumed == []
    queue.arrive(8, 7)
    await settle()
    assert queue.resumed == [request]


async def test_a_pull_beyond_the_new_end_goes_on_waiting(queue, autojump_clock):
    queue.hold(offset=5)
    await settle()
    queue.arrive()
    await settle()
    assert queue.resumed == []


async def test_a_pull_of_a_closed_connection_is_dropped(queue, autojump_clock):
    queue.hold(closed=True)
    await settle()
    queue.arrive()
    await settle()
    assert queue.resumed == []
    assert queue.polling.held_count == 0


async def test_all_pulls_of_a_queue_are_woken_by_one_message(queue, autojump_clock):
    requests = [queue.hold(), queue.hold(), queue.hold()]
    await settle()
    queue.arrive()
    await settle()
    assert queue.resumed == requests


async def test_a_pull_overtaken_by_messages_of_others_is_answered_after_five_seconds(
    queue, autojump_clock
):
    request = queue.hold(tags=frozenset({7}), wait_ms=60_000)
    await trio.sleep(20)
    queue.arrive(8)
    await trio.sleep(4)
    queue.arrive(8)  # does not begin the five seconds anew
    assert queue.resumed == []
    await trio.sleep(2)
    assert queue.resumed == [request]
    assert not request.header.probing


async def test_a_filtered_pull_that_was_overtaken_is_answered_after_five_seconds(
    queue, autojump_clock
):
    request = queue.hold(expression=object(), wait_ms=60_000)
    await settle()
    queue.arrive()
    await settle()
    request.header.looked_at = queue.end
    queue.resumed.clear()
    queue.polling.hold(request.header)
    await trio.sleep(4)
    assert queue.resumed == []
    await trio.sleep(2)
    assert queue.resumed == [request]
    assert not request.header.probing


async def test_a_pull_that_nothing_overtook_is_left_alone(queue, autojump_clock):
    queue.hold(wait_ms=60_000)
    await trio.sleep(50)
    assert queue.resumed == []


async def test_a_filtered_pull_is_looked_at_when_something_arrives(queue, autojump_clock):
    request = queue.hold(expression=object())
    await settle()
    queue.arrive()
    await settle()
    assert queue.resumed == [request]
    assert request.header.probing


async def test_a_filtered_pull_that_is_held_on_keeps_its_deadline(queue, autojump_clock):
    request = queue.hold(expression=object(), wait_ms=4_000)
    await settle()
    began = trio.current_time()
    queue.arrive()
    await trio.sleep(2)
    held = request.header
    held.looked_at = queue.end
    queue.resumed.clear()
    queue.polling.hold(held)
    await settle()
    assert queue.resumed == []
    await trio.sleep(3)
    assert queue.resumed == [request]
    assert not held.probing
    assert held.deadline == began + 4


async def test_what_arrives_while_the_lane_looks_at_a_filtered_pull_is_not_missed(
    queue, autojump_clock
):
    request = queue.hold(expression=object())
    await settle()
    queue.arrive()
    await settle()
    request.header.looked_at = queue.end
    queue.end += 1  # nobody is announced: the pull is in the lane's hands
    queue.resumed.clear()
    queue.polling.hold(request.header)
    await settle()
    assert queue.resumed == [request]
    assert request.header.probing


async def test_a_filtered_pull_whose_time_is_up_is_answered(queue, autojump_clock):
    request = queue.hold(expression=object(), wait_ms=1_000)
    await trio.sleep(2)
    assert queue.resumed == [request]
    assert not request.header.probing
