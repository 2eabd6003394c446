"""The loop's sockets and calls: every event is told, and no call of another thread is missed."""

import socket
import threading

import pytest
import trio
import trio.testing

from pyritemq.server.loop import BROKEN, READABLE, WRITABLE, current_loop


@pytest.fixture
def pair():
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    with ours, theirs:
        yield ours, theirs


class Seen:
    """Masks that a callback was given, and a wait for the next one."""

    def __init__(self):
        self.masks = []
        self._news = trio.Event()

    def __call__(self, mask):
        self.masks.append(mask)
        self._news.set()

    async def wait(self):
        with trio.fail_after(5):
            await self._news.wait()
        self._news = trio.Event()


async def test_one_trio_run_has_one_loop():
    assert current_loop() is current_loop()


async def test_a_socket_with_data_is_told_again_and_again_until_it_is_read(pair):
    ours, theirs = pair
    seen = Seen()
    current_loop().watch(ours, seen)
    theirs.send(b"x")
    await seen.wait()
    await seen.wait()
    assert set(seen.masks) == {READABLE}
    current_loop().forget(ours)


async def test_only_what_is_asked_for_is_told(pair):
    ours, theirs = pair
    loop, seen = current_loop(), Seen()
    loop.watch(ours, seen)
    loop.change(ours, WRITABLE)
    theirs.send(b"x")
    await seen.wait()
    assert set(seen.masks) == {WRITABLE}
    loop.change(ours, 0)
    theirs.close()
    seen.masks.clear()
    await seen.wait()
    assert seen.masks[-1] & BROKEN
    loop.forget(ours)


async def test_a_forgotten_socket_is_not_told(pair):
    ours, theirs = pair
    other, other_peer = socket.socketpair()
    with other, other_peer:
        loop, seen, other_seen = current_loop(), Seen(), Seen()
        loop.watch(ours, seen)
        loop.watch(other, other_seen)
        loop.forget(ours)
        loop.forget(ours)  # twice is once
        theirs.send(b"x")
        other_peer.send(b"x")
        await other_seen.wait()
        loop.forget(other)
    assert seen.masks == []


async def test_calls_of_other_threads_are_made_in_their_order_and_none_is_missed():
    loop, made, done = current_loop(), [], trio.Event()
    each = 2000

    def ask(name):
        for number in range(each):
            assert loop.call_soon(made.append, (name, number))
        loop.call_soon(ended)

    def ended():
        nonlocal left
        left -= 1
        if not left:
            done.set()

    left = 4
    threads = [threading.Thread(target=ask, args=(name,)) for name in range(4)]
    for thread in threads:
        thread.start()
    with trio.fail_after(30):
        await done.wait()
    for thread in threads:
        thread.join()
    for name in range(4):
        assert [number for who, number in made if who == name] == list(range(each))


async def test_a_single_call_from_a_thread_wakes_a_loop_at_rest():
    loop = current_loop()
    for _ in range(50):
        done = trio.Event()
        await trio.testing.wait_all_tasks_blocked()
        await trio.to_thread.run_sync(loop.call_soon, done.set)
        with trio.fail_after(5):
            await done.wait()


async def test_a_call_that_always_asks_for_another_lets_tasks_run():
    loop, asking = current_loop(), True

    def again():
        if asking:
            loop.call_soon(again)

    again()
    with trio.fail_after(5):
        for _ in range(5):
            await trio.sleep(0.001)
    asking = False


async def test_a_socket_that_is_always_ready_lets_tasks_run(pair):
    ours, _ = pair
    loop, seen = current_loop(), Seen()
    loop.watch(ours, seen)
    loop.change(ours, WRITABLE)
    with trio.fail_after(5):
        for _ in range(5):
            await trio.sleep(0.001)
    assert seen.masks
    loop.forget(ours)


def test_a_call_after_the_end_is_refused():
    loops = []

    async def run():
        loops.append(current_loop())
        await trio.lowlevel.checkpoint()

    trio.run(run)
    assert not loops[0].call_soon(print)
