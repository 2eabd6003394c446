"""The report's page: whatever a store holds, it is shown as text."""

from xml.etree import ElementTree

import pytest

from pyritemq.spark.plots import columns_svg, rows_svg
from pyritemq.spark.report import Report
from pyritemq.spark.report_html import render

NASTY = "<script>alert('x')</script>"


def report(**changes):
    names = ("topics", "per_slot", "hot_keys", "tags", "dead_letters")
    empty = {name: [] for name in names}
    return Report(**{"store": "/store", "slot_minutes": 1, **empty, **changes})


def test_a_store_without_messages_has_a_report_too():
    page = render(report())
    assert "0 messages in 0 topics, nothing stored" in page
    assert page.count("nothing to show") == 1


def test_names_from_the_store_are_escaped_and_empty_minutes_are_shown():
    topic = {
        "topic": NASTY, "messages": 1_234_567, "bytes": 10, "size_median": 1, "size_max": 2,
        "first": 0, "last": 180_000, "latency": [1, 2, 3],
    }  # fmt: skip
    page = render(
        report(
            topics=[topic],
            per_slot=[{"slot": 0, "messages": 2}, {"slot": 180_000, "messages": 1}],
            hot_keys=[{"topic": "A", "key": NASTY, "messages": 5}],
            tags=[{"topic": "A", "tags": None, "messages": 5}],
            dead_letters=[{"topic": "%DLQ%g", "origin": None, "messages": 1}],
        )
    )
    assert "<script" not in page
    assert "1,234,567" in page
    assert page.count("<title>1970-01-01 00:0") == 4, "four minutes, two of them empty"
    assert "A (none)" in page
    assert "(unknown)" in page


@pytest.mark.parametrize("points", [[], [("a&b", 0)], [(NASTY, 3), ("b", 5.25)]])
def test_charts_are_well_formed(points):
    for chart in (columns_svg, rows_svg):
        assert ElementTree.fromstring(chart(points, title="a < b")).tag.endswith("svg")
