"""Leases on queues for ordered consumption."""

import pytest

from pyritemq.server.broker.state.queue_locks import LEASE_MS, MessageQueue, QueueLocks

Q0, Q1, Q2 = (MessageQueue("T", "broker-a", queue_id) for queue_id in range(3))


@pytest.fixture
def locks(clock):
    return QueueLocks(clock)


def test_first_client_gets_the_queue_and_the_next_does_not(locks):
    assert locks.lock_batch("g", [Q0, Q1], "c1") == [Q0, Q1]
    assert locks.lock_batch("g", [Q1, Q2], "c2") == [Q2]
    assert locks.holder("g", Q1) == "c1"


def test_groups_do_not_share_locks(locks):
    locks.lock_batch("g", [Q0], "c1")
    assert locks.lock_batch("h", [Q0], "c2") == [Q0]


def test_lease_ends_just_after_sixty_seconds_unless_renewed(locks, clock):
    locks.lock_batch("g", [Q0, Q1], "c1")
    clock.advance(30)
    locks.lock_batch("g", [Q1], "c1")
    clock.advance(30)
    assert locks.lock_batch("g", [Q0], "c2") == []
    clock.ms += 1
    assert locks.lock_batch("g", [Q0, Q1], "c2") == [Q0]
    assert locks.lock_batch("g", [Q0], "c1") == []


def test_only_the_holder_can_unlock(locks):
    locks.lock_batch("g", [Q0], "c1")
    locks.unlock_batch("g", [Q0, Q2], "c2")
    assert locks.holder("g", Q0) == "c1"
    locks.unlock_batch("g", [Q0], "c1")
    assert locks.holder("g", Q0) is None
    assert locks.lock_batch("g", [Q0], "c2") == [Q0]


def test_unlock_in_an_unknown_group_is_harmless(locks):
    locks.unlock_batch("nobody", [Q0], "c1")
    assert locks.is_all_expired("nobody")


def test_purge_forgets_ended_leases_and_keeps_valid_ones(locks, clock):
    locks.lock_batch("g", [Q0], "c1")
    locks.lock_batch("h", [Q0], "c1")
    clock.advance(LEASE_MS / 1000)
    locks.lock_batch("g", [Q1], "c1")
    clock.ms += 1
    locks.purge()
    assert locks.holder("g", Q1) == "c1"
    assert not locks.is_all_expired("g")
    assert locks._groups.keys() == {"g"}
    assert locks._groups["g"].keys() == {Q1}
