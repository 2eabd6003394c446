"""Reports of a run: what other programs read, and what people see."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

from click.testing import CliRunner

from pyritemq.conformance import catalogue, html_report, reports
from pyritemq.conformance.cli import main
from pyritemq.conformance.results import (
    FAILED,
    NOT_APPLICABLE,
    PASSED,
    SKIPPED,
    Evidence,
    Result,
    Run,
)

if TYPE_CHECKING:
    from pathlib import Path

EVIDENCE = Evidence("offset", "3", "4 <&>\x00", ("→ send", "← ok"), "server said", "client said")
RESULTS = [
    Result("SEND-001", "java-5.5.0", "pyritemq", PASSED, 0.5),
    Result("SEND-001", "java-5.5.0", "rocketmq", FAILED, 1.5, "offset: a | b \x00", EVIDENCE),
    Result("TIMER-006", "java-5.5.0", "pyritemq", NOT_APPLICABLE, reason="since client 9"),
    Result("VIP-003", "wire", "pyritemq", SKIPPED, reason="not ours"),
]


def a_run() -> Run:
    names = {"PyriteMQ": "1"}
    return Run(["pyritemq", "rocketmq"], ["java-5.5.0"], "local", "now", 2.0, list(RESULTS), names)


def cases() -> list[catalogue.Case]:
    ids = {result.case_id for result in RESULTS}
    return [case for case in catalogue.load() if case.id in ids]


def test_json_comes_back_as_it_was() -> None:
    assert reports.run_from_json(reports.to_json(a_run())) == a_run()


def test_junit_has_a_suite_for_each_server_and_client_and_each_failures_evidence() -> None:
    root = ET.fromstring(reports.to_junit(a_run(), cases()))
    assert [suite.get("name") for suite in root] == [
        "pyritemq java-5.5.0",
        "rocketmq java-5.5.0",
        "pyritemq wire",
    ]
    assert [suite.get("failures") for suite in root] == ["0", "1", "0"]
    assert [suite.get("skipped") for suite in root] == ["1", "0", "1"]
    story = root[1][0][0].text or ""
    for part in ("expected: 3", "got: 4 <&>", "→ send", "server said", "client said"):
        assert part in story


def test_the_page_needs_nothing_else_and_shows_the_evidence_as_text() -> None:
    page = html_report.to_html(a_run(), cases())
    assert re.findall(r'(?:src|href)="(?!#)', page) == []
    assert "<script" not in page
    assert "4 &lt;&amp;&gt;" in page
    assert 'href="#SEND-001-rocketmq-java-5.5.0"' in page
    assert 'id="SEND-001-rocketmq-java-5.5.0"' in page


def test_the_matrix_marks_each_cell_and_notes_why() -> None:
    page = reports.to_matrix(a_run(), cases())
    row = next(line for line in page.splitlines() if line.startswith("| SEND-001"))
    assert row.endswith("| ✓ | ✗ [2](#notes) |")
    assert "2. SEND-001, java-5.5.0, rocketmq: offset: a \\| b" in page
    assert "| java-5.5.0 | pyritemq | 1 | 0 | 0 | 1 |" in page


def test_runs_are_joined_and_the_later_result_counts(tmp_path: Path) -> None:
    first, second = tmp_path / "a.json", tmp_path / "b.json"
    first.write_text(reports.to_json(a_run()), encoding="utf-8")
    again = a_run()
    again.results = [Result("SEND-001", "java-5.5.0", "rocketmq", PASSED, 1.0)]
    second.write_text(reports.to_json(again), encoding="utf-8")
    matrix = tmp_path / "matrix.md"
    arguments = ["report", str(first), str(second), "--matrix", str(matrix)]
    assert CliRunner().invoke(main, arguments[:2]).exit_code == 1
    result = CliRunner().invoke(main, [*arguments, "--report", str(tmp_path / "out")])
    assert result.exit_code == 0, result.output
    page = matrix.read_text(encoding="utf-8")
    assert "✗ [" not in page
    assert page.count("\n- now: ") == 2, "each of the runs is told"
    made = {path.name for path in (tmp_path / "out").iterdir()}
    assert made == {"results.json", "junit.xml", "report.html"}


def test_what_is_no_result_is_refused(tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.json"
    wrong.write_text("{}", encoding="utf-8")
    result = CliRunner().invoke(main, ["report", str(wrong)])
    assert result.exit_code == 1
    assert "not the results of a run" in result.output
