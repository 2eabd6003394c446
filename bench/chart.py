"""The comparison as one SVG: for each figure two bars, the longer one filling the row."""

from __future__ import annotations

from html import escape
from typing import Any

from bench.summary import OURS, THEIRS, target_words

WIDTH, LEFT, RIGHT = 1000, 340, 190
ROW, BAR, TOP = 46, 15, 84
COLOURS = {THEIRS: "#8a94a6", OURS: "#d9822b"}
NAMES = {THEIRS: "RocketMQ 5.5.0", OURS: "PyriteMQ"}
FONT = "font-family='system-ui, sans-serif'"


def draw(rows: list[dict[str, Any]], title: str, subtitle: str) -> str:
    rows = [row for row in rows if any(row["medians"].values())]  # nothing to see in two zeros
    height = TOP + ROW * len(rows) + 16
    parts = [
        f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {WIDTH} {height}' {FONT}>",
        f"<rect width='{WIDTH}' height='{height}' fill='#ffffff'/>",
        _text(20, 30, title, size=18, weight="600"),
        _text(20, 52, subtitle, size=12, fill="#5b6472"),
        *_legend(),
    ]
    for index, row in enumerate(rows):
        parts += _row(row, TOP + ROW * index)
    return "\n".join([*parts, "</svg>", ""])


def _legend() -> list[str]:
    parts: list[str] = []
    for index, name in enumerate((THEIRS, OURS)):
        x = WIDTH - 300 + index * 150
        parts.append(f"<rect x='{x}' y='19' width='14' height='14' fill='{COLOURS[name]}'/>")
        parts.append(_text(x + 20, 31, NAMES[name], size=12))
    return parts


def _row(row: dict[str, Any], y: int) -> list[str]:
    medians = row["medians"]
    longest = max(medians.values()) or 1
    parts = [_text(LEFT - 14, y + BAR + 4, row["title"], size=12, anchor="end")]
    for index, name in enumerate(name for name in (THEIRS, OURS) if name in medians):
        width = max(1.0, medians[name] / longest * (WIDTH - LEFT - RIGHT))
        top = y + index * (BAR + 1)
        parts.append(
            f"<rect x='{LEFT}' y='{top}' width='{width:.1f}' height='{BAR}' "
            f"fill='{COLOURS[name]}'/>"
        )
        label = f"{medians[name]:,.4g} {row['unit']}"
        if medians[name] >= 1000:
            label = f"{medians[name]:,.0f} {row['unit']}"
        parts.append(_text(LEFT + width + 6, top + 12, label, size=11, fill="#333b47"))
    if row["ratio"] is not None:
        words = f"{row['ratio']:.2f}"
        parts.append(_text(WIDTH - 20, y + 12, words, size=13, anchor="end", weight="600"))
        colour = "#b42318" if row["met"] is False else "#5b6472"
        parts.append(
            _text(WIDTH - 20, y + 28, target_words(row), size=10, anchor="end", fill=colour)
        )
    return parts


def _text(
    x: float,
    y: float,
    words: str,
    *,
    size: int,
    fill: str = "#1d2430",
    anchor: str = "start",
    weight: str = "400",
) -> str:
    return (
        f"<text x='{x:.1f}' y='{y:.1f}' font-size='{size}' fill='{fill}' "
        f"text-anchor='{anchor}' font-weight='{weight}'>{escape(words)}</text>"
    )
