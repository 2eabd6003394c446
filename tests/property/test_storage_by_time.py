"""Look-up by time answers as Java's ConsumeQueue does, at every boundary."""

from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st
from unit.storage.kit import MemoryDisk, SetClock, message, open_store

ROOT = Path("/store")
T0 = 1_000_000


def store_with(gaps):
    """A queue whose messages were stored at T0 plus the running sum of the gaps."""
    clock = SetClock(T0)
    store = open_store(ROOT, clock, MemoryDisk(), consume_queue_file_units=7)
    times = []
    for gap in gaps:
        clock.ms += gap
        times.append(clock.ms)
        store.put_batch([message()])
    return store, times


@given(st.lists(st.integers(0, 3), min_size=1, max_size=40), st.integers(-3, 100))
@settings(max_examples=200, deadline=None)
def test_lower_is_the_first_not_before_and_upper_the_last_not_after(gaps, delta):
    store, times = store_with(gaps)
    timestamp = T0 + delta
    lower = next((offset for offset, ms in enumerate(times) if ms >= timestamp), len(times))
    upper = max((offset for offset, ms in enumerate(times) if ms <= timestamp), default=0)
    assert store.offset_by_time("T", 0, timestamp) == lower
    assert store.offset_by_time("T", 0, timestamp, "LOWER") == lower
    assert store.offset_by_time("T", 0, timestamp, "UPPER") == upper


def test_the_case_of_javas_own_comment():
    """t1 t1 t1 t3 t3: for t2 the lower boundary is the first t3 and the upper the last t1."""
    store, _ = store_with([1, 0, 0, 2, 0])
    assert store.offset_by_time("T", 0, T0 + 2, "LOWER") == 3
    assert store.offset_by_time("T", 0, T0 + 2, "UPPER") == 2


def test_a_queue_without_messages_answers_zero():
    store, _ = store_with([])
    assert store.offset_by_time("T", 0, T0) == 0


def test_an_unknown_boundary_means_lower_and_case_does_not_matter():
    store, _ = store_with([1, 0, 0, 2, 0])
    assert store.offset_by_time("T", 0, T0 + 2, "neither") == 3
    assert store.offset_by_time("T", 0, T0 + 2, "upper") == 2
