"""From rounds of figures to medians, ratios and verdicts."""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from typing import Any

OURS, THEIRS = "pyritemq", "rocketmq"


@dataclass(frozen=True)
class Figure:
    """One row of the comparison. A target bounds ours ÷ theirs; at_least tells from which side."""

    key: str
    title: str
    unit: str
    target: float | None = None
    at_least: bool = False


FIGURES = (
    Figure("send_per_second", "send: messages/s", "/s", 1.0, at_least=True),
    Figure("send_cpu_us", "send: server CPU per message", "µs", 0.75),
    Figure(
        "send_whole_cpu_us", "send: server CPU per message, with what is left for later", "µs", 0.75
    ),
    Figure("consume_per_second", "consume a backlog: messages/s", "/s", 1.0, at_least=True),
    Figure("consume_cpu_us", "consume a backlog: server CPU per message", "µs", 1.0),
    Figure("live_per_second", "send and consume at once: messages/s", "/s"),
    Figure("live_cpu_us", "send and consume at once: server CPU per message", "µs"),
    Figure("live_born_to_consumed_ms", "send and consume at once: born to consumed", "ms"),
    Figure("send_p50_us_64_threads", "send latency p50, 64 threads", "µs"),
    Figure("send_p99_us_64_threads", "send latency p99, 64 threads", "µs"),
    Figure("send_p50_us_1_threads", "send latency p50, 1 thread", "µs"),
    Figure("send_p99_us_1_threads", "send latency p99, 1 thread", "µs"),
    Figure("send_failed", "sends that failed", ""),
    Figure("rss_fresh_mib", "memory when ready (RSS)", "MiB", 1 / 8),
    Figure("rss_anon_after_send_mib", "memory after the send load (RssAnon)", "MiB", 1 / 8),
    Figure("rss_after_send_mib", "memory after the send load (RSS, with mapped files)", "MiB"),
    Figure("ready_seconds", "time to ready", "s", 1 / 8),
)


def summarise(rounds: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """One row for each figure: the median of each server, and of the rounds' ratios."""
    return [_row(figure, rounds) for figure in FIGURES if _present(figure, rounds)]


def _present(figure: Figure, rounds: list[dict[str, Any]]) -> bool:
    return any(figure.key in run["figures"] for one in rounds for run in one.values())


def _row(figure: Figure, rounds: list[dict[str, Any]]) -> dict[str, Any]:
    values = {
        name: [
            one[name]["figures"][figure.key]
            for one in rounds
            if figure.key in one.get(name, {"figures": {}})["figures"]
        ]
        for name in (THEIRS, OURS)
    }
    ratios = [
        mine / other for mine, other in zip(values[OURS], values[THEIRS], strict=False) if other
    ]
    ratio = statistics.median(ratios) if ratios else None
    return {
        "key": figure.key,
        "title": figure.title,
        "unit": figure.unit,
        "values": values,
        "medians": {name: statistics.median(seen) for name, seen in values.items() if seen},
        "ratio": ratio,
        "ratios": ratios,
        "target": figure.target,
        "at_least": figure.at_least,
        "met": _met(figure, ratio),
    }


def _met(figure: Figure, ratio: float | None) -> bool | None:
    if ratio is None or figure.target is None:
        return None
    return ratio >= figure.target if figure.at_least else ratio <= figure.target


def table(rows: list[dict[str, Any]]) -> str:
    """The comparison as a Markdown table; it goes to the terminal and into docs/performance.md."""
    lines = [
        "| figure | RocketMQ 5.5.0 | PyriteMQ | ours ÷ theirs | target |",
        "|---|---:|---:|---:|---|",
    ]
    for row in rows:
        cells = [
            row["title"],
            _value(row, THEIRS),
            _value(row, OURS),
            "" if row["ratio"] is None else f"{row['ratio']:.3f}",
            target_words(row),
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _value(row: dict[str, Any], name: str) -> str:
    if name not in row["medians"]:
        return ""
    median = row["medians"][name]
    digits = 0 if median >= 1000 else 2 if median < 10 else 1
    return f"{median:,.{digits}f} {row['unit']}"


def target_words(row: dict[str, Any]) -> str:
    if row["target"] is None:
        return ""
    sign = "≥" if row["at_least"] else "≤"
    verdict = {True: ", met", False: ", NOT met", None: ""}[row["met"]]
    return f"{sign} {row['target']:g}{verdict}"
