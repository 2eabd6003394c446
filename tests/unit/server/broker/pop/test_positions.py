"""Offsets of popped queues: nothing is committed before what lies in front of it is stored."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyritemq.server.broker.pop.positions import PopPositions
from pyritemq.server.broker.state.offsets import ConsumerOffsetTable
from pyritemq.storage.tables import JsonTable

KEY = ("T", "G", 0)


@pytest.fixture
def offsets(tmp_path):
    return ConsumerOffsetTable(JsonTable(tmp_path / "offsets.json"), now_ms=lambda: 1)


@pytest.fixture
def positions(offsets):
    return PopPositions(offsets)


def take(positions, count, first=0):
    """One pop; returns where it began, and what it took."""
    claim = positions.claim(KEY, lambda: first)
    taken = positions.advance(claim, claim.offset + count)
    positions.release(claim)
    return claim.offset, taken


def test_pops_go_on_behind_each_other_before_anything_is_stored(positions, offsets):
    assert [take(positions, 10)[0] for _ in range(3)] == [0, 10, 20]
    assert offsets.query("G", "T", 0) == 0
    assert positions.next_offset(KEY) == 30


def test_a_gap_holds_up_the_commit(positions, offsets):
    taken = [take(positions, 10)[1] for _ in range(3)]
    positions.settle(taken[1])
    assert offsets.query("G", "T", 0) == 0
    positions.settle(taken[0])
    assert offsets.query("G", "T", 0) == 20
    positions.settle(taken[2])
    assert (offsets.query("G", "T", 0), positions.queue_count) == (30, 0)


def test_a_failure_takes_back_what_was_taken_after_it(positions, offsets):
    first, second, third = (take(positions, 10)[1] for _ in range(3))
    positions.settle(first)
    positions.fail(second)
    positions.settle(third)
    assert offsets.query("G", "T", 0) == 10
    assert take(positions, 10)[0] == 10


def test_a_pop_that_had_the_queue_during_a_failure_commits_nothing(positions, offsets):
    _, lost = take(positions, 10)
    claim = positions.claim(KEY, lambda: 0)
    positions.fail(lost)
    late = positions.advance(claim, 20)
    positions.release(claim)
    positions.settle(late)
    assert offsets.query("G", "T", 0) == 0
    assert take(positions, 10)[0] == 0


def test_one_pop_at_a_time_has_a_queue(positions):
    claim = positions.claim(KEY, lambda: 0)
    assert positions.claim(KEY, lambda: 0) is None
    positions.release(claim)
    assert positions.claim(KEY, lambda: 0) is not None


def test_a_reset_by_an_operator_is_not_overwritten(positions, offsets):
    _, taken = take(positions, 10)
    offsets.assign_reset("G", "T", 0, 3)
    positions.settle(taken)
    assert offsets.query("G", "T", 0) == 3


@given(st.lists(st.tuples(st.sampled_from(["take", "settle", "fail"]), st.integers(0, 9))))
def test_no_offset_is_ever_committed_past_what_is_not_stored(tmp_path_factory, steps):
    folder = tmp_path_factory.mktemp("offsets")
    offsets = ConsumerOffsetTable(JsonTable(folder / "offsets.json"), now_ms=lambda: 1)
    positions = PopPositions(offsets)
    under_way = []
    stored = set()
    for step, pick in steps:
        if step == "take":
            start, taken = take(positions, pick + 1)
            under_way.append((start, taken))
        elif under_way:
            start, taken = under_way.pop(pick % len(under_way))
            if step == "settle":
                stored.update(range(start, taken.end))
                positions.settle(taken)
            else:
                positions.fail(taken)
        assert stored >= set(range(max(offsets.query("G", "T", 0), 0)))
