"""Small charts as SVG text, for the report and for pages: no library, no script, one colour."""

from collections.abc import Sequence
from html import escape
from typing import Final

WIDTH: Final = 720
HEIGHT: Final = 200
LEFT: Final = 70
BOTTOM: Final = 24
INK: Final = "#b0772b"
ROW: Final = 22

Point = tuple[str, float]


def columns_svg(points: Sequence[Point], *, title: str) -> str:
    """Upright bars in the order given: a value over time. The highest and the ends are labelled."""
    if not points:
        return _svg(title, 40, "<text x='10' y='32'>nothing to show</text>")
    highest = max(value for _, value in points) or 1
    room, tall = WIDTH - LEFT - 10, HEIGHT - BOTTOM - 30
    wide = room / len(points)
    parts = []
    for at, (label, value) in enumerate(points):
        size = value / highest * tall
        x, y = LEFT + at * wide, 30 + tall - size
        parts.append(
            f"<rect x='{x:.1f}' y='{y:.1f}' width='{max(wide - 1, 0.5):.1f}' height='{size:.1f}' "
            f"fill='{INK}'><title>{escape(label)}: {value:,.6g}</title></rect>"
        )
    parts.append(f"<text x='{LEFT - 6}' y='38' text-anchor='end'>{highest:,.6g}</text>")
    parts.append(f"<text x='{LEFT - 6}' y='{30 + tall}' text-anchor='end'>0</text>")
    parts.append(f"<text x='{LEFT}' y='{HEIGHT - 6}'>{escape(points[0][0])}</text>")
    if len(points) > 1:
        last = escape(points[-1][0])
        parts.append(f"<text x='{WIDTH - 10}' y='{HEIGHT - 6}' text-anchor='end'>{last}</text>")
    return _svg(title, HEIGHT, "".join(parts))


def rows_svg(points: Sequence[Point], *, title: str, unit: str = "") -> str:
    """Lying bars, each with its name and value: shares, or percentiles."""
    highest = max((value for _, value in points), default=0) or 1
    left, room = 200, WIDTH - 200 - 110
    parts = []
    for at, (label, value) in enumerate(points):
        y = 30 + at * ROW
        size = value / highest * room
        parts.append(
            f"<text x='{left - 8}' y='{y + 14}' text-anchor='end'>{escape(label[:28])}</text>"
            f"<rect x='{left}' y='{y + 2}' width='{size:.1f}' height='{ROW - 6}' fill='{INK}'/>"
            f"<text x='{left + size + 6:.1f}' y='{y + 14}'>{value:,.6g}{escape(unit)}</text>"
        )
    return _svg(title, 40 + ROW * max(len(points), 1), "".join(parts))


def _svg(title: str, height: int, inside: str) -> str:
    return (
        f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {WIDTH} {height}' width='{WIDTH}' "
        f"height='{height}' font-family='sans-serif' font-size='12'>"
        f"<text x='10' y='16' font-weight='bold'>{escape(title)}</text>{inside}</svg>"
    )
