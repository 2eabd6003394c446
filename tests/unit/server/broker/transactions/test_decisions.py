"""Decisions are noted in batches and known until their note can be read."""

from types import SimpleNamespace

import pytest

from pyritemq.server.broker.transactions import decisions as module
from pyritemq.server.broker.transactions.decisions import Decisions, Standing
from pyritemq.storage.messages import PutResult, PutStatus


class Bench:
    """A send lane that does its work when told to."""

    def __init__(self):
        self.ms = 100_000
        self.config = SimpleNamespace(
            transaction_op_msg_max_size=12, transaction_op_batch_interval=3000
        )
        self.open = True
        self.lane = []
        self.notes = []
        self.decisions = Decisions(self.config, self.put, make_note=list, now_ms=lambda: self.ms)

    def put(self, notes, done):
        if self.open:
            self.lane.append((notes, done))
        return self.open

    def work(self, status=PutStatus.PUT_OK):
        while self.lane:
            notes, done = self.lane.pop(0)
            if status is PutStatus.PUT_OK:
                self.notes += notes
            done([PutResult(status, 0, 0, 0, 0)] * len(notes))


@pytest.fixture
def bench():
    bench = Bench()
    bench.decisions.decide([0])  # the first note goes at once; the interval counts from here
    bench.work()
    bench.notes.clear()
    return bench


def test_decisions_wait_until_the_interval_has_passed(bench):
    bench.decisions.decide([1])
    assert bench.lane == []
    bench.ms += 3000
    bench.decisions.decide([2])
    bench.work()
    assert bench.notes == [[1, 2]]


def test_decisions_are_noted_as_soon_as_a_note_is_full(bench):
    bench.decisions.decide([101, 102, 103])
    assert bench.lane == []
    bench.decisions.decide([104])
    bench.work()
    assert bench.notes == [[101, 102, 103], [104]]


def test_a_half_is_known_from_the_beginning_until_its_note_is_published(bench):
    standing = bench.decisions.standing
    assert bench.decisions.begin(1)
    assert standing(1) is Standing.UNDER_WAY
    bench.decisions.decide([1])
    assert standing(1) is Standing.DECIDED
    bench.decisions.write()
    assert standing(1) is Standing.DECIDED
    bench.work()
    assert standing(1) is Standing.OPEN


def test_a_second_decision_does_not_begin(bench):
    assert bench.decisions.begin(1)
    assert not bench.decisions.begin(1)
    bench.decisions.decide([1])
    assert not bench.decisions.begin(1)


def test_an_abandoned_decision_can_begin_again(bench):
    bench.decisions.begin(1)
    bench.decisions.abandon(1)
    assert bench.decisions.standing(1) is Standing.OPEN
    assert bench.decisions.begin(1)


def test_a_refused_note_is_written_again_and_not_with_each_new_decision(bench):
    bench.decisions.decide([1])
    bench.decisions.write()
    bench.work(PutStatus.SERVICE_NOT_AVAILABLE)
    bench.ms += 9000
    bench.decisions.decide([2])
    assert bench.lane == []
    assert bench.decisions.standing(1) is Standing.DECIDED
    bench.decisions.write()
    bench.work()
    assert bench.notes == [[1, 2]]
    assert bench.decisions.standing(1) is Standing.OPEN


def test_what_still_waits_at_a_stop_is_noted_then(bench):
    bench.decisions.decide([1])
    bench.open = False
    bench.decisions.write()
    kept = []

    def put_batch(notes):
        kept.extend(notes)
        return [PutResult(PutStatus.PUT_OK, 0, 0, 0, 0)] * len(notes)

    bench.decisions.close(put_batch)
    bench.decisions.close(put_batch)
    assert kept == [[1]]


def test_a_store_that_takes_no_notes_costs_bounded_memory(bench, monkeypatch):
    monkeypatch.setattr(module, "WAITING_MAX", 2)
    bench.open = False
    bench.decisions.decide([1, 2, 3])
    known = [bench.decisions.standing(offset) for offset in (1, 2, 3)]
    assert known == [Standing.DECIDED, Standing.DECIDED, Standing.OPEN]
