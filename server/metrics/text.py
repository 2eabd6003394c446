"""Prometheus' text form: families of samples in, text out."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from pyritemq.server.histogram import Histogram

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

GAUGE, COUNTER, HISTOGRAM = "gauge", "counter", "histogram"
_ESCAPES = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n"})


@dataclass(slots=True)
class Family:
    """One metric with all its samples; a histogram has several for each set of labels."""

    name: str
    kind: str
    text: str
    samples: list[tuple[str, str, float]] = field(default_factory=list)

    def add(self, value: float, labels: Mapping[str, str]) -> None:
        self.samples.append(("", label_text(labels), value))

    def add_histogram(self, histogram: Histogram, labels: Mapping[str, str]) -> None:
        text, count = label_text(labels), 0
        for bound, count in histogram.cumulative():
            le = f'le="{"+Inf" if bound == float("inf") else float(bound)}"'
            self.samples.append(("_bucket", f"{text},{le}" if text else le, count))
        self.samples.append(("_count", text, count))
        self.samples.append(("_sum", text, histogram.sum))


def label_text(labels: Mapping[str, str]) -> str:
    """Labels by name, values escaped."""
    return ",".join(
        f'{name}="{value.translate(_ESCAPES)}"' for name, value in sorted(labels.items())
    )


def render(families: Iterable[Family]) -> str:
    """The whole text; a family without samples is left out, as in RocketMQ."""
    return "".join(line for family in families if family.samples for line in _lines(family))


def _lines(family: Family) -> Iterator[str]:
    yield f"# HELP {family.name} {family.text}\n"
    yield f"# TYPE {family.name} {family.kind}\n"
    for tail, labels, value in family.samples:
        braces = f"{{{labels}}}" if labels else ""
        yield f"{family.name}{tail}{braces} {value}\n"
