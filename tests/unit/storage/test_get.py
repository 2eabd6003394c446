"""get: statuses, corrections of the next offset, limits and filters as in Java's getMessage."""

import threading

import pytest
from unit.storage.kit import message, split_records

from pyritemq.storage import GetStatus, MessageToStore

TAG_A, TAG_B = 11, 22


def fill(store, count, **kwargs):
    return store.put_batch([message(b"%d" % number, **kwargs) for number in range(count)])


def bodies(result):
    return [record.body for record in split_records(result.slices)]


def test_an_unknown_queue_has_no_message(store):
    result = store.get("T", 0, 17, count_max=32)
    assert (result.status, result.next_begin_offset) == (GetStatus.NO_MESSAGE_IN_QUEUE, 0)
    assert (result.min_offset, result.max_offset, result.count) == (0, 0, 0)


def test_messages_are_found_from_the_offset_on(store):
    fill(store, 10)
    result = store.get("T", 0, 4, count_max=3)
    assert (result.status, result.count) == (GetStatus.FOUND, 3)
    assert bodies(result) == [b"4", b"5", b"6"]
    assert result.next_begin_offset == 7
    assert (result.min_offset, result.max_offset) == (0, 10)
    assert result.bytes_total == sum(map(len, result.slices))


@pytest.mark.parametrize(
    ("offset", "status", "next_offset"),
    [
        (-1, GetStatus.OFFSET_TOO_SMALL, 0),
        (10, GetStatus.OFFSET_OVERFLOW_ONE, 10),
        (11, GetStatus.OFFSET_OVERFLOW_BADLY, 10),
    ],
)
def test_an_offset_outside_the_queue_is_corrected(store, offset, status, next_offset):
    fill(store, 10)
    result = store.get("T", 0, offset, count_max=32)
    assert (result.status, result.next_begin_offset) == (status, next_offset)
    assert (result.slices, result.min_offset, result.max_offset) == ([], 0, 10)


def test_adjacent_records_share_a_slice_and_others_do_not(store):
    fill(store, 5)
    assert len(store.get("T", 0, 0, count_max=5).slices) == 1
    store.put_batch([message(queue_id=number % 2) for number in range(6)])
    result = store.get("T", 0, 4, count_max=32)
    assert (result.count, len(result.slices)) == (4, 3)  # the fifth touches the first of the three


def test_at_most_32_messages_come_from_memory(opened):
    store = opened(commit_log_file_size=1 << 16)
    fill(store, 40)
    assert store.get("T", 0, 0, count_max=100).count == 32
    assert store.get("T", 0, 8, count_max=32).count == 32


def test_bytes_are_bounded_but_one_message_always_comes(opened):
    store = opened(commit_log_file_size=1 << 20, message_size_max=1 << 19)
    store.put_batch([message(b"x" * 300_000), message(b"y" * 100), message(b"z" * 262_000)])
    assert store.get("T", 0, 0, count_max=32).count == 1
    assert store.get("T", 0, 1, count_max=32).count == 1
    assert store.get("T", 0, 1, count_max=32).next_begin_offset == 2


def test_the_callers_byte_limit_counts_and_is_at_least_100(store):
    sizes = [result.size for result in fill(store, 5)]
    assert store.get("T", 0, 0, count_max=32, bytes_max=sum(sizes[:3])).count == 3
    assert store.get("T", 0, 0, count_max=32, bytes_max=sum(sizes[:3]) - 1).count == 2
    assert store.get("T", 0, 0, count_max=32, bytes_max=0).count == 1


def test_messages_far_behind_come_in_the_smaller_portions_for_disk(opened):
    store = opened(memory_size=10_000, commit_log_file_size=1 << 16)  # 4,000 bytes count as memory
    fill(store, 100)
    far = store.get("T", 0, 0, count_max=32)
    assert (far.count, far.suggest_pulling_from_slave) == (8, True)
    near = store.get("T", 0, 68, count_max=32)
    assert (near.count, near.suggest_pulling_from_slave) == (32, False)


def test_a_get_that_reaches_from_disk_into_memory_goes_on_with_memorys_limits(opened):
    store = opened(memory_size=10_000, commit_log_file_size=1 << 16, consume_queue_file_units=1000)
    size = fill(store, 100)[-1].size
    first_in_memory = 100 - 4000 // size
    assert store.get("T", 0, first_in_memory - 8, count_max=32).count == 32
    assert store.get("T", 0, first_in_memory - 9, count_max=32).count == 8


def test_one_get_stays_within_a_file_of_units(store):
    fill(store, 60)
    result = store.get("T", 0, 45, count_max=32)
    assert (result.count, result.next_begin_offset) == (5, 50)
    assert bodies(store.get("T", 0, 50, count_max=32))[0] == b"50"


def put_tagged(store, codes):
    store.put_batch([MessageToStore(b"T", 0, b"%d" % code, tags_code=code) for code in codes])


def test_a_filter_passes_over_other_tags_and_moves_on(store):
    put_tagged(store, [TAG_A, TAG_B, TAG_B, TAG_A, TAG_B])
    result = store.get("T", 0, 0, count_max=32, accepts=frozenset([TAG_A]))
    assert bodies(result) == [b"11", b"11"]
    assert (result.count, result.next_begin_offset) == (2, 5)


def test_a_filter_may_be_a_function(store):
    put_tagged(store, [TAG_A, TAG_B])
    assert bodies(store.get("T", 0, 0, count_max=32, accepts=lambda code: code > 20)) == [b"22"]


def test_no_match_still_moves_the_offset(store):
    put_tagged(store, [TAG_B] * 10)
    result = store.get("T", 0, 2, count_max=32, accepts=frozenset([TAG_A]))
    assert (result.status, result.next_begin_offset) == (GetStatus.NO_MATCHED_MESSAGE, 10)
    assert result.slices == []


def test_a_filter_looks_at_a_bounded_number_of_units(opened):
    store = opened(commit_log_file_size=1 << 18, consume_queue_file_units=2000)
    put_tagged(store, [TAG_B] * 1000)
    result = store.get("T", 0, 0, count_max=32, accepts=frozenset([TAG_A]))
    assert result.next_begin_offset == 800  # maxFilterMessageSize 16000 / 20 bytes a unit
    more = store.get("T", 0, 0, count_max=900, accepts=frozenset([TAG_A]))
    assert more.next_begin_offset == 900


def test_units_whose_records_have_gone_are_passed_over(store):
    store.put_batch([message(b"x" * 900) for _ in range(10)])
    first, *rest = store.commit_log.files.files
    store.commit_log.files.files = tuple(rest)
    gone = sum(store.queues.find(b"T", 0).unit(offset)[0] < 4096 for offset in range(10))
    removed = store.get("T", 0, 0, count_max=gone)
    assert (removed.status, removed.next_begin_offset) == (GetStatus.MESSAGE_WAS_REMOVING, gone)
    found = store.get("T", 0, 0, count_max=gone + 2)
    assert (found.status, found.count) == (GetStatus.FOUND, 2)
    assert first.from_offset == 0


def test_readers_on_other_threads_find_every_record_whole_while_messages_come_in(opened):
    store = opened(commit_log_file_size=1 << 16, consume_queue_file_units=300)
    total = 3000
    found: list[list[bytes]] = [[], []]

    def read(into):
        while len(into) < total:
            into += bodies(store.get("T", 0, len(into), count_max=32))

    readers = [threading.Thread(target=read, args=(into,)) for into in found]
    for reader in readers:
        reader.start()
    for start in range(0, total, 10):
        store.put_batch([message(b"%d" % (start + number) * 9) for number in range(10)])
        if start % 500 == 0:
            store.housekeep()
    for reader in readers:
        reader.join()
    assert found == [[b"%d" % number * 9 for number in range(total)]] * 2


def test_records_and_times_are_looked_up_by_offset(store, clock):
    first, second = fill(store, 2)
    clock.ms += 5
    store.put_batch([message(b"later")])
    assert store.earliest_store_time("T", 0) == clock.ms - 5
    assert store.store_time_at("T", 0, 2) == clock.ms
    assert store.store_time_at("T", 0, 3) == -1
    assert store.store_time_at("T", 1, 0) == store.earliest_store_time("T", 1) == -1
    assert split_records([store.record_at(second.phy_offset)])[0].body == b"1"
    assert store.topics() == {"T"}
    assert first.phy_offset == store.min_phy_offset == 0


@pytest.mark.parametrize("wrong", [-1, 1, 50, 10**9])
def test_no_record_is_found_at_an_offset_where_none_starts(store, wrong):
    fill(store, 3)
    assert store.record_at(wrong) is None
    assert store.record_at(store.max_phy_offset) is None


def test_a_look_at_the_record_filters_and_counts_as_seen(store):
    fill(store, 40)
    result = store.get("T", 0, 0, count_max=3, matches=lambda record: b"7" in bytes(record[80:95]))
    assert bodies(result) == [b"7", b"17", b"27"]
    assert (result.count, result.next_begin_offset) == (3, 28)
    nothing = store.get("T", 0, 0, count_max=3, matches=lambda _: False)
    assert (nothing.status, nothing.next_begin_offset) == (GetStatus.NO_MATCHED_MESSAGE, 40)


def test_a_filter_sees_old_records_as_it_sees_recent_ones(opened):
    store = opened(access_message_in_memory_max_ratio=0)
    for number in range(12):
        store.put_batch([message(b"%d" % number)])
    seen = []
    found = store.get("T", 0, 0, count_max=32, matches=lambda record: not seen.append(record))
    assert [bytes(record) for record in seen] == [
        bytes(store.record_at(store.queues.find(b"T", 0).unit(number)[0]))
        for number in range(len(seen))
    ]
    assert found.count == 8  # what one get returns from disk
