"""Selectors against RocketMQ's own parser: what it accepts, what it answers, what it says."""

import contextlib
import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from pyritemq.server.broker.filters.bloom import BloomFilter, BloomFilterData
from pyritemq.server.broker.filters.java_values import EvaluationError, order_doubles, text_of
from pyritemq.server.broker.filters.selector_nodes import DEPTH_MAX, SelectorError
from pyritemq.server.broker.filters.sql92 import LENGTH_MAX, SQL92, compile_expression

GOLDEN = json.loads((Path(__file__).parent / "java" / "selectors.json").read_text())


def matches(text, **properties):
    return compile_expression(SQL92, text).matches(properties)


def refusal(text, kind=SQL92):
    with pytest.raises(SelectorError) as caught:
        compile_expression(kind, text)
    return str(caught.value)


def answer(expression, properties):
    try:
        value = expression.evaluate(properties)
    except EvaluationError:
        return "X"
    return {True: "T", False: "F", None: "N"}[value]


@pytest.mark.parametrize("case", GOLDEN["expressions"], ids=lambda case: case["expression"])
def test_an_expression_means_what_it_means_to_java(case):
    if "error" in case:
        assert refusal(case["expression"]) == case["error"]
    else:
        expression = compile_expression(SQL92, case["expression"])
        assert "".join(answer(expression, p) for p in GOLDEN["properties"]) == case["answers"]


@pytest.mark.parametrize("case", GOLDEN["bloom"], ids=lambda case: str(case["given"]))
def test_bloom_bits_are_those_of_java(case):
    error_percent, expected, text = case["given"]
    bloom = BloomFilter(error_percent=error_percent, expected=expected)
    data = bloom.generate(text)
    assert data.to_json() == {"bitNum": case["bitNum"], "bitPos": case["bitPos"]}
    assert bloom.is_valid(data)
    assert BloomFilterData.from_json(data.to_json()) == data


def test_bloom_bits_of_another_size_are_not_valid():
    bloom = BloomFilter(error_percent=20, expected=32)
    assert not bloom.is_valid(BloomFilter(error_percent=20, expected=64).generate("x"))
    assert not bloom.is_valid(BloomFilterData((1, 2), bloom.bit_num))
    assert not bloom.is_valid(None)


def test_a_match_is_true_only_and_not_unknown_or_incomparable():
    assert matches("a > 5", a="6")
    assert not matches("a > 5", a="5")
    assert not matches("a > 5")
    assert not matches("NOT (a > 5)")
    assert not matches("a > 5", a="six")


def test_an_incomparable_value_ends_the_evaluation_wherever_it_stands():
    assert not matches("a > 5 OR b = 'x'", a="six", b="x")
    assert matches("b = 'x' OR a > 5", a="six", b="x")


def test_a_type_that_no_filter_has_is_refused():
    assert "GROOVY" in refusal("a = 1", kind="GROOVY")


def test_long_chains_of_and_and_or_do_not_nest():
    links = [f"a = {number}" for number in range(1000)]
    assert matches(" OR ".join(links), a="999")
    assert not matches(" AND ".join(links), a="1")


@pytest.mark.parametrize("word", ["NOT ", "- ", "(NOT "])
def test_nesting_has_a_bound(word):
    text = word * (DEPTH_MAX + 50) + "a" + ")" * (DEPTH_MAX + 50 if "(" in word else 0)
    assert "nests deeper" in refusal(text + " IS NULL")


def test_brackets_and_pluses_alone_cost_no_depth():
    assert matches("(" * 2000 + "+" * 2000 + "a = 'x'" + ")" * 2000, a="x")


def test_an_expression_at_the_depth_bound_can_be_evaluated():
    assert matches("NOT " * (DEPTH_MAX - 4) + "(a > 5)", a="6")


def test_length_has_a_bound():
    assert "longer than" in refusal("a = '" + "x" * LENGTH_MAX + "'")


def test_an_expression_is_compiled_once():
    assert compile_expression(SQL92, "a = 'once'") is compile_expression(SQL92, "a = 'once'")


def test_a_server_without_sql_filters_does_not_load_the_parser():
    code = (
        "import sys, pyritemq.server.cli, pyritemq.server.broker.broker;"
        "import pyritemq.server.broker.processors;"
        "sys.exit('lark' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize(
    ("value", "text"),
    [(5.5, "5.5"), (1e10, "1.0E10"), (-1.25e-7, "-1.25E-7"), (1e7, "1.0E7"), (100.0, "100.0")],
)
def test_doubles_are_written_as_java_does(value, text):
    assert text_of(value) == text


def test_doubles_have_a_total_order():
    nan = float("nan")
    assert order_doubles(nan, float("inf")) > 0
    assert order_doubles(float("inf"), nan) < 0
    assert order_doubles(nan, nan) == 0
    assert order_doubles(-0.0, 0.0) < 0


@pytest.mark.parametrize(
    "text",
    [
        "-" * LENGTH_MAX,
        "\n" + "-" * (LENGTH_MAX - 1),
        "a=1 OR " * (LENGTH_MAX // 7),
        "(" * LENGTH_MAX,
    ],
    ids=["dashes", "dashes after a line", "chain", "brackets"],
)
def test_no_text_within_the_bound_takes_long(text):
    """Dashes once took ten seconds, a chain one; the bound is generous for a busy machine."""
    began = time.process_time()
    with contextlib.suppress(SelectorError):
        compile_expression(SQL92, text)
    assert time.process_time() - began < 3


def test_comments_to_the_end_of_a_line_are_passed_over_but_not_within_texts():
    assert matches("a = 'x' -- one\r\n AND -- two '\n b = '--\n'", a="x", b="--\n")
    assert matches("a = /* -- */ 'x'", a="x")
    assert matches("a > --5", a="6")
