"""Producers are asked about open halves, and only about those: a real store, a clock that jumps."""

import pytest
import trio

from pyritemq.compat.broker_conf import BrokerConfig
from pyritemq.protocol.record import decode_properties, decode_record, decode_records
from pyritemq.protocol.record import encode_properties as text_of
from pyritemq.server.broker.state.channels import Client, ProducerTable
from pyritemq.server.broker.state.offsets import NOT_FOUND, ConsumerOffsetTable
from pyritemq.server.broker.state.topics import TopicTable
from pyritemq.server.broker.transactions.halves import prepare
from pyritemq.server.broker.transactions.service import TransactionService
from pyritemq.storage.config import StoreConfig
from pyritemq.storage.message_store import MessageStore
from pyritemq.storage.messages import MessageToStore, PutResult, PutStatus
from pyritemq.storage.tables import JsonTable

HALF = "RMQ_SYS_TRANS_HALF_TOPIC"
OP = "RMQ_SYS_TRANS_OP_HALF_TOPIC"
GIVEN_UP = "TRANS_CHECK_MAX_TIME_TOPIC"
GROUP = "CID_RMQ_SYS_TRANS"
HOST = b"\x7f\x00\x00\x01\x00\x00\x2a\x9f"
SETTINGS = {
    "transactionCheckInterval": "10000",
    "transactionTimeOut": "6000",
    "transactionCheckMax": "3",
    "transactionOpBatchInterval": "3000",
}


class Clock:
    """Wall time that goes with trio's."""

    def now_ms(self):
        return 1_795_000_000_000 + round(trio.current_time() * 1000)

    def monotonic_ns(self):
        return self.now_ms() * 1_000_000


class Producer:
    """Keeps the questions that it is asked."""

    remote_address = "127.0.0.1:50000"
    closed = False

    def __init__(self):
        self.asked = []

    def post(self, command):
        self.asked.append(command)

    def bodies(self):
        return [decode_record(command.body).body for command in self.asked]


class Bench:
    """A store with transactions, whose send lane is this thread."""

    def __init__(self, root):
        self.root = root
        self.clock = Clock()
        self.refusing = False
        self.producer = Producer()
        self.open()

    def open(self):
        now_ms = self.clock.now_ms
        properties = SETTINGS | {"storePathRootDir": str(self.root)}
        self.config, _ = BrokerConfig.from_properties(properties)
        store = StoreConfig(
            root=self.root, commit_log_file_size=1 << 20, consume_queue_file_units=100
        )
        self.store = MessageStore.open(store, now_ms=now_ms)
        tables = self.root / "config"
        self.offsets = ConsumerOffsetTable(JsonTable(tables / "offsets.json"), now_ms=now_ms)
        self.offsets.load()
        self.topics = TopicTable(self.config, JsonTable(tables / "topics.json"), now_ms=now_ms)
        self.producers = ProducerTable(self.clock)
        self.producers.register("G", Client(self.producer, "client", 0, 0))
        self.service = TransactionService(
            self, self.put, host=lambda: HOST, now_ms=now_ms, in_thread=inline
        )

    def restart(self):
        self.service.close()
        self.offsets.persist()
        self.store.close()
        self.open()

    def put(self, messages, done):
        if self.refusing:
            done([PutResult(PutStatus.SERVICE_NOT_AVAILABLE, 0, 0, 0, 0)] * len(messages))
        else:
            done(self.store.put_batch(messages))
        return True

    def send(self, body, **properties):
        """A half; returns its queue offset."""
        text = text_of({"PGROUP": "G", "UNIQ_KEY": "id", "TRAN_MSG": "true"} | properties)
        born = self.clock.now_ms()
        message = MessageToStore(b"Topic", 1, body, text, born_timestamp=born, flag=7)
        prepare(message)
        [result] = self.store.put_batch([message])
        return result.queue_offset

    def decide(self, offset):
        assert self.service.decisions.begin(offset)
        self.service.decisions.decide([offset])

    def records(self, topic):
        records, offset = [], 0
        while slices := (found := self.store.get(topic, 0, offset, count_max=32)).slices:
            for piece in slices:
                records += decode_records(piece)
            offset = found.next_begin_offset
        return records

    def reached(self, topic):
        return self.offsets.query(GROUP, topic, 0)


async def inline(function):
    """A thread that takes no time."""
    await trio.lowlevel.checkpoint()
    function()


@pytest.fixture
async def bench(tmp_path):
    bench = Bench(tmp_path / "store")
    yield bench
    bench.store.close()


@pytest.fixture
async def running(bench, nursery):
    nursery.start_soon(bench.service.run)
    await trio.sleep(0.5)
    return bench


async def test_an_open_half_is_asked_about_once_it_is_older_than_the_timeout(
    autojump_clock, running
):
    running.send(b"old")
    await trio.sleep(5)
    running.send(b"young")
    await trio.sleep(5)  # 10 s: the first round
    assert running.producer.bodies() == [b"old"]
    await trio.sleep(10)
    assert sorted(running.producer.bodies()) == [b"old", b"old", b"young"]


async def test_what_is_asked_about_is_put_back_with_its_count(autojump_clock, running):
    running.send(b"half", KEYS="k")
    await trio.sleep(10)
    first, copy = running.records(HALF)
    properties = decode_properties(copy.properties)
    assert properties["TRANSACTION_CHECK_TIMES"] == "1"
    assert properties["KEYS"] == "k"
    assert (copy.body, copy.flag, copy.born_timestamp) == (b"half", 7, first.born_timestamp)
    [command] = running.producer.asked
    assert command.ext_fields["tranStateTableOffset"] == str(copy.queue_offset)
    assert command.ext_fields["commitLogOffset"] == str(copy.phy_offset)
    shown = decode_record(command.body)
    assert (shown.topic, shown.queue_id) == ("Topic", 1)
    assert running.reached(HALF) == 1


async def test_decided_halves_are_passed_and_their_ops_with_them(autojump_clock, running):
    for body in (b"a", b"b", b"c"):
        running.decide(running.send(body))
    await trio.sleep(30)
    assert running.producer.asked == []
    assert running.reached(HALF) == 3
    ops = running.records(OP)
    assert "".join(op.body.decode() for op in ops) == "0,1,2,"
    assert running.reached(OP) == len(ops)


async def test_a_decision_that_is_not_yet_noted_counts(autojump_clock, running):
    offset = running.send(b"half")
    await trio.sleep(9)
    running.service.decisions.decide([1_000_000])  # takes the note that goes at once
    running.decide(offset)
    assert len(running.records(OP)) == 1
    await trio.sleep(1)
    assert running.reached(HALF) == 1
    assert running.producer.asked == []


async def test_a_round_waits_for_a_decision_under_way(autojump_clock, running):
    offset = running.send(b"half")
    running.service.decisions.begin(offset)
    await trio.sleep(20)
    assert running.producer.asked == []
    running.service.decisions.abandon(offset)
    await trio.sleep(10)
    assert running.producer.bodies() == [b"half"]


async def test_an_open_half_does_not_hold_up_those_behind_it(autojump_clock, running):
    running.send(b"open")
    for _ in range(50):
        running.decide(running.send(b"decided"))
    await trio.sleep(10)
    assert running.producer.bodies() == [b"open"]
    assert running.reached(HALF) == 51


async def test_a_half_that_nobody_decides_is_given_up_after_the_last_question(
    autojump_clock, running
):
    running.send(b"half")
    await trio.sleep(60)
    assert running.producer.bodies() == [b"half"] * 3
    [record] = running.records(GIVEN_UP)
    properties = decode_properties(record.properties)
    assert record.body == b"half"
    assert properties["TRANSACTION_CHECK_TIMES"] == "3"
    assert (properties["REAL_TOPIC"], properties["REAL_QID"]) == ("Topic", "1")
    topic = running.topics.get(GIVEN_UP)
    assert (topic.read_queue_nums, topic.write_queue_nums, topic.perm) == (1, 1, 6)


async def test_a_question_counts_although_nobody_is_there_to_hear_it(autojump_clock, running):
    running.producers.unregister("G", running.producer)
    running.send(b"half")
    await trio.sleep(60)
    assert running.producer.asked == []
    assert [record.body for record in running.records(GIVEN_UP)] == [b"half"]


async def test_a_half_older_than_the_files_are_kept_is_given_up_unasked(autojump_clock, running):
    running.config.file_reserved_time = 0
    running.send(b"half")
    await trio.sleep(10)
    assert running.producer.asked == []
    assert [record.body for record in running.records(GIVEN_UP)] == [b"half"]


async def test_an_immune_half_is_not_asked_about_before_its_time(autojump_clock, running):
    running.send(b"half", CHECK_IMMUNITY_TIME_IN_SECONDS="95")
    await trio.sleep(95)
    assert running.producer.asked == []
    await trio.sleep(10)
    assert running.producer.bodies() == [b"half"], "rounds that passed it are no questions"


async def test_a_decision_under_the_first_offset_reaches_an_immune_copy(autojump_clock, running):
    """Java drops the op, since the first offset has been passed, and asks about the copy."""
    offset = running.send(b"half", CHECK_IMMUNITY_TIME_IN_SECONDS="60")
    await trio.sleep(25)
    assert len(running.records(HALF)) == 3
    running.decide(offset)
    await trio.sleep(100)
    assert running.producer.asked == []
    assert running.records(GIVEN_UP) == []
    assert len(running.records(HALF)) == 3
    assert running.reached(OP) == 1


async def test_an_op_is_kept_while_the_immune_copy_that_it_decides_is_still_to_come(
    autojump_clock, running
):
    """The round stops at a young half in front of the copy, and must not let the op go."""
    offset = running.send(b"immune", CHECK_IMMUNITY_TIME_IN_SECONDS="60")
    await trio.sleep(9.4)
    running.send(b"young")
    await trio.sleep(1)  # the copy now lies behind it
    running.decide(offset)
    await trio.sleep(4)
    running.config.transaction_time_out = 1_000_000
    await trio.sleep(6)
    assert running.reached(HALF) == 1
    assert running.reached(OP) == NOT_FOUND
    running.config.transaction_time_out = 6000
    await trio.sleep(60)
    assert set(running.producer.bodies()) == {b"young"}


async def test_a_store_that_refuses_stops_the_round_and_loses_nothing(autojump_clock, running):
    running.send(b"half")
    running.refusing = True
    await trio.sleep(20)
    assert running.producer.asked == []
    assert len(running.records(HALF)) == 1
    running.refusing = False
    await trio.sleep(10)
    assert running.producer.bodies() == [b"half"]


async def test_a_restart_asks_about_no_decided_half(autojump_clock, bench):
    offset = bench.send(b"decided")
    bench.send(b"open")
    bench.service.decisions.decide([1_000_000])
    bench.decide(offset)  # not yet noted when the server stops
    bench.restart()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(bench.service.run)
        await trio.sleep(10.5)
        nursery.cancel_scope.cancel()
    assert bench.producer.bodies() == [b"open"]


async def test_the_next_start_goes_on_where_the_rounds_stopped(autojump_clock, bench):
    async with trio.open_nursery() as nursery:
        nursery.start_soon(bench.service.run)
        bench.send(b"half")
        await trio.sleep(10.5)
        nursery.cancel_scope.cancel()
    bench.restart()
    assert bench.reached(HALF) == 1
    async with trio.open_nursery() as nursery:
        nursery.start_soon(bench.service.run)
        await trio.sleep(10.5)
        nursery.cancel_scope.cancel()
    assert bench.producer.bodies() == [b"half"] * 2
    times = [
        decode_properties(record.properties).get("TRANSACTION_CHECK_TIMES")
        for record in bench.records(HALF)
    ]
    assert times == [None, "1", "2"]


async def test_an_offset_beyond_the_queue_is_corrected(autojump_clock, running):
    running.send(b"half")
    running.offsets.commit(GROUP, HALF, 0, 10)
    await trio.sleep(10)
    assert running.reached(HALF) == 1
