"""Round trips of Java's texts, and readers that meet garbage."""

import contextlib

import orjson
from hypothesis import given
from hypothesis import strategies as st

from pyritemq.compat.fastjson import FastjsonError, dumps, loads
from pyritemq.compat.java_hash import java_string_hash
from pyritemq.compat.message_id import make_message_id, parse_message_id
from pyritemq.compat.properties_file import (
    PropertiesError,
    format_properties,
    parse_properties,
)

texts = st.text(st.characters(exclude_categories=["Cs"]))
longs = st.integers(-(1 << 63), (1 << 63) - 1)
scalars = st.booleans() | longs | texts
keys = texts | longs
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(keys, inner, max_size=4)
)


@given(st.dictionaries(keys, values, max_size=5))
def test_what_fastjson_would_write_reads_back(value):
    assert loads(dumps(value)) == value


@given(values)
def test_strict_json_reads_the_same_on_both_paths(value):
    """A comment forces the tolerant reader."""
    strict = orjson.dumps(value, option=orjson.OPT_NON_STR_KEYS)
    assert loads(strict + b" /**/") == loads(strict)


@given(st.binary(max_size=200) | st.text(alphabet="{}[]:,'\"\\u0aeE+-./*tfn \n", max_size=60))
def test_garbage_is_a_value_or_one_clean_error(data):
    with contextlib.suppress(FastjsonError):
        loads(data)


@given(st.dictionaries(texts, texts, max_size=6))
def test_properties_round_trip(properties):
    text = format_properties(properties)
    assert parse_properties(text) == properties
    assert text.isascii()


@given(st.text())
def test_any_text_is_properties_or_one_clean_error(text):
    try:
        parse_properties(text)
    except PropertiesError:
        assert "\\u" in text


@given(
    st.binary(min_size=4, max_size=4) | st.binary(min_size=16, max_size=16),
    st.integers(0, 65535),
    st.integers(0, (1 << 63) - 1),
)
def test_message_id_round_trip(ip, port, phy_offset):
    text = make_message_id(ip + port.to_bytes(4, "big"), phy_offset)
    parsed = parse_message_id(text)
    assert (parsed.ip.packed, parsed.port, parsed.phy_offset) == (ip, port, phy_offset)
    assert text == text.upper()


@given(st.text(), st.text())
def test_hash_of_a_concatenation_follows_javas_polynomial(head, tail):
    units = len(tail.encode("utf-16-be", "surrogatepass")) // 2
    expected = java_string_hash(head) * pow(31, units, 1 << 32) + java_string_hash(tail)
    assert (java_string_hash(head + tail) - expected) % (1 << 32) == 0
    assert -(1 << 31) <= java_string_hash(head) < 1 << 31
