"""Official consumers are killed while they work: what they had is done by others, in its order.

Left out of the test command, because a dead consumer's queues stay locked for a minute:

    python -m pytest -n 0 tests/crash/test_consumers.py -m java --consumers -s

PYRITEMQ_SERVER_UNDER_TEST=rocketmq runs them against the real RocketMQ 5.5.0.
"""

import os
import time
from collections import Counter

import orjson
import pytest

from crash.workers import Crew, make_topic, send_numbers, wait_for_count
from pyritemq.conformance.servers.cluster import CLUSTERS
from pyritemq.protocol.codes import RequestCode, ResponseCode

QUEUES = 4
EACH = 250
SECONDS = 240.0


@pytest.fixture
def cluster(tmp_path, request):
    if not request.config.getoption("--consumers", default=False):
        pytest.skip("takes minutes: --consumers")
    kind = os.environ.get("PYRITEMQ_SERVER_UNDER_TEST", "pyritemq")
    properties = {"timerWheelEnable": "true"}
    with CLUSTERS[kind](tmp_path / "servers", properties=properties) as running:
        yield running


def wait_for_all(crew, wanted):
    deadline = time.monotonic() + SECONDS
    while True:
        ended = {(e.queue_id, e.number) for e in crew.events() if e.what == "end"}
        if ended >= wanted:
            return
        assert time.monotonic() < deadline, f"{len(wanted - ended)} were never done"
        time.sleep(0.2)


def check_order(events, dead):
    """No message is begun before the one before it was done; one worker at a time has a queue."""
    done, busy = -1, None
    for event in events:
        if event.what == "end":
            done, busy = max(done, event.number), None
            continue
        assert event.number <= done + 1, f"{event} while only {done} was done"
        assert busy in (None, *dead), f"{event} while {busy} is at it"
        busy = event.worker


@pytest.mark.java
def test_strict_order_outlives_consumers_that_are_killed(tmp_path, cluster):
    connection = make_topic(cluster, "Ordered", QUEUES)
    crew = Crew(tmp_path, cluster, topic="Ordered", mode="orderly")
    try:
        workers = [crew.hire(pause_ms=40) for _ in range(QUEUES)]
        for worker in workers:
            worker.wait_for_line("started", timeout=SECONDS)
        for first in range(0, EACH, 50):
            for queue_id in range(QUEUES):
                send_numbers(connection, "Ordered", queue_id, range(first, first + 50))
        for worker in workers[:2]:
            wait_for_count(worker, 20)
        for worker in workers[:2]:
            worker.kill()
        crew.hire(pause_ms=5)
        wait_for_all(crew, {(q, number) for q in range(QUEUES) for number in range(EACH)})
        events = crew.events()
    finally:
        crew.close()
        connection.close()
    dead = {worker.name for worker in workers[:2]}
    assert dead & {event.worker for event in events}
    for queue_id in range(QUEUES):
        check_order([event for event in events if event.queue_id == queue_id], dead)
    begun = Counter((e.queue_id, e.number) for e in events if e.what == "begin")
    print(f"ordered: {sum(begun.values()) - len(begun)} of {len(begun)} were begun again")


@pytest.mark.java
@pytest.mark.parametrize("merge", ["false", "true"])
def test_more_popping_consumers_than_queues_lose_nothing_when_one_is_killed(
    tmp_path, cluster, merge
):
    """One queue, three consumers: each gets some of it, and what the dead one had comes back."""
    connection = make_topic(cluster, "Popped", 1)
    body = f"enablePopBufferMerge={merge}\n".encode()
    assert connection.call(RequestCode.UPDATE_BROKER_CONFIG, {}, body).code == ResponseCode.SUCCESS
    mode = {"topic": "Popped", "consumerGroup": "pop_crew", "mode": "POP", "popShareQueueNum": 8}
    group = b'{"groupName":"pop_crew"}'
    made = connection.call(RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, {}, group)
    assert made.code == ResponseCode.SUCCESS
    reply = connection.call(RequestCode.SET_MESSAGE_REQUEST_MODE, {}, orjson.dumps(mode))
    assert reply.code == ResponseCode.SUCCESS, reply.remark
    crew = Crew(tmp_path, cluster, topic="Popped", mode="pop")
    try:
        workers = [crew.hire(pause_ms=pause_ms) for pause_ms in (300, 50, 50)]
        for worker in workers:
            worker.wait_for_line("started", timeout=SECONDS)
        for first in range(0, 600, 100):
            send_numbers(connection, "Popped", 0, range(first, first + 100))
        for worker in workers:
            wait_for_count(worker, 5)
        workers[0].kill()
        deadline = time.monotonic() + SECONDS
        while len({e.number for e in crew.events() if e.what == "end"}) < 600:
            assert time.monotonic() < deadline
            time.sleep(0.2)
        events = crew.events()
    finally:
        crew.close()
        connection.close()
    shares = Counter(event.worker for event in events if event.what == "begin")
    begun = Counter(event.number for event in events if event.what == "begin")
    print(f"popped, merge={merge}: shares {dict(shares)}, {shares.total() - len(begun)} again")
    assert len(shares) == 3
