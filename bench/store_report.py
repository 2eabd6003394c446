"""The store's figures as a table with their aims, and its place in docs/performance.md.

The result file has, for each phase, its command, machine and figures of every round: phases may be
run at different times, as each takes minutes. The page is written from that file alone.
"""

from __future__ import annotations

import json
import statistics
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.summary import OURS, THEIRS

DOCS = Path(__file__).parent.parent / "docs" / "performance.md"
BEGIN = "<!-- store figures: written by python -m bench.store --docs -->"
END = "<!-- end of store figures -->"

Figures = dict[str, dict[str, list[float]]]  # server, figure


@dataclass(frozen=True)
class Row:
    """One figure. The aim bounds `of`: ours, or ours ÷ Java's; a second bound on ours may do."""

    phase: str
    key: str
    title: str
    of: str = ""
    at_least: float | None = None
    at_most: float | None = None
    or_ours_at_least: float | None = None

    def aim(self) -> str:
        if not self.of:
            return ""
        bound = f"≤ {self.at_most}" if self.at_least is None else f"≥ {self.at_least:g}"
        other = f", or ours ≥ {self.or_ours_at_least:g}" if self.or_ours_at_least else ""
        return f"{self.of} {bound}{other}"

    def is_met(self, ours: float, theirs: float) -> bool:
        if self.or_ours_at_least is not None and ours >= self.or_ours_at_least:
            return True
        value = ours if self.of == "ours" else ours / theirs
        if self.at_least is not None:
            return value >= self.at_least
        return self.at_most is None or value <= self.at_most


ROWS = (
    Row(
        "sync",
        "messages_per_second",
        "SYNC_FLUSH, 64 threads: messages/s",
        "ours ÷ Java",
        at_least=1.0,
    ),
    Row("sync", "average_ms", "SYNC_FLUSH, 64 threads: a send, ms"),
    Row("sync", "cpu_us_per_message", "SYNC_FLUSH, 64 threads: server CPU per message, µs"),
    Row("queues", "Few_messages_per_second", "8 queues: messages/s"),
    Row("queues", "Many_messages_per_second", "50,000 queues: messages/s"),
    Row("queues", "many_by_few", "50,000 queues ÷ 8 queues", "ours", at_least=0.85),
    Row("queues", "Few_cpu_us_per_message", "8 queues: server CPU per message, µs"),
    Row("queues", "Many_cpu_us_per_message", "50,000 queues: server CPU per message, µs"),
    Row(
        "queues", "RssAnon_mb", "50,000 queues with data: memory (RssAnon), MB", "ours", at_most=300
    ),
    Row("queues", "VmRSS_mb", "50,000 queues with data: memory with mapped files (VmRSS), MB"),
    Row("queues", "ready_seconds_after_clean_stop", "50,000 queues with data: ready in, s"),
    Row(
        "restart",
        "ready_seconds_after_clean_stop",
        "10 million messages, clean stop: ready in, s",
        "ours",
        at_most=3.0,
    ),
    Row(
        "restart",
        "ready_seconds_after_kill",
        "10 million messages, kill -9: ready in, s",
        "ours ÷ Java",
        at_most=1.0,
    ),
    Row(
        "scan",
        "mb_per_second",
        "recovery scan: MB/s of CommitLog",
        "ours ÷ Java",
        at_least=0.5,
        or_ours_at_least=200,
    ),
)


def table(phases: dict[str, Any]) -> str:
    lines = [
        "| figure | RocketMQ 5.5.0 | PyriteMQ | ours ÷ Java | aim |",
        "|---|---:|---:|---:|---|",
    ]
    for row in ROWS:
        figures: Figures = phases.get(row.phase, {}).get("figures", {})
        if row.key in figures.get(OURS, {}) and row.key in figures.get(THEIRS, {}):
            lines.append(_line(row, figures))
    return "\n".join(lines)


def _line(row: Row, figures: Figures) -> str:
    ours, theirs = (statistics.median(figures[name][row.key]) for name in (OURS, THEIRS))
    aim = row.aim()
    if aim:
        aim += ": met" if row.is_met(ours, theirs) else ": **missed**"
    ratio = f"{ours / theirs:.2f}" if theirs else ""
    return f"| {row.title} | {_words(theirs)} | {_words(ours)} | {ratio} | {aim} |"


def _words(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 or value == 0 else f"{value:.3g}"


def circumstances(phases: dict[str, Any]) -> str:
    """A line for each phase: when, where, by which command."""
    lines = []
    for name, phase in phases.items():
        where = phase["environment"]
        lines.append(
            f"- {name}: `{phase['command']}`, {where['date']}, load average {where['load']:g} "
            f"before it; {where['cpu']}, {where['cores']} cores, {where['memory_gib']} GiB, Linux "
            f"{where['kernel']}, Python {where['python']}"
        )
    return "\n".join(lines)


def save(phases: dict[str, Any], path: Path) -> dict[str, Any]:
    """Replace these phases in the result file; returns all that it holds now."""
    known = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    known |= phases
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(known, indent=1) + "\n", encoding="utf-8")
    return known


def write_docs(phases: dict[str, Any], page: Path = DOCS) -> None:
    """Put table and circumstances between the markers of the page."""
    begin, _, rest = page.read_text(encoding="utf-8").partition(BEGIN)
    end = rest.partition(END)[2]
    text = f"{table(phases)}\n\n{circumstances(phases)}\n"
    page.write_text(f"{begin}{BEGIN}\n{text}{END}{end}", encoding="utf-8")
