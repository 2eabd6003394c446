"""Names and attributes of topics and groups, with Java's words for what is wrong."""

import pytest

from pyritemq.server.broker.state.attributes import (
    TOPIC_ATTRIBUTES,
    AttributeFault,
    alter,
    parse_alterations,
)
from pyritemq.server.broker.state.names import dlq_topic, group_fault, retry_topic, topic_fault

LEGAL = "allowing only ^[%|a-zA-Z0-9_-]+$"
TYPES = "[UNSPECIFIED, MIXED, TRANSACTION, PRIORITY, FIFO, DELAY, LITE, NORMAL]"
LONG_RETRY = "%RETRY%" + "x" * 249
LONGER_THAN = "and it's longer than topic max length: 255"


@pytest.mark.parametrize("name", ["T", "%RETRY%g", "a|b-c_9", "x" * 127, "%DLQ%" + "x" * 250])
def test_good_topic_names(name):
    assert topic_fault(name) is None


@pytest.mark.parametrize(
    ("name", "fault"),
    [
        (None, "The specified topic is blank."),
        (" ", "The specified topic is blank."),
        ("T 3", f"The specified topic: T 3, contains illegal characters, {LEGAL}"),
        ("T\n", f"The specified topic: T\n, contains illegal characters, {LEGAL}"),
        (
            "x" * 128,
            f"The specified topic: {'x' * 128}, is longer than topic max length: 127",
        ),
        (LONG_RETRY, f"The specified topic is DLQ or Retry topic: {LONG_RETRY}, {LONGER_THAN}"),
    ],
)
def test_bad_topic_names(name, fault):
    assert topic_fault(name) == fault


def test_group_names():
    assert group_fault("g" * 120) is None
    assert group_fault("") == "The specified group is blank."
    assert group_fault("g" * 121).endswith("is longer than group max length: 120")
    assert group_fault("gé").startswith("The specified group: gé, contains illegal characters")


def test_topics_of_a_group():
    assert (retry_topic("g"), dlq_topic("g")) == ("%RETRY%g", "%DLQ%g")


@pytest.mark.parametrize("text", [None, "", ",", ",,"])
def test_no_alterations(text):
    assert parse_alterations(text) == {}


def test_alterations_are_parsed_as_java_does():
    assert parse_alterations("+a=1,-b,+c=2=3,") == {"+a": "1", "-b": "", "+c": "2"}


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("message.type=NORMAL", "add/alter attribute format is wrong: message.type"),
        ("nonsense", "delete attribute format is wrong: nonsense"),
        ("+a=1,+a=2", "key duplication: +a"),
        ("+a=", "Index 1 out of bounds for length 1"),
        ("-a,,-b", "delete attribute format is wrong: "),
    ],
)
def test_bad_alterations(text, fault):
    with pytest.raises(AttributeFault) as caught:
        parse_alterations(text)
    assert str(caught.value) == fault


@pytest.mark.parametrize(
    ("current", "alterations", "fault"),
    [
        (None, {"+message.type": "BAD"}, f"value is not in set: {TYPES}"),
        (None, {"+x": "1"}, "unsupported key: x"),
        (
            None,
            {"-message.type": ""},
            "only add attribute is supported while creating topic. key: message.type",
        ),
        ({}, {"zz": "1"}, "wrong format key: z"),
        ({}, {"-message.type": ""}, "attempt to delete a nonexistent key: message.type"),
        (
            {},
            {"+queue.type": "BatchCQ"},
            "attempt to update an unchangeable attribute. key: queue.type",
        ),
        (
            {"message.type": "FIFO"},
            {"+message.type": "LITE", "-message.type": ""},
            "alter duplication key. key: message.type",
        ),
        ({}, {"++x": "1"}, "kv string format wrong."),
        ({}, {"+": "1"}, "kv string format wrong."),
        ({}, {"+lite.topic.expiration": "x"}, 'For input string: "x"'),
        ({}, {"+lite.topic.expiration": "43201"}, "value is not in range(-1, 43200)"),
    ],
)
def test_refused_alterations(current, alterations, fault):
    with pytest.raises(AttributeFault) as caught:
        alter(current, alterations, TOPIC_ATTRIBUTES)
    assert str(caught.value) == fault


def test_unchangeable_attribute_may_be_set_at_creation():
    assert alter(None, {"+queue.type": "BatchCQ"}, TOPIC_ATTRIBUTES) == {"queue.type": "BatchCQ"}
