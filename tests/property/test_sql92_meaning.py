"""Random selectors mean what a plain evaluator, written from the rules alone, says they mean."""

from __future__ import annotations

import operator
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from pyritemq.protocol.record import (
    BORNHOST_V6,
    MAGIC_V1,
    MAGIC_V2,
    STOREHOSTADDRESS_V6,
    encode_properties,
)
from pyritemq.protocol.record_layout import MessageRecord
from pyritemq.server.broker.filters.java_values import EvaluationError
from pyritemq.server.broker.filters.matching import record_properties, record_test
from pyritemq.server.broker.filters.selector_nodes import SelectorError
from pyritemq.server.broker.filters.sql92 import SQL92, compile_expression

NAMES = ("a", "b", "c")
NUMBERS = ("0", "7", "-7", "12", "2147483648", "-3000000000", "2.5", "1e3")
WORDS = ("x", "xyz", "yx", "true", "FALSE", "it's")
ORDERS = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}

names = st.sampled_from(NAMES)
words = st.sampled_from(WORDS)
values = st.sampled_from(NUMBERS + WORDS)
properties = st.dictionaries(names, values)
numbers = st.sampled_from((0, 7, 12, 2147483648, 2.5, 1e3))
leaves = st.one_of(
    st.tuples(st.just("order"), names, st.sampled_from(sorted(ORDERS)), numbers),
    st.tuples(st.just("same"), names, words),
    st.tuples(st.just("differs"), names, words),
    st.tuples(st.just("null"), names, st.booleans()),
    st.tuples(st.just("in"), names, st.lists(words, min_size=1, max_size=6), st.booleans()),
    st.tuples(
        st.just("part"),
        names,
        st.sampled_from(("CONTAINS", "STARTSWITH", "ENDSWITH")),
        st.sampled_from(("x", "y", "", "'")),
        st.booleans(),
    ),
    st.tuples(st.just("between"), names, numbers, numbers, st.booleans()),
)
trees = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.tuples(st.just("not"), inner),
        st.tuples(st.sampled_from(("AND", "OR")), inner, inner),
    ),
    max_leaves=12,
)


class CannotCompareError(Exception):
    pass


def number(text: str, like: float) -> float:
    """Text as the kind of number that it is compared with."""
    if isinstance(like, float):
        if text in WORDS:
            raise CannotCompareError
        return float(text)
    if text not in NUMBERS or not text.lstrip("-").isdigit():
        raise CannotCompareError
    value = int(text)
    if abs(like) < 2**31 and not -(2**31) <= value < 2**31:
        raise CannotCompareError
    return value


def quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def written(tree: Any) -> str:
    kind, *rest = tree
    if kind == "not":
        return f"NOT ({written(rest[0])})"
    if kind in ("AND", "OR"):
        return f"({written(rest[0])}) {kind} ({written(rest[1])})"
    name, *rest = rest
    negative = "NOT " if rest[-1] is True else ""
    return (
        f"{name} "
        + {
            "order": lambda: f"{rest[0]} {rest[1]}",
            "same": lambda: f"= {quoted(rest[0])}",
            "differs": lambda: f"<> {quoted(rest[0])}",
            "null": lambda: f"IS {negative}NULL",
            "in": lambda: f"{negative}IN ({', '.join(map(quoted, rest[0]))})",
            "part": lambda: f"{negative}{rest[0]} {quoted(rest[1])}",
            "between": lambda: f"{negative}BETWEEN {min(rest[:2])} AND {max(rest[:2])}",
        }[kind]()
    )


def either(left: Any, right: Any, stop: bool) -> bool | None:
    first = left()
    if first is stop:
        return stop
    second = right()
    if second is stop:
        return stop
    return None if first is None or second is None else not stop


def meant(tree: Any, given_: dict[str, str]) -> bool | None:
    kind, *rest = tree
    if kind == "not":
        value = meant(rest[0], given_)
        return None if value is None else not value
    if kind in ("AND", "OR"):
        return either(
            lambda: meant(rest[0], given_), lambda: meant(rest[1], given_), stop=kind == "OR"
        )
    name, *rest = rest
    return leaf_meant(kind, given_.get(name), rest)


def leaf_meant(kind: str, value: str | None, rest: list[Any]) -> bool | None:
    if kind == "null":
        return (value is None) is not rest[0]
    if kind == "part":
        word, part, negative = rest
        if value is None or not part:
            return False
        return {
            "CONTAINS": part in value,
            "STARTSWITH": value.startswith(part),
            "ENDSWITH": value.endswith(part),
        }[word] is not negative
    if value is None:
        return None
    if kind in ("same", "differs"):
        return (value == rest[0]) is (kind == "same")
    if kind == "in":
        return (value in rest[0]) is not rest[1]
    if kind == "order":
        return ORDERS[rest[0]](number(value, rest[1]), rest[1])
    low, high, negative = min(rest[:2]), max(rest[:2]), rest[2]
    if negative:
        return number(value, low) < low or number(value, high) > high
    return number(value, low) >= low and number(value, high) <= high


@given(trees, st.lists(properties, min_size=1, max_size=5))
def test_compiled_expressions_mean_what_the_rules_say(tree, contexts):
    expression = compile_expression(SQL92, written(tree))
    for context in contexts:
        try:
            wanted: object = meant(tree, context)
        except CannotCompareError:
            wanted = "cannot compare"
        try:
            got: object = expression.evaluate(context)
        except EvaluationError:
            got = "cannot compare"
        assert got == wanted, (expression.text, context)
        assert expression.matches(context) is (wanted is True)


PIECES = st.sampled_from(
    (
        "a",
        "b",
        "NOT",
        "AND",
        "OR",
        "IN",
        "IS",
        "NULL",
        "BETWEEN",
        "CONTAINS",
        "STARTSWITH",
        "TRUE",
        "(",
        ")",
        ",",
        "+",
        "-",
        "=",
        "<>",
        "<",
        ">",
        "<=",
        ">=",
        "'x'",
        "''",
        "1",
        "0",
        "2.5",
        "9223372036854775808",
        ".",
        "'",
        "/*",
        "*/",
        "--",
        "#",
        "!",
        "é",
        "😀",
        "__import__",
        "eval",
        "lambda",
        " ",
        "\n",
        "\t",
        "\r\n",
        "\x00",
        "\ud800",
    )
)


@given(st.lists(PIECES, max_size=40).map(" ".join) | st.text(max_size=60), properties)
@example("__import__('os')", {})
@example("a = '\ud800'", {})
def test_any_text_compiles_or_is_refused_and_nothing_else_happens(text, context):
    try:
        expression = compile_expression(SQL92, text)
    except SelectorError:
        return
    assert expression.matches(context) in (True, False)


@given(st.text(max_size=40) | values)
def test_any_property_value_can_be_compared_or_not_but_never_raises(value):
    for text in ("a > 5", "a = 5.5", "a <> 3000000000", "a = TRUE", "a > b", "a = b"):
        assert compile_expression(SQL92, text).matches({"a": value, "b": "1"}) in (True, False)


def host(long: bool) -> dict[str, Any]:
    return {"address": bytes(16 if long else 4), "port": 10911}


@given(
    st.dictionaries(names, st.text("xyzé", min_size=1)),
    st.binary(max_size=30),
    st.text("tTé", min_size=1, max_size=60),
    st.sampled_from((MAGIC_V1, MAGIC_V2)),
    st.booleans(),
    st.booleans(),
)
def test_properties_are_found_in_every_kind_of_record(
    stored, body, topic, magic, born_v6, store_v6
):
    record = MessageRecord.build(
        {
            "magic": magic,
            "body_crc": 0,
            "queue_id": 0,
            "flag": 0,
            "queue_offset": 0,
            "phy_offset": 0,
            "sys_flag": born_v6 * BORNHOST_V6 | store_v6 * STOREHOSTADDRESS_V6,
            "born_timestamp": 0,
            "born_host": host(born_v6),
            "store_timestamp": 0,
            "store_host": host(store_v6),
            "reconsume_times": 0,
            "prepared_transaction_offset": 0,
            "body": body,
            "topic": topic.encode(),
            "properties": encode_properties(stored),
        }
    )
    assert record_properties(memoryview(record)) == stored
    matches = record_test(compile_expression(SQL92, "a IS NOT NULL"))
    assert matches(memoryview(record)) is ("a" in stored)


def test_a_record_that_expired_under_the_reader_does_not_match():
    assert not record_test(compile_expression(SQL92, "TRUE"))(memoryview(b""))
