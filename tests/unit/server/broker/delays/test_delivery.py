"""Delayed messages are delivered when they are due: on a clock that jumps, with a real store."""

import logging
import shutil

import pytest
import trio

from pyritemq.protocol.record import decode_records, encode_properties
from pyritemq.server.broker.delays import delivery
from pyritemq.server.broker.delays.delivery import DelayedDelivery
from pyritemq.server.broker.delays.offsets import DelayOffsetTable
from pyritemq.server.broker.delays.rewriting import delay
from pyritemq.storage.config import StoreConfig
from pyritemq.storage.message_store import MessageStore
from pyritemq.storage.messages import MessageToStore, PutResult, PutStatus
from pyritemq.storage.tables import JsonTable

LEVELS = "1s 5s 1m"
LEVELS_MS = (1_000, 5_000, 60_000)
LATE_MS = 100


class Clock:
    """Wall time that goes with trio's, and may be set."""

    def __init__(self):
        self.base_ms = 1_795_000_000_000

    def now_ms(self):
        return self.base_ms + round(trio.current_time() * 1000)


async def inline(function, level):
    """A thread that takes no time."""
    await trio.lowlevel.checkpoint()
    return function(level)


class Bench:
    """A store, the levels on it and a send lane that is this thread."""

    def __init__(self, root):
        self.clock = Clock()
        self.root = root
        self.refuse = 0
        self.puts = []
        self.open()

    def open(self):
        config = StoreConfig(
            root=self.root,
            commit_log_file_size=1 << 20,
            consume_queue_file_units=100,
            message_delay_level=LEVELS,
        )
        self.store = MessageStore.open(config, now_ms=self.clock.now_ms)
        self.offsets = DelayOffsetTable(
            JsonTable(self.root / "config" / "delayOffset.json"),
            now_ms=self.clock.now_ms,
            flush_store=self.store.flush,
            version_step=200,
        )
        self.offsets.load()
        self.delivery = DelayedDelivery(
            self.store,
            self.offsets,
            self.put,
            levels_ms=LEVELS_MS,
            now_ms=self.clock.now_ms,
            in_thread=inline,
        )

    def put(self, messages, done):
        self.puts.append(len(messages))
        if self.refuse:
            self.refuse -= 1
            done([PutResult(PutStatus.SERVICE_NOT_AVAILABLE, 0, 0, 0, 0)] * len(messages))
        else:
            done(self.store.put_batch(messages))
        return True

    def send(self, body, level, *, topic=b"Topic", count=1):
        messages = []
        for index in range(count):
            text = body if count == 1 else b"%s%d" % (body, index)
            properties = encode_properties({"DELAY": str(level), "KEYS": "k"})
            messages.append(MessageToStore(topic, 0, text, properties))
            assert delay(messages[-1], level_max=len(LEVELS_MS))
        assert {r.status for r in self.store.put_batch(messages)} == {PutStatus.PUT_OK}

    def delivered(self, topic="Topic"):
        records, offset = [], 0
        while slices := (found := self.store.get(topic, 0, offset, count_max=32)).slices:
            for piece in slices:
                records += decode_records(piece)
            offset = found.next_begin_offset
        return records

    def bodies(self):
        return [record.body for record in self.delivered()]


@pytest.fixture
async def bench(tmp_path):
    bench = Bench(tmp_path / "store")
    yield bench
    bench.store.close()


@pytest.fixture
async def running(bench, nursery):
    nursery.start_soon(bench.delivery.run)
    return bench


async def test_each_level_delivers_within_a_tenth_of_a_second_of_its_time(autojump_clock, running):
    for level in (1, 2, 3):
        running.send(b"level %d" % level, level)
    await trio.sleep(70)
    for record, wanted in zip(running.delivered(), LEVELS_MS, strict=True):
        late_ms = record.store_timestamp - running.clock.base_ms - wanted
        assert 0 <= late_ms <= LATE_MS, record.body


async def test_nothing_comes_before_its_time(autojump_clock, running):
    running.send(b"x", 2)
    await trio.sleep(4.99)
    assert running.bodies() == []


async def test_order_is_kept_within_a_level_over_many_batches_and_files(autojump_clock, running):
    count = 2 * delivery.BATCH_COUNT_MAX + 7
    running.send(b"m", 1, count=count)
    await trio.sleep(1.2)
    assert running.bodies() == [b"m%d" % index for index in range(count)]


async def test_a_batch_is_bounded_in_count_and_bytes(autojump_clock, running, monkeypatch):
    monkeypatch.setattr(delivery, "BATCH_COUNT_MAX", 10)
    running.send(b"m", 1, count=25)
    await trio.sleep(1.2)
    assert running.puts == [10, 10, 5]
    monkeypatch.setattr(delivery, "BATCH_BYTES_MAX", 1)
    running.send(b"n", 1, count=3)
    await trio.sleep(1.2)
    assert running.puts[3:] == [1, 1, 1]


async def test_a_level_that_fails_does_not_hold_up_the_others(autojump_clock, running):
    running.refuse = 1
    running.send(b"first", 1)
    await trio.sleep(1.05)
    assert running.bodies() == []
    running.send(b"second", 2)
    await trio.sleep(6)
    assert running.bodies() == [b"first", b"second"]


async def test_a_refused_message_is_tried_again_from_where_it_stopped(
    autojump_clock, running, caplog
):
    caplog.set_level(logging.WARNING)
    put_batch = running.store.put_batch

    def half(messages):
        running.store.put_batch = put_batch
        results = put_batch(messages[:1])
        return results + [PutResult(PutStatus.OS_PAGE_CACHE_BUSY, 0, 0, 0, 0)] * 2

    running.send(b"m", 1, count=3)
    running.store.put_batch = half
    await trio.sleep(1.5)
    assert running.bodies() == [b"m0", b"m1", b"m2"]
    assert [r.message for r in caplog.records] == [
        "delayed messages held up level=1",
        "delayed messages delivered again level=1",
    ]


async def test_a_restart_goes_on_where_it_stopped(autojump_clock, bench):
    async with trio.open_nursery() as nursery:
        nursery.start_soon(bench.delivery.run)
        bench.send(b"before", 1)
        bench.send(b"after", 2)
        await trio.sleep(1.2)
        assert bench.bodies() == [b"before"]
        nursery.cancel_scope.cancel()
    bench.offsets.persist()
    bench.store.close()
    await trio.sleep(60)
    bench.open()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(bench.delivery.run)
        await trio.sleep(0.1)
        nursery.cancel_scope.cancel()
    assert bench.bodies() == [b"before", b"after"]


async def test_a_crash_delivers_again_only_what_was_not_yet_saved(autojump_clock, bench):
    async with trio.open_nursery() as nursery:
        nursery.start_soon(bench.delivery.run)
        bench.send(b"saved", 1)
        await trio.sleep(1.2)
        bench.offsets.persist()
        bench.send(b"unsaved", 1)
        await trio.sleep(1.2)
        nursery.cancel_scope.cancel()
    bench.store.close()
    bench.open()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(bench.delivery.run)
        await trio.sleep(0.5)
        nursery.cancel_scope.cancel()
    assert bench.bodies() == [b"saved", b"unsaved", b"unsaved"]


async def test_a_clock_set_forward_delivers_at_the_next_tick(autojump_clock, running):
    running.send(b"x", 3)
    await trio.sleep(1)
    running.clock.base_ms += 3_600_000
    await trio.sleep(0.2)
    assert running.bodies() == [b"x"]


async def test_a_clock_set_back_does_not_make_messages_wait_longer(autojump_clock, running):
    """A time of delivery further away than the level's delay is wrong: Java delivers at once."""
    running.send(b"x", 3)
    await trio.sleep(1)
    running.clock.base_ms -= 3_600_000
    await trio.sleep(0.2)
    assert running.bodies() == [b"x"]


async def test_times_of_delivery_are_the_same_after_recovery_from_the_commit_log(
    autojump_clock, bench
):
    def units():
        queues = [bench.store.queues.find(b"SCHEDULE_TOPIC_XXXX", level) for level in range(3)]
        return [[queue.unit(offset) for offset in range(queue.max_offset)] for queue in queues]

    for level in (1, 2, 3):
        bench.send(b"m", level, count=3)
        await trio.sleep(0.7)
    before = units()
    times = [unit[2] - bench.clock.base_ms for unit in before[2]]
    assert times == [1_400 + LEVELS_MS[2]] * 3
    bench.store.close()
    shutil.rmtree(bench.root / "consumequeue")
    (bench.root / "abort").touch()
    bench.open()
    assert units() == before


async def test_a_small_step_back_delays_by_no_more_than_the_step(autojump_clock, running):
    running.send(b"x", 3)
    await trio.sleep(10)
    running.clock.base_ms -= 2_000
    await trio.sleep(50.5)
    assert running.bodies() == []
    await trio.sleep(2)
    assert running.bodies() == [b"x"]


async def test_an_offset_outside_the_queue_is_corrected(autojump_clock, bench, nursery, caplog):
    bench.offsets.move(1, 1_000)
    bench.send(b"lost", 1)
    nursery.start_soon(bench.delivery.run)
    await trio.sleep(2)
    assert bench.offsets.get(1) == 1
    assert "delay offset corrected level=1 from=1000 to=1" in caplog.text
    bench.send(b"next", 1)
    await trio.sleep(2)
    assert bench.bodies() == [b"next"]


async def test_a_record_that_belongs_nowhere_is_passed_over(autojump_clock, running, caplog):
    broken = MessageToStore(
        b"SCHEDULE_TOPIC_XXXX", 0, b"?", encode_properties({"DELAY": "1"}), tags_code=None
    )
    running.store.put_batch([broken, broken])
    running.send(b"good", 1)
    await trio.sleep(1.2)
    assert running.bodies() == [b"good"]
    assert running.offsets.get(1) == 3
    assert caplog.text.count("delayed message dropped") == 2


async def test_only_broken_records_move_the_offset_too(autojump_clock, running):
    broken = MessageToStore(
        b"SCHEDULE_TOPIC_XXXX", 0, b"?", encode_properties({"DELAY": "1"}), tags_code=None
    )
    running.store.put_batch([broken] * 3)
    await trio.sleep(1.2)
    assert running.offsets.get(1) == 3


async def test_an_unreadable_store_is_tried_again_later(
    autojump_clock, running, monkeypatch, caplog
):
    running.send(b"x", 1)
    await trio.sleep(0.5)

    def broken(phy_offset):
        raise OSError("no disk")

    with monkeypatch.context() as patch:
        patch.setattr(running.store, "record_at", broken)
        await trio.sleep(1)
    assert "delayed messages not readable level=1" in caplog.text
    assert running.bodies() == []
    await trio.sleep(delivery.FAILURE_SECONDS)
    assert running.bodies() == [b"x"]


async def test_a_closed_lane_loses_nothing(autojump_clock, running):
    running.send(b"x", 1)
    put, running.delivery._put = running.delivery._put, lambda messages, done: False
    await trio.sleep(2)
    assert running.offsets.get(1) == 0
    running.delivery._put = put
    await trio.sleep(0.3)
    assert running.bodies() == [b"x"]
