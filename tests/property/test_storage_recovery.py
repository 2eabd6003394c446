"""Whatever is lost at its end, a log recovers to a prefix; and queues rebuild to the byte."""

import copy
import itertools
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from unit.storage.kit import (
    MemoryDisk,
    SetClock,
    kill,
    open_store,
    read_queue,
    split_records,
)

from pyritemq.compat.java_hash import tags_code
from pyritemq.protocol.record import decode_record
from pyritemq.storage import GetStatus, MessageStore, MessageToStore
from pyritemq.storage.quick_derive import QuickDeriver, Run

ROOT = Path("/store")
QUEUES = ROOT / "consumequeue"
TOPICS = (b"Plain", b"Long" * 40)

Sent = tuple[bytes, int, bytes, str]  # topic, queue id, body, tag
sent_messages = st.tuples(
    st.sampled_from(TOPICS),
    st.integers(0, 2),
    st.binary(max_size=400),
    st.sampled_from(["", "TagA", "标签"]),
)
queue_keys = st.tuples(st.sampled_from(TOPICS), st.integers(0, 2))
batches = st.lists(st.lists(sent_messages, min_size=1, max_size=6), min_size=1, max_size=12)


def to_message(sent: Sent) -> MessageToStore:
    topic, queue_id, body, tag = sent
    properties = b"KEYS\x01k\x02" + (b"TAGS\x01" + tag.encode() + b"\x02" if tag else b"")
    return MessageToStore(topic, queue_id, body, properties, tags_code=tags_code(tag))


def queue_files(disk: MemoryDisk) -> dict[Path, bytes]:
    return {
        path: bytes(file.buffer[: file.length])
        for path, file in disk.files.items()
        if path.is_relative_to(QUEUES)
    }


def stored(store: MessageStore) -> dict[tuple[bytes, int], list[bytes]]:
    return {
        (topic, queue_id): [record.body for record in read_queue(store, topic.decode(), queue_id)]
        for topic in TOPICS
        for queue_id in range(3)
    }


def expected(sent: list[Sent]) -> dict[tuple[bytes, int], list[bytes]]:
    bodies: dict[tuple[bytes, int], list[bytes]] = {
        (topic, queue_id): [] for topic in TOPICS for queue_id in range(3)
    }
    for topic, queue_id, body, _ in sent:
        bodies[topic, queue_id].append(body)
    return bodies


@given(batches)
@settings(max_examples=80, deadline=None)
def test_queues_rebuilt_from_the_log_equal_the_ones_that_were_written(sent):
    disk = MemoryDisk()
    store = open_store(ROOT, disk=disk)
    for batch in sent:
        store.put_batch([to_message(item) for item in batch])
    store.close()
    written = queue_files(disk)
    for path in written:
        disk.remove(path)
    open_store(ROOT, disk=disk).close()
    assert queue_files(disk) == written


def small_log() -> tuple[MemoryDisk, list[Sent], list[int], int]:
    """A store that was killed, what was put into it, and where each record starts; then its end."""
    disk = MemoryDisk()
    store = open_store(ROOT, disk=disk)
    sent = [(TOPICS[number % 2], number % 3, b"%d" % number * 5, "TagA") for number in range(9)]
    starts = [result.phy_offset for result in store.put_batch([to_message(item) for item in sent])]
    store.persist()
    kill(store)
    return disk, sent, starts, store.max_phy_offset


def damaged(disk: MemoryDisk, at: int, data: bytes) -> MemoryDisk:
    other = MemoryDisk()
    other.files = {path: copy.copy(file) for path, file in disk.files.items()}
    for file in other.files.values():
        file.disk = other
        file.buffer = bytearray(file.buffer)
    other.files[ROOT / "commitlog" / f"{0:020d}"].write_at(at, data)
    return other


def test_a_log_cut_at_any_byte_of_its_last_records_recovers_to_the_whole_ones():
    disk, sent, starts, end = small_log()
    for cut in range(starts[-3], end):
        store = open_store(ROOT, disk=damaged(disk, cut, bytes(4096 - cut)))
        whole = [item for item, start in zip(sent, [*starts[1:], end], strict=True) if start <= cut]
        # the last bytes of a record may be zeroes, so that cutting them changes nothing
        assert stored(store) in (expected(whole), expected(sent[: len(whole) + 1])), cut
        assert store.max_phy_offset <= end
        store.put_batch([to_message(sent[0])])
        store.close()


@given(st.data())
@settings(max_examples=150, deadline=None)
def test_bytes_changed_in_the_last_records_recover_to_a_prefix(data):
    disk, sent, starts, end = small_log()
    at = data.draw(st.integers(starts[-4], end - 1))
    junk = data.draw(st.binary(min_size=1, max_size=30))
    store = open_store(ROOT, disk=damaged(disk, at, junk))
    untouched = sum(start <= at for start in starts[1:])
    assert store.max_phy_offset >= starts[untouched]
    found = stored(store)
    for key, bodies in expected(sent[:untouched]).items():
        assert found[key][: len(bodies)] == bodies


def test_a_bit_flipped_in_any_byte_of_the_last_records_recovers_to_a_prefix():
    """The CRC covers bodies alone: a changed topic or property is not noticed, as in Java."""
    disk, sent, starts, end = small_log()
    file = disk.files[ROOT / "commitlog" / f"{0:020d}"]
    for at in range(starts[-3], end):
        flipped = bytes([file.buffer[at] ^ 1 << at % 8])
        store = open_store(ROOT, disk=damaged(disk, at, flipped))
        untouched = sum(start <= at for start in starts[1:])
        assert starts[untouched] <= store.max_phy_offset <= end, at
        found = stored(store)
        for key, bodies in expected(sent[:untouched]).items():
            assert found[key][: len(bodies)] == bodies, at
        assert store.put_batch([to_message(sent[0])])[0].phy_offset >= starts[untouched]
        store.close()


def recovered(disk: MemoryDisk) -> tuple[object, ...]:
    store = open_store(ROOT, disk=disk)
    return stored(store), store.max_phy_offset, store.commit_log.last, queue_files(disk)


@given(st.integers(0, 4095), st.binary(max_size=30))
@settings(max_examples=150, deadline=None)
def test_the_quick_scan_decides_as_the_checks_of_each_record_do(at, junk):
    disk, _, _, _ = small_log()
    junk = junk[: 4096 - at]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(QuickDeriver, "run", lambda *_: Run(0, 0, -1, -1))
        record_by_record = recovered(damaged(disk, at, junk))
    assert recovered(damaged(disk, at, junk)) == record_by_record


def status_of(offset, first, end):
    """DefaultMessageStore.getMessage, for a get without a filter."""
    if end == 0:
        return GetStatus.NO_MESSAGE_IN_QUEUE
    if offset < first:
        return GetStatus.OFFSET_TOO_SMALL
    if offset >= end:
        return GetStatus.OFFSET_OVERFLOW_ONE if offset == end else GetStatus.OFFSET_OVERFLOW_BADLY
    return GetStatus.FOUND


class StoreMachine(RuleBasedStateMachine):
    """Random life of a store, and reads of every kind, against a list of what was put."""

    def __init__(self) -> None:
        super().__init__()
        self.disk = MemoryDisk()
        self.clock = SetClock()
        self.start()
        self.sent: list[Sent] = []
        self.places: list[int] = []
        self.times: list[int] = []
        self.durable = 0

    @rule(batch=st.lists(sent_messages, min_size=1, max_size=20))
    def put(self, batch):
        self.clock.ms += 1
        results = self.store.put_batch([to_message(item) for item in batch])
        self.sent += batch
        self.places += [result.phy_offset for result in results]
        self.times += [self.clock.ms] * len(batch)

    @rule(queue=queue_keys, offset=st.integers(-1, 60), count=st.integers(1, 40))
    def read(self, queue, offset, count):
        """Any offset is answered with messages from there on, or with the way to some."""
        topic, queue_id = queue
        bodies, first = self.in_queue(queue), self.expired_in(queue)
        found = self.store.get(topic.decode(), queue_id, offset, count_max=count)
        read = [record.body for record in split_records(found.slices)]
        assert read == bodies[offset : offset + len(read)] if read else found.count == 0
        assert found.status is status_of(offset, first, len(bodies))
        if read:
            assert len(read) <= count
            assert found.next_begin_offset == offset + len(read)
        elif bodies:
            assert found.next_begin_offset == min(max(offset, first), len(bodies))

    @rule(queue=queue_keys, back_ms=st.integers(-2, 10))
    def look_up_by_time(self, queue, back_ms):
        topic, queue_id = queue
        first = self.expired_in(queue)
        times = self.in_queue(queue, self.times)
        wanted = self.clock.ms - back_ms
        offset = next((n for n in range(first, len(times)) if times[n] >= wanted), len(times))
        assert self.store.offset_by_time(topic.decode(), queue_id, wanted) == offset

    @rule(topic=st.sampled_from(TOPICS), count=st.integers(1, 70))
    def look_up_by_key(self, topic, count):
        """Every message has the key; the newest are found, whatever was indexed so far."""
        found = self.store.query(topic.decode(), "k", count, begin=0, end=1 << 62).records
        bodies = [item[2] for item in self.sent[self.expired() :] if item[0] == topic]
        assert [decode_record(record, 0).body for record in found] == bodies[-min(count, 64) :]

    @rule()
    def expire(self):
        self.store.expiry.delete_manually()
        self.store.clean_files()

    @rule()
    def flush(self):
        self.store.flush()
        self.durable = len(self.sent)

    @rule()
    def persist(self):
        self.store.persist()
        self.durable = len(self.sent)

    @rule(ms=st.sampled_from([500, 1_000, 10_000, 60_000]))
    def housekeep(self, ms):
        self.clock.ms += ms
        self.store.housekeep()

    @rule()
    def stop_and_start(self):
        self.store.close()
        self.durable = len(self.sent)
        self.start()

    @rule()
    def kill_and_start(self):
        kill(self.store)
        self.start()

    @precondition(lambda self: self.sent)
    @rule()
    def lose_power_and_start(self):
        self.disk = self.disk.lose_power()
        self.start()
        live = sum(len(bodies) for bodies in stored(self.store).values())
        total = self.expired() + live
        assert total >= self.durable
        del self.sent[total:], self.places[total:], self.times[total:]
        self.forget_lost_ends()

    def forget_lost_ends(self):
        """A queue whose messages expired before its end was synced goes on from a lower end."""
        lost = set()
        for topic, queue_id in itertools.product(TOPICS, range(3)):
            numbers = [n for n, item in enumerate(self.sent) if item[:2] == (topic, queue_id)]
            if self.expired_in((topic, queue_id)) == len(numbers):
                lost.update(numbers[self.store.max_offset(topic.decode(), queue_id) :])
        self.durable -= sum(number < self.durable for number in lost)
        for values in (self.sent, self.places, self.times):
            values[:] = [value for number, value in enumerate(values) if number not in lost]

    def start(self):
        self.store = open_store(
            ROOT,
            self.clock,
            self.disk,
            file_reserved_hours=0,
            delete_file_batch_max=1,
        )

    def expired(self):
        return sum(place < self.store.min_phy_offset for place in self.places)

    def in_queue(self, queue, values=None):
        """Bodies, or other values, of all messages that a queue ever got, by offset."""
        values = [item[2] for item in self.sent] if values is None else values
        return [value for item, value in zip(self.sent, values, strict=True) if item[:2] == queue]

    def expired_in(self, queue):
        return sum(item[:2] == queue for item in self.sent[: self.expired()])

    @invariant()
    def holds_what_was_put(self):
        assert stored(self.store) == expected(self.sent[self.expired() :])


StoreMachine.TestCase.settings = settings(max_examples=40, stateful_step_count=25, deadline=None)
test_a_store_holds_what_was_put_through_stops_kills_and_power_loss = StoreMachine.TestCase
