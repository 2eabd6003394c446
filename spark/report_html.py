"""A report as one HTML file: nothing is loaded from elsewhere, and every value is escaped."""

import datetime as dt
from collections.abc import Sequence
from html import escape
from typing import Any, Final

from pyritemq.spark.plots import Point, columns_svg, rows_svg
from pyritemq.spark.report import Report, Table

_STYLE: Final = (
    "body{font:15px sans-serif;margin:2em auto;max-width:60em;color:#222}"
    "table{border-collapse:collapse;margin:1em 0}td,th{padding:.2em .8em;text-align:right;"
    "border-bottom:1px solid #ddd}td:first-child,th:first-child{text-align:left}"
)


def render(report: Report) -> str:
    parts = [
        "<!doctype html><meta charset='utf-8'><title>Store report</title>",
        f"<style>{_STYLE}</style><h1>{escape(report.store)}</h1>",
        f"<p>{report.messages:,} messages in {len(report.topics)} topics, {_span(report.topics)}.",
        "<h2>Topics</h2>",
        _table(("topic", "messages", "bytes", "median size", "largest"), _topic_rows(report)),
        "<h2>Rate</h2>",
        columns_svg(_rate(report), title=f"messages per {_minutes(report.slot_minutes)}"),
        "<h2>Latency from born to stored</h2>",
        _table(("topic", "median ms", "99% ms", "highest ms"), _latency_rows(report)),
        rows_svg(_latency_points(report), title="99% of messages are stored within", unit=" ms"),
        "<h2>Tags</h2>",
        rows_svg(_named(report.tags, "tags"), title="messages by topic and tag"),
        "<h2>Hot keys</h2>",
        _counted(report.hot_keys, "key"),
        "<h2>Dead letters</h2>",
        _counted(report.dead_letters, "origin"),
    ]
    return "\n".join(parts)


def _topic_rows(report: Report) -> list[list[Any]]:
    names = ("topic", "messages", "bytes", "size_median", "size_max")
    return [[each[name] for name in names] for each in report.topics]


def _latency_rows(report: Report) -> list[list[Any]]:
    return [[each["topic"], *each["latency"]] for each in report.topics]


def _latency_points(report: Report) -> list[Point]:
    return [(each["topic"], max(each["latency"][1], 0)) for each in report.topics[:15]]


def _rate(report: Report) -> list[Point]:
    """Slots without messages are shown too."""
    step = report.slot_minutes * 60_000
    counts = {int(each["slot"]): each["messages"] for each in report.per_slot}
    if not counts:
        return []
    return [(_time(at), counts.get(at, 0)) for at in range(min(counts), max(counts) + 1, step)]


def _named(rows: Table, name: str) -> list[Point]:
    return [(f"{each['topic']} {each[name] or '(none)'}", each["messages"]) for each in rows]


def _counted(rows: Table, name: str) -> str:
    if not rows:
        return "<p>None."
    table = [[each["topic"], each[name] or "(unknown)", each["messages"]] for each in rows]
    return _table(("topic", name, "messages"), table)


def _table(heads: Sequence[str], rows: list[list[Any]]) -> str:
    top = "".join(f"<th>{escape(head)}</th>" for head in heads)
    lines = ("".join(f"<td>{_cell(cell)}</td>" for cell in row) for row in rows)
    return f"<table><tr>{top}</tr>{''.join(f'<tr>{line}</tr>' for line in lines)}</table>"


def _cell(cell: object) -> str:
    return f"{cell:,}" if isinstance(cell, int) else escape(str(cell))


def _span(topics: Table) -> str:
    if not topics:
        return "nothing stored"
    first, last = min(each["first"] for each in topics), max(each["last"] for each in topics)
    return f"stored from {_time(first)} to {_time(last)} UTC"


def _time(ms: int) -> str:
    try:
        return dt.datetime.fromtimestamp(ms / 1000, dt.UTC).strftime("%Y-%m-%d %H:%M")
    except (ValueError, OverflowError, OSError):
        return f"{ms} ms"


def _minutes(count: int) -> str:
    return "minute" if count == 1 else f"{count} minutes"
