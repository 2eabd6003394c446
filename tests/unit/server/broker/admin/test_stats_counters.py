"""BrokerStats: what is counted, and the windows that rates are computed over."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from pyritemq.server.broker.state.stats import (
    BROKER_GET_NUMS,
    BROKER_PUT_NUMS,
    BROKER_PUT_NUMS_WITHOUT_SYSTEM_TOPIC,
    GROUP_GET_NUMS,
    GROUP_GET_SIZE,
    SNDBCK_PUT_NUMS,
    TOPIC_PUT_NUMS,
    TOPIC_PUT_SIZE,
    BrokerStats,
    Rate,
)
from pyritemq.storage.messages import GetResult, GetStatus, MessageToStore, PutResult, PutStatus

CLUSTER = "C"


@pytest.fixture
def stats(clock) -> BrokerStats:
    return BrokerStats(
        cluster=CLUSTER, is_system_topic=lambda topic: topic == "SYS", now_ms=clock.now_ms
    )


def put(stats, *topics: str, size: int = 100, elapsed_ns: int = 0) -> None:
    messages = [MessageToStore(topic.encode(), 0, b"") for topic in topics]
    results = [PutResult(PutStatus.PUT_OK, 0, 0, 0, size) for _ in topics]
    stats.count_puts(messages, results, elapsed_ns)


def got(count: int, size: int = 0) -> GetResult:
    status = GetStatus.FOUND if count else GetStatus.NO_MESSAGE_IN_QUEUE
    return GetResult(status, 0, 0, 0, [], count, size, False)


def test_a_drain_of_several_topics_is_counted_by_topic(stats):
    put(stats, "A", "B", "A")
    stats.tick()
    assert stats.view(TOPIC_PUT_NUMS, "A").minute.sum == 2
    assert stats.view(TOPIC_PUT_SIZE, "A").minute.sum == 200
    assert stats.view(TOPIC_PUT_NUMS, "B").minute.sum == 1
    assert stats.view(BROKER_PUT_NUMS, CLUSTER).minute.sum == 3


def test_messages_that_were_not_stored_are_failures_and_not_puts(stats):
    messages = [MessageToStore(b"A", 0, b""), MessageToStore(b"A", 0, b"")]
    refused = PutResult(PutStatus.MESSAGE_ILLEGAL, 0, 0, 0, 0)
    stats.count_puts(messages, [refused, PutResult(PutStatus.PUT_OK, 0, 0, 0, 7)], 0)
    assert (stats.totals().puts, stats.put_failed_times, stats.put_size_total) == (1, 1, 7)


def test_a_drain_without_messages_counts_nothing(stats):
    stats.count_puts([], [], 5)
    assert sum(stats.put_times) == 0


def test_system_topics_are_left_out_of_the_users_totals(stats):
    put(stats, "SYS", "A")
    stats.count_get("G", "SYS", got(3))
    stats.count_get("G", "A", got(2))
    stats.tick()
    assert stats.now() == (1, 2)
    assert stats.view(BROKER_PUT_NUMS_WITHOUT_SYSTEM_TOPIC, CLUSTER).minute.sum == 1
    assert stats.view(BROKER_GET_NUMS, CLUSTER).minute.sum == 5


def test_gets_are_counted_by_topic_and_group(stats):
    stats.count_get("G", "A", got(4, 400))
    stats.count_get("H", "A", got(1, 100))
    stats.tick()
    assert stats.view(GROUP_GET_NUMS, "A@G").minute == Rate(4, 0.4, 4.0)
    assert stats.view(GROUP_GET_SIZE, "A@G").minute.sum == 400
    assert stats.view(GROUP_GET_NUMS, "A@H").minute.sum == 1


def test_a_pull_that_finds_nothing_is_a_miss(stats):
    stats.count_get("G", "A", got(0))
    totals = stats.totals()
    assert (totals.found_times, totals.miss_times, totals.transferred) == (0, 1, 0)
    assert stats.view(GROUP_GET_NUMS, "A@G") is None


def test_what_was_never_counted_does_not_exist(stats):
    stats.tick()
    for name, key in (
        (TOPIC_PUT_NUMS, "A"),
        (GROUP_GET_NUMS, "A@G"),
        (BROKER_PUT_NUMS, CLUSTER),
        (SNDBCK_PUT_NUMS, "A@G"),
        ("NONSENSE", "A"),
    ):
        assert stats.view(name, key) is None


def test_whole_broker_statistics_have_the_clusters_name_as_key(stats):
    put(stats, "A")
    assert stats.view(BROKER_PUT_NUMS, "other") is None
    assert stats.view(BROKER_PUT_NUMS, CLUSTER) is not None


def test_other_statistics_are_added_by_name_and_key(stats):
    stats.add(SNDBCK_PUT_NUMS, "A@G", 2)
    stats.add(SNDBCK_PUT_NUMS, "A@G")
    stats.tick()
    assert stats.view(SNDBCK_PUT_NUMS, "A@G").minute.sum == 3


def test_the_minute_window_forgets_after_seven_samples_of_ten_seconds(stats, clock):
    put(stats, *["A"] * 60)
    stats.tick()
    assert stats.view(TOPIC_PUT_NUMS, "A").minute == Rate(60, 6.0, 1.0)
    for _ in range(60):
        clock.advance(1)
        stats.tick()
    assert stats.view(TOPIC_PUT_NUMS, "A").minute == Rate()
    assert stats.view(TOPIC_PUT_NUMS, "A").hour.sum == 60
    assert stats.tps_topic_put("A") == 0.0


def test_hour_and_day_windows_have_their_own_steps(stats, clock):
    put(stats, "A")
    stats.tick()
    rates = stats.view(TOPIC_PUT_NUMS, "A")
    assert rates.hour.tps == pytest.approx(1 / 600)
    assert rates.day.tps == pytest.approx(1 / 3600)


def test_rates_of_the_last_seconds_need_that_many_samples(stats, clock):
    for _ in range(10):
        put(stats, "A")
        clock.advance(1)
        stats.tick()
    first, last = stats.before(10)
    assert (last.puts - first.puts, last.timestamp - first.timestamp) == (10, 10_000)
    assert stats.before(11) is None


def test_put_times_fall_into_javas_slots(stats):
    put(stats, "A", elapsed_ns=400_000)
    put(stats, "A", "A", elapsed_ns=7_000_000)
    put(stats, "A", elapsed_ns=20_000_000_000)
    assert stats.put_times[:3] == [1, 2, 0]
    assert stats.put_times[-1] == 1
    assert stats.put_time_max_ms == 20_000


def test_put_percentiles_lie_within_their_slot(stats):
    assert stats.put_time_percentile(0.99) == 0.0
    for _ in range(98):
        put(stats, "A")
    put(stats, "A", "A", elapsed_ns=30_000_000)
    assert stats.put_time_percentile(0.5) == 0.0
    assert 10 <= stats.put_time_percentile(0.999) <= 50


def test_totals_move_to_yesterday_at_midnight(stats, clock):
    put(stats, "A")
    now = datetime.fromtimestamp(clock.ms / 1000)
    midnight = (now + timedelta(days=1)).replace(hour=0, minute=0, second=0, microsecond=0)
    clock.advance((midnight - now).total_seconds() + 1)
    stats.tick()
    assert (stats.yesterday_morning.puts, stats.this_morning.puts) == (0, 1)
    put(stats, "A")
    clock.advance(24 * 3600)
    stats.tick()
    assert (stats.yesterday_morning.puts, stats.this_morning.puts) == (1, 2)


def test_deleted_topics_and_groups_are_forgotten(stats):
    put(stats, "A")
    stats.count_get("G", "A", got(1))
    stats.count_get("G", "B", got(1))
    stats.count_get("H", "B", got(1))
    stats.forget_topic("A")
    stats.forget_group("G")
    assert stats.view(TOPIC_PUT_NUMS, "A") is None
    assert stats.view(GROUP_GET_NUMS, "A@G") is None
    assert stats.view(GROUP_GET_NUMS, "B@G") is None
    assert stats.view(GROUP_GET_NUMS, "B@H") is not None
