"""The timer files' fast paths equal their declarations, and a log cut anywhere keeps a prefix."""

import tempfile
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st
from unit.storage.kit import MemoryDisk

from pyritemq.storage.disk import RealDisk
from pyritemq.storage.layouts import (
    TimerCheckpointFile,
    TimerLogBlank,
    TimerLogUnit,
    TimerSlot,
)
from pyritemq.storage.timers.checkpoint import (
    TimerCheckpoint,
    load_timer_checkpoint,
    save_timer_checkpoint,
)
from pyritemq.storage.timers.log import BLANK, BLANK_MAGIC, UNIT, TimerLog, TimerUnit
from pyritemq.storage.timers.wheel import NOWHERE, SLOT, Slot, TimerWheel

I32 = st.integers(-(1 << 31), (1 << 31) - 1)
I64 = st.integers(-(1 << 63), (1 << 63) - 1)
UNITS_A_FILE = 4
FILE_SIZE = UNITS_A_FILE * UNIT.size + BLANK.size + 7


@given(st.tuples(I64, I64, I64, I32, I32))
def test_a_slot_is_packed_as_declared(fields):
    names = ["time", "first_pos", "last_pos", "num", "magic"]
    assert SLOT.pack(*fields) == TimerSlot.build(dict(zip(names, fields, strict=True)))


@given(st.tuples(I32, I64, I32, I64, I32, I64, I32, I32, I64))
def test_a_unit_is_packed_as_declared(fields):
    unit = TimerUnit(*fields)
    assert UNIT.pack(*unit) == TimerLogUnit.build(unit._asdict())


@given(I32)
def test_a_blank_is_packed_as_declared(size):
    assert BLANK.pack(size, 0, BLANK_MAGIC) == TimerLogBlank.build({"size": size})


@given(st.tuples(*[I64] * 7))
def test_the_checkpoint_is_written_as_declared_and_read_back(fields):
    checkpoint = TimerCheckpoint(*fields)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "config" / "timercheck"
        save_timer_checkpoint(RealDisk(), path, checkpoint)
        declared = TimerCheckpointFile.parse(path.read_bytes())
        assert [declared[name] for name in TimerCheckpoint.__slots__] == list(fields)
        assert load_timer_checkpoint(RealDisk(), path) == checkpoint


def append(log, number, prev_pos=-1):
    return log.append(
        prev_pos=prev_pos,
        magic=1,
        enqueue_ms=1000 * number,
        delay_ms=5000,
        phy_offset=number,
        phy_size=100,
        topic_hash=7,
    )


@given(count=st.integers(0, 14), cut=st.integers(0, 14), per_write=st.integers(1, 5))
def test_a_log_that_lost_its_end_keeps_what_is_before_and_goes_on(count, cut, per_write):
    cut = min(cut, count)
    with tempfile.TemporaryDirectory() as folder:
        log = TimerLog(RealDisk(), Path(folder), file_size=FILE_SIZE)
        log.load()
        assert list(log.recover(0)) == []
        places = []
        for number in range(count):
            places.append(append(log, number))
            if number % per_write == 0:
                log.write()
        log.write()
        assert [log.read(pos).phy_offset for pos in places] == list(range(count))
        if cut < count:
            pos = places[cut]
            with (Path(folder) / f"{pos // FILE_SIZE * FILE_SIZE:020d}").open("r+b") as file:
                file.seek(pos % FILE_SIZE)
                file.write(bytes(4))
        log = TimerLog(RealDisk(), Path(folder), file_size=FILE_SIZE)
        log.load()
        assert list(log.recover(0)) == [
            (pos, 1000 * number + 5000, number) for number, pos in enumerate(places[:cut])
        ]
        again = append(log, 99)
        log.write()
        assert again == (places[cut] if cut < count else again)
        assert log.read(again).phy_offset == 99


def revise_one_by_one(wheel, found):
    """What revising means: each unit in turn becomes the last of its slot."""
    for time_ms, pos in found:
        slot = wheel.slot(time_ms)
        if slot.last_pos == NOWHERE:
            wheel.put(Slot(time_ms, pos, pos))
        else:
            wheel.put(slot._replace(last_pos=pos))


@given(
    st.lists(st.tuples(st.integers(0, 19_999), st.integers(0, 30)), max_size=12),
    st.lists(st.tuples(st.integers(0, 19_999), st.integers(0, 50)), max_size=30),
)
def test_revising_at_once_is_revising_one_by_one(known, found):
    found = [(60_000 + time_ms, UNIT.size * number) for time_ms, number in found]
    wheels = []
    for revise in (revise_one_by_one, TimerWheel.revise):
        disk = MemoryDisk()
        wheel = TimerWheel(disk, Path("timerwheel"), precision_ms=1000, slots_total=10)
        for time_ms, number in known:
            wheel.put(Slot(60_000 + time_ms, 0, UNIT.size * number, number))
        revise(wheel, found)
        wheels.append(list(wheel.slots_from(60_000)))
    assert wheels[0] == wheels[1]
