"""Reports of a run for other programs: JSON, JUnit XML, and the matrix page in Markdown.

Pure functions from a Run to text; the command writes the files. The HTML page is in html_report.py.
"""

from __future__ import annotations

import dataclasses
import json
import re
from collections import defaultdict
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

from pyritemq.conformance.catalogue import CLIENT
from pyritemq.conformance.drivers.registry import CLIENTS
from pyritemq.conformance.pages import clients_lines
from pyritemq.conformance.results import FAILED, NOT_APPLICABLE, PASSED, SKIPPED, Run, from_json

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pyritemq.conformance.catalogue import Case
    from pyritemq.conformance.results import Result

MARKS = {PASSED: "✓", FAILED: "✗", SKIPPED: "skip", NOT_APPLICABLE: "n/a"}
_NOT_XML = re.compile("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")

_RUN_FOLDER = re.compile(r"/\S*pyritemq-conformance-\S+")
"""Where a run keeps its logs: gone when the page is read."""


def to_json(run: Run) -> str:
    return json.dumps(dataclasses.asdict(run), ensure_ascii=False, indent=1)


def run_from_json(text: str) -> Run:
    """A run that was written by to_json. Raises ValueError, TypeError or KeyError on other text."""
    data = json.loads(text)
    results = [from_json(one) for one in data.pop("results")]
    return Run(**data, results=results)


def joined(runs: Sequence[Run]) -> Run:
    """Several runs as one; the later result of a cell counts."""
    cells = {(one.case_id, one.client, one.server): one for run in runs for one in run.results}
    whole = Run(
        servers=list(dict.fromkeys(server for run in runs for server in run.servers)),
        clients=list(dict.fromkeys(client for run in runs for client in run.clients)),
        launcher=" and ".join(dict.fromkeys(run.launcher for run in runs)),
        started=min(run.started for run in runs),
        seconds=round(sum(run.seconds for run in runs), 1),
        results=list(cells.values()),
        parts=[part for run in runs for part in run.parts or [run.words()]],
    )
    for run in runs:
        whole.versions |= run.versions
    return whole


def to_junit(run: Run, cases: Sequence[Case]) -> str:
    """One suite for each server and client; what CI services read."""
    titles = {case.id: case.title for case in cases}
    root = ET.Element("testsuites", name="pyritemq-conformance", time=f"{run.seconds:.1f}")
    suites: dict[tuple[str, str], list[Result]] = defaultdict(list)
    for result in run.results:
        suites[result.server, result.client].append(result)
    for (server, client), results in suites.items():
        suite = ET.SubElement(root, "testsuite", name=f"{server} {client}")
        suite.set("tests", str(len(results)))
        suite.set("failures", str(sum(one.status == FAILED for one in results)))
        suite.set("skipped", str(sum(one.status in (SKIPPED, NOT_APPLICABLE) for one in results)))
        suite.set("time", f"{sum(one.seconds for one in results):.2f}")
        for result in results:
            _junit_case(suite, result, titles.get(result.case_id, ""))
    ET.indent(root)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ET.tostring(root, encoding="unicode") + "\n"


def _junit_case(suite: ET.Element, result: Result, title: str) -> None:
    family = result.case_id.partition("-")[0]
    made = ET.SubElement(suite, "testcase", name=f"{result.case_id} {title}")
    made.set("classname", f"{result.server}.{result.client}.{family}")
    made.set("time", f"{result.seconds:.2f}")
    if result.status == FAILED:
        failure = ET.SubElement(made, "failure", message=_xml(result.reason))
        failure.text = _xml("\n".join(_story(result)))
    elif result.status != PASSED:
        ET.SubElement(made, "skipped", message=_xml(result.reason))


def _story(result: Result) -> Iterable[str]:
    evidence = result.evidence
    if evidence is None:
        return
    yield evidence.what
    if evidence.expected:
        yield f"expected: {evidence.expected}"
        yield f"got: {evidence.got}"
    yield from ("", "what was said:", *evidence.transcript)
    yield from ("", "server:", evidence.server_log, "", "client:", evidence.client_log)


def _xml(text: str) -> str:
    """Control characters have no place in XML, not even escaped."""
    return _NOT_XML.sub("\N{REPLACEMENT CHARACTER}", text)


def columns(run: Run) -> list[tuple[str, str]]:
    """(server, client) in the order in which they were asked for; other kinds of cases last."""
    there = {(one.server, one.client) for one in run.results}
    clients = [*run.clients, *sorted({client for _, client in there} - set(run.clients))]
    return [
        (server, client)
        for client in clients
        for server in run.servers
        if (server, client) in there
    ]


def to_matrix(run: Run, cases: Sequence[Case]) -> str:
    """docs/conformance-matrix.md."""
    lines = [*_matrix_head(run), *_matrix_summary(run)]
    by_place = {(one.case_id, one.server, one.client): one for one in run.results}
    notes: list[str] = []
    for family in dict.fromkeys(case.family for case in cases):
        of_family = [case for case in cases if case.family == family]
        lines += ["", f"## {family.title}", ""]
        header = [f"{client} · {server}" for client in run.clients for server in run.servers]
        lines += [f"| case | | {' | '.join(header)} |", f"|---|---|{'---|' * len(header)}"]
        for case in of_family:
            marks = [
                _mark(by_place.get((case.id, server, _column(case, client))), notes)
                for client in run.clients
                for server in run.servers
            ]
            lines.append(f"| {case.id} | {case.title} | {' | '.join(marks)} |")
    if notes:
        lines += ["", "## Notes", "", *(f"{i}. {note}" for i, note in enumerate(notes, 1))]
    known = [CLIENTS[name] for name in run.clients if name in CLIENTS]
    if any(client.language != "Java" for client in known):
        lines += ["", "## The clients", "", *clients_lines(known)]
    if run.parts:
        lines += ["", *_matrix_parts(run.parts)]
    return "\n".join(lines) + "\n"


def _matrix_parts(parts: Sequence[str]) -> list[str]:
    return [
        "## The runs",
        "",
        "Joined by `pyritemq-conformance report`; what a later one",
        "has replaces what an earlier had.",
        "",
        *(f"- {part}" for part in parts),
    ]


def _column(case: Case, client: str) -> str:
    return client if case.run_with == CLIENT else case.run_with


def _matrix_head(run: Run) -> list[str]:
    versions = "; ".join(f"{name} {version}" for name, version in run.versions.items())
    return [
        "# The conformance matrix",
        "",
        "Written by `pyritemq-conformance run --matrix` (or `report --matrix`), not by hand.",
        "[conformance.md](conformance.md) says what each case asserts.",
        "",
        f"Run of {run.started}, {run.seconds:.0f} s, clients: {run.launcher}. {versions}".rstrip(),
        "",
        "✓ passed; ✗ failed; n/a: the client does not have the feature; skip: not run, as noted;",
        "empty: not a part of this run.",
        "A case that uses no client (frames of our own, an official tool or program) is run once",
        "for each server, and shown under every client.",
    ]


def _matrix_summary(run: Run) -> list[str]:
    lines = ["", "| client | server | passed | failed | skipped | not in the client |"]
    lines.append("|---|---|---|---|---|---|")
    for server, client in columns(run):
        found = [one for one in run.results if (one.server, one.client) == (server, client)]
        counts = [
            str(sum(one.status == status for one in found))
            for status in (PASSED, FAILED, SKIPPED, NOT_APPLICABLE)
        ]
        lines.append(f"| {client} | {server} | {' | '.join(counts)} |")
    return lines


def _mark(result: Result | None, notes: list[str]) -> str:
    if result is None:
        return ""
    if result.status not in (FAILED, SKIPPED):
        return MARKS[result.status]
    text = _RUN_FOLDER.sub("…", result.reason).replace("|", "\\|").replace("\n", " ")[:300]
    note = f"{result.case_id}, {result.client}, {result.server}: {text}"
    if note not in notes:
        notes.append(note)
    return f"{MARKS[result.status]} [{notes.index(note) + 1}](#notes)"
