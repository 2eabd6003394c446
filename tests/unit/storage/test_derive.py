"""What a record says about its unit."""

import pytest

from pyritemq.protocol.record import (
    TRANSACTION_COMMIT,
    TRANSACTION_NOT,
    TRANSACTION_PREPARED,
    TRANSACTION_ROLLBACK,
)
from pyritemq.storage.config import DELAY_LEVELS
from pyritemq.storage.derive import (
    SCHEDULE_TOPIC,
    derive_tags_code,
    is_in_queue,
    parse_delay_levels,
)
from pyritemq.storage.errors import StoreUnusableError

LEVELS = parse_delay_levels(DELAY_LEVELS)
TAG_A = 2598919  # "TagA".hashCode()


def test_delay_levels_are_javas():
    assert LEVELS[:5] == (1_000, 5_000, 10_000, 30_000, 60_000)
    assert LEVELS[-1] == 7_200_000
    assert parse_delay_levels("2d") == (172_800_000,)


@pytest.mark.parametrize("text", ["1s 5x", "s", "1s five"])
def test_delay_levels_that_make_no_sense_are_a_sentence(text):
    with pytest.raises(StoreUnusableError, match=f"messageDelayLevel is not understood: {text}"):
        parse_delay_levels(text)


@pytest.mark.parametrize(
    ("properties", "code"),
    [
        (b"", 0),
        (b"TAGS\x01TagA", TAG_A),
        (b"TAGS\x01TagA\x02", TAG_A),
        (b"KEYS\x01k\x02TAGS\x01TagA\x02WAIT\x01true\x02", TAG_A),
        (b"TAGS\x01\x02", 0),
        (b"MYTAGS\x01TagA\x02", 0),
        (b"TAGS\x01TagA\x02MYTAGS\x01other\x02", TAG_A),
        (b"TAGS\x01first\x02TAGS\x01TagA\x02", TAG_A),
        ("TAGS\x01标签\x02".encode(), ord("标") * 31 + ord("签")),
    ],
)
def test_the_code_is_the_hash_of_the_tags(properties, code):
    assert derive_tags_code(b"T", properties, 0, LEVELS) == code


@pytest.mark.parametrize(
    ("properties", "code"),
    [
        (b"DELAY\x011\x02", 1_001_000),
        (b"TAGS\x01TagA\x02DELAY\x0118\x02", 1_000_000 + 7_200_000),
        (b"DELAY\x0199\x02", 1_000_000 + 7_200_000),
        (b"DELAY\x010\x02TAGS\x01TagA\x02", TAG_A),
        (b"DELAY\x01x\x02TAGS\x01TagA\x02", TAG_A),
        (b"TAGS\x01TagA\x02", TAG_A),
    ],
)
def test_in_the_schedule_topic_the_code_is_the_time_of_delivery(properties, code):
    assert derive_tags_code(SCHEDULE_TOPIC, properties, 1_000_000, LEVELS) == code


def test_a_delay_counts_only_in_the_schedule_topic():
    assert derive_tags_code(b"T", b"DELAY\x013\x02", 1_000_000, LEVELS) == 0


def test_only_halves_of_transactions_stay_out_of_queues():
    assert is_in_queue(TRANSACTION_NOT)
    assert is_in_queue(TRANSACTION_COMMIT)
    assert not is_in_queue(TRANSACTION_PREPARED)
    assert not is_in_queue(TRANSACTION_ROLLBACK)
