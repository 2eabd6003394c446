"""Which messages wait, in which slot, and what they look like when they leave it."""

import pytest

from pyritemq.protocol.record import TRANSACTION_PREPARED, decode_properties, encode_properties
from pyritemq.server.broker.timers.rewriting import (
    IllegalTimer,
    RecallHandle,
    asks_for_timer,
    out_ms,
    recall_handle,
    to_timer_topic,
)
from pyritemq.storage.messages import MessageToStore

NOW_MS = 1_795_000_000_250
MAX_MS = 60_000


def message(**properties):
    return MessageToStore(b"Topic", 3, b"x", encode_properties(properties))


def slot(**properties):
    return out_ms(properties, now_ms=NOW_MS, max_delay_ms=MAX_MS, precision_ms=1000)


@pytest.mark.parametrize(
    ("properties", "wanted_ms"),
    [
        ({"TIMER_DELAY_SEC": "5"}, 5000),
        ({"TIMER_DELAY_MS": "5000"}, 5000),
        ({"TIMER_DELIVER_MS": str(NOW_MS + 4751)}, 5000),
        ({"TIMER_DELIVER_MS": str(NOW_MS + 4750)}, 4000),
        ({"TIMER_DELAY_SEC": "5", "TIMER_DELAY_MS": "9000", "TIMER_DELIVER_MS": "x"}, 5000),
        ({"TIMER_DELAY_MS": "9000", "TIMER_DELIVER_MS": "1"}, 9000),
    ],
)
def test_the_slot_is_the_one_that_ends_at_or_after_the_time(properties, wanted_ms):
    assert slot(**properties) == NOW_MS // 1000 * 1000 + wanted_ms


@pytest.mark.parametrize(
    "properties",
    [{"TIMER_DELAY_SEC": "0"}, {"TIMER_DELAY_MS": "-5"}, {"TIMER_DELIVER_MS": str(NOW_MS)}],
)
def test_what_is_due_does_not_wait(properties):
    assert slot(**properties) is None


@pytest.mark.parametrize(
    "properties",
    [
        {"TIMER_DELAY_SEC": "soon"},
        {"TIMER_DELAY_SEC": "1_0"},
        {"TIMER_DELIVER_MS": ""},
        {"TIMER_DELAY_MS": str(MAX_MS + 1)},
        {"TIMER_DELIVER_MS": str(NOW_MS), "TIMER_DEL_UNIQKEY": "key"},
    ],
)
def test_times_that_no_timer_can_have(properties):
    with pytest.raises(IllegalTimer):
        slot(**properties)


def test_the_longest_delay_is_allowed():
    assert slot(TIMER_DELAY_MS=str(MAX_MS)) is not None


def test_only_messages_that_ask_for_it_wait():
    asking = {"TIMER_DELAY_SEC": "5"}
    assert asks_for_timer(message(), asking)
    assert not asks_for_timer(message(), {"KEYS": "k"})
    assert not asks_for_timer(message(), asking | {"TIMER_OUT_MS": "1"})
    half = message()
    half.sys_flag = TRANSACTION_PREPARED
    assert not asks_for_timer(half, asking)


def test_a_waiting_message_says_where_it_belongs():
    waiting = message()
    to_timer_topic(waiting, {"KEYS": "k"}, 5000)
    assert (waiting.topic, waiting.queue_id) == (b"rmq_sys_wheel_timer", 0)
    assert decode_properties(waiting.properties) == {
        "KEYS": "k",
        "TIMER_OUT_MS": "5000",
        "REAL_TOPIC": "Topic",
        "REAL_QID": "3",
    }


def test_a_handle_is_javas_and_names_the_same_slot():
    waiting = message()
    to_timer_topic(waiting, {"UNIQ_KEY": "ID"}, NOW_MS // 1000 * 1000 + 7000)
    text = recall_handle(waiting, "broker-a")
    # Base64.getUrlEncoder of "v1 Topic broker-a 1795000007001 ID"
    assert text == "djEgVG9waWMgYnJva2VyLWEgMTc5NTAwMDAwNzAwMSBJRA=="
    handle = RecallHandle.decode(text)
    assert handle == ("Topic", "broker-a", "1795000007001", "ID")
    assert slot(TIMER_DELIVER_MS=handle.timestamp) == NOW_MS // 1000 * 1000 + 7000


def test_retries_and_messages_that_do_not_wait_have_no_handle():
    assert recall_handle(message(), "broker-a") is None
    retry = message()
    retry.topic = b"%RETRY%group"
    to_timer_topic(retry, {"UNIQ_KEY": "ID"}, 5000)
    assert recall_handle(retry, "broker-a") is None


@pytest.mark.parametrize("text", ["", "?", "djEgVG9waWM=", "djIgYSBiIGMgZA=="])
def test_a_text_that_is_no_handle(text):
    with pytest.raises(ValueError, match="recall handle is invalid"):
        RecallHandle.decode(text)
