"""The figures of bench.spark as the table of docs/spark.md."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

PAGE = Path(__file__).parents[1] / "docs" / "spark.md"
BEGIN = "<!-- figures: written by python -m bench.spark --docs -->\n"
END = "<!-- end of figures -->\n"
WORKER_MB_MAX = 500


def put_figures(result: dict[str, Any], page: Path = PAGE) -> None:
    """Replace the page's table. Only parts that were measured have rows."""
    before, rest = page.read_text(encoding="utf-8").split(BEGIN)
    after = rest.split(END)[1]
    page.write_text(before + BEGIN + figures(result) + END + after, encoding="utf-8")


def figures(result: dict[str, Any]) -> str:
    today = dt.datetime.now(dt.UTC).date()
    machine, load = result["machine"], result["load before"]
    lines = [
        f"{today}, {machine}, load before {load}, {result['messages']:,} messages.",
        "",
        "| figure | measured | aim |",
        "|---|---|---|",
        *(f"| {name} | {measured} | {aim} |" for name, measured, aim in _rows(result)),
        "",
    ]
    return "\n".join(lines)


def _rows(result: dict[str, Any]) -> Iterator[tuple[str, str, str]]:
    for name, aim in (("fixed columns + value", 3.0), ("with key, tags, id, map", 0.8)):
        if found := result.get(f"decode alone, {name}"):
            rate = found["M rows/s of CPU"]
            yield f"decode alone, {name}: M rows/s a core", _held(rate, aim), f"≥ {aim}"
    for name, aim in (("sum of lengths", 0.7), ("all columns to noop", 0.5)):
        if found := result.get(name):
            rates = f" ({found['store rows/s']:,} ÷ {found['parquet rows/s']:,} rows/s)"
            yield f"{name}: store ÷ Parquet", _held(found["ratio"], aim) + rates, f"≥ {aim}"
    if found := result.get("stream"):
        sent, read = found["sent"], found["read"]
        yield (
            f"stream: read of {sent:,} sent at {found['messages/s sent']:,}/s",
            f"{read:,}" if read == sent else f"**{read:,}: missed**",
            "all",
        )
        catch_up = found["seconds to catch up after the last message"]
        yield "stream: largest lag, messages", f"{found['largest lag, messages']:,}", "bounded"
        yield "stream: seconds to catch up at the end", f"{catch_up}", ""
    if found := result.get("memory"):
        size = found["largest worker, MB"]
        shown = f"{size}" if size <= WORKER_MB_MAX else f"**{size}: missed**"
        yield (
            f"largest Python worker, store of {found['store GB']} GB: MB",
            shown,
            f"≤ {WORKER_MB_MAX}",
        )


def _held(value: float, aim: float) -> str:
    return f"{value}" if value >= aim else f"**{value}: missed**"
