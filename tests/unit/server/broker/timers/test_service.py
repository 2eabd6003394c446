"""Timers on a clock that jumps, with a real store: in time and in order, whatever happens."""

import os

import pytest
import trio
from unit.storage.kit import kill

from pyritemq.compat.broker_conf import BrokerConfig
from pyritemq.compat.java_hash import java_string_hash
from pyritemq.protocol.codes import ResponseCode
from pyritemq.protocol.record import decode_properties, decode_records, encode_properties
from pyritemq.server.broker.timers import engine
from pyritemq.server.broker.timers.rewriting import RecallHandle, recall_handle
from pyritemq.server.broker.timers.service import TimerService, TimersOff, usable_precision_ms
from pyritemq.server.registry import RequestRefused
from pyritemq.storage.config import StoreConfig
from pyritemq.storage.message_store import MessageStore
from pyritemq.storage.messages import MessageToStore, PutResult, PutStatus

PRECISION_MS = 1000
LATE_MS = PRECISION_MS + 100
TIMER_TOPIC = "rmq_sys_wheel_timer"


class Clock:
    """Wall time that goes with trio's."""

    def __init__(self):
        self.base_ms = 1_795_000_000_000

    def now_ms(self):
        return self.base_ms + round(trio.current_time() * 1000)


async def inline(function):
    """A thread that takes no time."""
    await trio.lowlevel.checkpoint()
    return function()


class Bench:
    """A store, timers on it and a send lane that is this thread."""

    def __init__(self, root, **properties):
        self.clock = Clock()
        self.root = root
        self.refuse = 0
        self.puts = []
        self.properties = {"mappedFileSizeTimerLog": "5000"} | properties
        self.open()

    def open(self):
        settings = {"brokerName": "broker-a", "storePathRootDir": str(self.root)}
        self.config, _ = BrokerConfig.from_properties(settings | self.properties)
        store_config = StoreConfig(
            root=self.root, commit_log_file_size=1 << 22, consume_queue_file_units=100
        )
        self.store = MessageStore.open(store_config, now_ms=self.clock.now_ms)
        self.timers = TimerService(
            self.config, self.store, put=self.put, now_ms=self.clock.now_ms, in_thread=inline
        )

    def put(self, messages, done):
        self.puts.append(len(messages))
        if self.refuse:
            self.refuse -= 1
            done([PutResult(PutStatus.SERVICE_NOT_AVAILABLE, 0, 0, 0, 0)] * len(messages))
        else:
            done(self.store.put_batch(messages))
        return True

    def send(self, *bodies, key=None, **properties):
        messages = []
        for body in bodies:
            text = {"UNIQ_KEY": key or body.decode(), "TAGS": "A"} | properties
            messages.append(MessageToStore(b"Topic", 0, body, encode_properties(text)))
            self.timers.hold(messages[-1])
        assert {r.status for r in self.store.put_batch(messages)} == {PutStatus.PUT_OK}
        return messages[-1]

    def recall(self, message):
        handle = RecallHandle.decode(recall_handle(message, "broker-a"))
        self.send(
            b"0",
            key=handle.message_id,
            TIMER_DEL_UNIQKEY=handle.message_id,
            TIMER_DELIVER_MS=handle.timestamp,
        )

    def delivered(self, topic="Topic"):
        records, offset = [], 0
        while slices := (found := self.store.get(topic, 0, offset, count_max=32)).slices:
            for piece in slices:
                records += decode_records(piece)
            offset = found.next_begin_offset
        return records

    def bodies(self):
        return [record.body for record in self.delivered()]

    def counted(self):
        return {name: count for name, (count, _) in self.timers.metrics._counts.items()}


@pytest.fixture
async def bench(tmp_path):
    bench = Bench(tmp_path / "store")
    yield bench
    bench.store.close()


@pytest.fixture
async def running(bench, nursery):
    nursery.start_soon(bench.timers.run)
    return bench


async def test_each_message_comes_within_its_slot(autojump_clock, running):
    start_ms = running.clock.now_ms()
    wanted = {b"c": 30_700, b"a": 1_000, b"b": 5_500}
    for body, delay_ms in wanted.items():
        running.send(body, TIMER_DELAY_MS=str(delay_ms))
    await trio.sleep(40)
    assert running.bodies() == [b"a", b"b", b"c"]
    for record in running.delivered():
        late_ms = record.store_timestamp - start_ms - wanted[record.body]
        assert 0 <= late_ms <= LATE_MS, record.body
    assert running.counted() == {"Topic": 0}


async def test_a_delivered_message_tells_its_story_as_javas_does(autojump_clock, running):
    out_ms = running.clock.now_ms() // 1000 * 1000 + 4000
    running.send(b"x", TIMER_DELIVER_MS=str(out_ms + 500), KEYS="k")
    await trio.sleep(10)
    [record] = running.delivered()
    properties = decode_properties(record.properties)
    assert int(properties.pop("TIMER_ENQUEUE_MS")) <= out_ms - 3000
    assert int(properties.pop("TIMER_DEQUEUE_MS")) == record.store_timestamp
    assert properties == {
        "UNIQ_KEY": "x",
        "TAGS": "A",
        "TIMER_DELIVER_MS": str(out_ms + 500),
        "KEYS": "k",
        "TIMER_OUT_MS": str(out_ms),
        "REAL_TOPIC": "Topic",
        "REAL_QID": "0",
    }
    unit = running.timers._files.log.read(0)
    assert (unit.magic, unit.phy_offset, unit.due_ms) == (1, 0, out_ms)
    assert unit.topic_hash == java_string_hash("Topic")


async def test_a_slot_keeps_the_order_of_its_sends_over_many_batches(
    autojump_clock, running, monkeypatch
):
    monkeypatch.setattr(engine, "BATCH_COUNT_MAX", 7)
    sent = [b"m%d" % number for number in range(200)]
    running.send(*sent, TIMER_DELAY_SEC="3")
    await trio.sleep(5)
    assert running.bodies() == sent
    assert max(running.puts) == 7


async def test_a_large_slot_is_delivered_in_batches_of_bytes(autojump_clock, running, monkeypatch):
    monkeypatch.setattr(engine, "BATCH_BYTES_MAX", 1000)
    running.send(*[b"%0400d" % number for number in range(9)], key="k", TIMER_DELAY_SEC="3")
    await trio.sleep(5)
    assert len(running.bodies()) == 9
    assert max(running.puts) <= 2


async def test_a_message_that_reaches_the_wheel_too_late_is_delivered_at_once(
    autojump_clock, bench, nursery
):
    bench.send(b"late", TIMER_DELAY_SEC="2")
    await trio.sleep(60)
    nursery.start_soon(bench.timers.run)
    await trio.sleep(1)
    [record] = bench.delivered()
    assert decode_properties(record.properties)["TIMER_ENQUEUE_MS"] == str((1 << 63) - 1)


async def test_a_recalled_message_never_comes(autojump_clock, running):
    first, second = (running.send(body, TIMER_DELAY_SEC="5") for body in (b"1", b"2"))
    await trio.sleep(2)
    running.recall(first)
    await trio.sleep(8)
    assert running.bodies() == [b"2"]
    assert running.counted() == {"Topic": 0}
    assert second.topic == TIMER_TOPIC.encode()


async def test_a_message_further_away_than_the_window_goes_round(autojump_clock, tmp_path, nursery):
    bench = Bench(tmp_path / "store", timerRollWindowSlot="10")
    nursery.start_soon(bench.timers.run)
    start_ms = bench.clock.now_ms()
    bench.send(b"far", TIMER_DELAY_SEC="35")
    await trio.sleep(34)
    assert bench.bodies() == []
    await trio.sleep(4)
    [record] = bench.delivered()
    assert 35_000 <= record.store_timestamp - start_ms <= 35_000 + LATE_MS
    rounds = int(decode_properties(record.properties)["TIMER_ROLL_TIMES"])
    assert rounds == len(bench.delivered(TIMER_TOPIC)) - 1 >= 3
    assert bench.counted() == {"Topic": 0}
    bench.store.close()


async def test_what_cannot_be_stored_is_tried_until_it_is(autojump_clock, running):
    running.send(b"x", TIMER_DELAY_SEC="2")
    running.refuse = 5
    await trio.sleep(4)
    assert running.bodies() == []
    await trio.sleep(4)
    assert running.bodies() == [b"x"]


async def test_a_restart_delivers_the_rest_and_nothing_twice(autojump_clock, bench):
    bench.send(b"early", TIMER_DELAY_SEC="2")
    bench.send(b"late", TIMER_DELAY_SEC="10")
    with trio.move_on_after(6):
        await bench.timers.run()
    bench.timers.close()
    bench.store.close()
    bench.open()
    with trio.move_on_after(20):
        await bench.timers.run()
    assert bench.bodies() == [b"early", b"late"]


async def test_a_clock_set_back_over_a_restart_holds_no_message_for_ever(autojump_clock, bench):
    bench.send(b"before", TIMER_DELAY_SEC="2")
    with trio.move_on_after(6):
        await bench.timers.run()
    bench.timers.close()
    bench.store.close()
    bench.clock.base_ms -= 60_000
    bench.open()
    bench.send(b"after", TIMER_DELAY_SEC="5")
    with trio.move_on_after(20):
        await bench.timers.run()
    assert bench.bodies() == [b"before", b"after"]


@pytest.mark.parametrize("saves", [True, False])
async def test_a_kill_loses_nothing_and_puts_nothing_into_the_wheel_twice(
    autojump_clock, bench, saves
):
    sent = [b"m%d" % number for number in range(150)]
    bench.send(*sent, TIMER_DELAY_SEC="30")
    with trio.move_on_after(3):
        await bench.timers.run()
    if saves:
        bench.timers.persist()
    kill(bench.store)
    bench.open()
    bench.send(b"after", TIMER_DELAY_SEC="27")
    with trio.move_on_after(60):
        await bench.timers.run()
    assert sorted(bench.bodies()) == sorted([*sent, b"after"])


async def test_messages_of_weeks_ago_come_after_a_long_pause(autojump_clock, bench):
    bench.send(b"x", TIMER_DELAY_SEC="60")
    with trio.move_on_after(3):
        await bench.timers.run()
    bench.timers.close()
    bench.store.close()
    await trio.sleep(86_400 * 40)
    bench.open()
    with trio.move_on_after(3):
        await bench.timers.run()
    assert bench.bodies() == [b"x"]


async def test_pending_timers_take_no_memory(autojump_clock, running):
    """Only files grow: 52 bytes for each timer, 32 for each slot."""
    running.send(*[b"x"] * 3000, TIMER_DELAY_SEC="3600")
    await trio.sleep(5)
    state = vars(running.timers._engine)
    sizes = [len(value) for value in state.values() if hasattr(value, "__len__")]
    assert max(sizes, default=0) == 0
    assert running.timers.runtime()["timerCongestNum"] == "3000"
    assert running.timers._files.log.end >= 3000 * 52
    wheel = os.stat(running.root / "timerwheel")
    assert wheel.st_blocks * 512 <= 16384


async def test_an_idle_service_writes_nothing(autojump_clock, running):
    await trio.sleep(3)
    running.timers.persist()
    assert not (running.root / "config" / "timercheck").exists()


async def test_what_is_refused_has_javas_words(autojump_clock, tmp_path):
    bench = Bench(tmp_path / "store", timerMaxDelaySec="60")
    for properties in ({"TIMER_DELAY_SEC": "61"}, {"TIMER_DELAY_SEC": "soon"}):
        with pytest.raises(RequestRefused) as refusal:
            bench.send(b"x", **properties)
        assert refusal.value.code == ResponseCode.MESSAGE_ILLEGAL
        assert refusal.value.remark == (
            "timer message illegal, the delay time should not be bigger than the max delay "
            "60000ms; or if set del msg, the delay time should be bigger than the current time"
        )
    bench.store.close()


async def test_a_full_slot_takes_no_more(autojump_clock, tmp_path):
    bench = Bench(tmp_path / "store", timerCongestNumEachSlot="2")
    when = str(bench.clock.now_ms() + 30_000)
    for _ in range(4):
        bench.send(b"x", TIMER_DELIVER_MS=when)
    with trio.move_on_after(0.2):
        await bench.timers.run()
    with pytest.raises(RequestRefused) as refusal:
        bench.send(b"x", TIMER_DELIVER_MS=when)
    assert refusal.value.remark == (
        "timer message is under flow control, max num limit is 4 or the current value is greater "
        "than 2 and less than 4, trigger random flow control"
    )
    bench.store.close()


def test_without_a_wheel_timers_are_refused():
    message = MessageToStore(b"T", 0, b"x", encode_properties({"TIMER_DELAY_SEC": "1"}))
    with pytest.raises(RequestRefused) as refusal:
        TimersOff().hold(message)
    assert refusal.value.code == ResponseCode.SYSTEM_ERROR
    assert refusal.value.remark == (
        "accurate timer message is not enabled, timerWheelEnable is false"
    )


@pytest.mark.parametrize(
    ("asked", "used"), [(1, 100), (100, 100), (250, 200), (999, 500), (1000, 1000), (5000, 1000)]
)
def test_the_precision_is_one_of_javas_four(asked, used):
    assert usable_precision_ms(asked) == used
