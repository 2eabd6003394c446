"""What became of each case: the values that the runner makes and the reports show."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

PASSED = "passed"
FAILED = "failed"
SKIPPED = "skipped"
NOT_APPLICABLE = "n/a"


@dataclass(frozen=True)
class Evidence:
    """Why a case failed: what was checked, what was said on both sides."""

    what: str
    expected: str = ""
    got: str = ""
    transcript: tuple[str, ...] = ()
    server_log: str = ""
    client_log: str = ""


@dataclass(frozen=True)
class Result:
    """One cell of the matrix."""

    case_id: str
    client: str
    server: str
    status: str
    seconds: float = 0.0
    reason: str = ""
    evidence: Evidence | None = None

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass
class Run:
    """All that one command did."""

    servers: list[str]
    clients: list[str]
    launcher: str
    started: str
    seconds: float = 0.0
    results: list[Result] = field(default_factory=list)
    versions: dict[str, str] = field(default_factory=dict)
    parts: list[str] = field(default_factory=list)
    """Of runs that were made apart and joined: what each was."""

    def words(self) -> str:
        """What it was, in one line."""
        where = f"{', '.join(self.clients)} as {self.launcher}"
        on = ", ".join(self.servers)
        return f"{self.started}: {len(self.results)} cells in {self.seconds:.0f} s on {on}; {where}"

    def failed(self) -> list[Result]:
        return [result for result in self.results if result.status == FAILED]

    def counts(self) -> dict[str, int]:
        counts = dict.fromkeys((PASSED, FAILED, SKIPPED, NOT_APPLICABLE), 0)
        for result in self.results:
            counts[result.status] += 1
        return counts


def from_json(data: dict[str, Any]) -> Result:
    evidence = data.pop("evidence", None)
    if evidence is not None:
        evidence["transcript"] = tuple(evidence.get("transcript", ()))
        evidence = Evidence(**evidence)
    return Result(**data, evidence=evidence)
