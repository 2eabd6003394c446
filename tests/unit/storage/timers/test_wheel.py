"""The timer wheel: slots found by time, over its end and around, in a file of Java's size."""

import pytest

from pyritemq.storage.disk import RealDisk
from pyritemq.storage.errors import StoreUnusableError
from pyritemq.storage.timers.wheel import NOWHERE, SLOT, SLOTS_TOTAL, Slot, TimerWheel

NOW_MS = 1_795_000_000_000
SMALL = 10  # slots ahead, so a wheel of 20


@pytest.fixture
def wheel(tmp_path):
    return TimerWheel(RealDisk(), tmp_path / "timerwheel", precision_ms=1000, slots_total=SMALL)


def at(second, pos=0, num=1):
    return Slot(NOW_MS + 1000 * second, pos, pos + 52, num)


def test_the_file_has_javas_size_and_takes_no_space(tmp_path):
    path = tmp_path / "timerwheel"
    wheel = TimerWheel(RealDisk(), path, precision_ms=1000)
    wheel.put(at(5))
    assert path.stat().st_size == 7 * 86_400 * 2 * 32
    assert path.stat().st_blocks * 512 <= 8192
    assert list(wheel.slots_from(NOW_MS)) == [at(5)]


def test_a_slot_is_found_by_any_time_within_it(wheel):
    wheel.put(at(3))
    assert wheel.slot(NOW_MS + 3999) == at(3)
    assert wheel.slot(NOW_MS + 4000).last_pos == NOWHERE


def test_a_slot_counts_only_for_its_own_time(wheel):
    wheel.put(at(3))
    assert wheel.slot(NOW_MS + 1000 * (3 + 2 * SMALL)).last_pos == NOWHERE
    wheel.put(at(3 + 2 * SMALL))
    assert wheel.slot(NOW_MS + 3000).last_pos == NOWHERE


def test_slots_come_by_time_around_the_end_of_the_file(wheel):
    first = 20 - NOW_MS // 1000 % 20 - 2  # two slots before the end of the file
    for second in (first + 3, first, first + 9):
        wheel.put(at(second))
    found = wheel.slots(NOW_MS + 1000 * first, NOW_MS + 1000 * (first + 9))
    assert list(found) == [at(first), at(first + 3)]


def test_revising_moves_the_last_position_and_keeps_the_rest(wheel):
    wheel.revise([(NOW_MS, 52), (NOW_MS + 1, 104)])
    assert wheel.slot(NOW_MS) == Slot(NOW_MS, 52, 104)
    wheel.put(Slot(NOW_MS, 0, 52, 2, 0))
    wheel.revise([(NOW_MS, 104)])
    assert wheel.slot(NOW_MS) == Slot(NOW_MS, 0, 104, 2)


def test_revising_leaves_a_slot_that_has_come_round_since(wheel):
    later = at(2 * SMALL)
    wheel.put(later)
    wheel.revise([(NOW_MS, 52)])
    assert wheel.slot(later.time_ms) == later
    wheel.revise([(NOW_MS, 52), (later.time_ms, 520)])
    assert wheel.slot(later.time_ms) == later._replace(last_pos=520)


def test_a_file_of_another_size_is_refused(tmp_path):
    path = tmp_path / "timerwheel"
    path.write_bytes(bytes(SLOT.size))
    with pytest.raises(StoreUnusableError, match="has 32 bytes, but must have 38707200"):
        TimerWheel(RealDisk(), path, precision_ms=1000, slots_total=SLOTS_TOTAL)
