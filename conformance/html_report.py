"""The report as one HTML page that needs nothing else: no script from elsewhere, no style sheet.

The matrix of cases against clients and servers; each failure opens into its evidence.
"""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from pyritemq.conformance.reports import MARKS, columns
from pyritemq.conformance.results import FAILED, NOT_APPLICABLE, PASSED, SKIPPED

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyritemq.conformance.catalogue import Case, Family
    from pyritemq.conformance.results import Result, Run

STYLE = """
:root { color-scheme: light dark; --line: #8884; --good: #1a7f37; --bad: #cf222e; --dim: #777 }
body { font: 15px/1.45 system-ui, sans-serif; margin: 2rem auto; max-width: 76rem; padding: 0 1rem }
h1 { font-size: 1.6rem } h2 { font-size: 1.15rem; margin-top: 2rem }
table { border-collapse: collapse; width: 100% }
th, td { border-bottom: 1px solid var(--line); padding: .25rem .5rem; text-align: left;
  vertical-align: top }
thead th { position: sticky; top: 0; background: Canvas }
td:first-child { white-space: nowrap }
td.mark, th.mark { text-align: center; white-space: nowrap }
.passed { color: var(--good) } .failed { color: var(--bad); font-weight: 600 }
.skipped, .none, small { color: var(--dim) }
pre { overflow-x: auto; background: #8881; padding: .6rem; font-size: 12px;
  white-space: pre-wrap }
details { margin: .4rem 0 } summary { cursor: pointer }
label { user-select: none }
body:has(#bad:checked) tr.good { display: none }
"""

WORDS = {
    PASSED: "passed",
    FAILED: "failed",
    SKIPPED: "skipped",
    NOT_APPLICABLE: "not in the client",
}


def to_html(run: Run, cases: Sequence[Case]) -> str:
    return "\n".join(_page(run, cases))


def _page(run: Run, cases: Sequence[Case]) -> Iterator[str]:
    yield '<!doctype html><html lang="en"><head><meta charset="utf-8">'
    yield "<title>RocketMQ conformance</title>"
    yield '<meta name="viewport" content="width=device-width, initial-scale=1">'
    yield f"<style>{STYLE}</style></head><body>"
    yield "<h1>RocketMQ conformance</h1>"
    yield f"<p>{escape(run.started)}, {run.seconds:.0f} s, clients as {escape(run.launcher)}.</p>"
    yield from _versions(run)
    yield from _totals(run)
    yield '<p><label><input type="checkbox" id="bad"> only cases that failed somewhere</label></p>'
    wide = columns(run)
    for family in dict.fromkeys(case.family for case in cases):
        yield from _family(run, family, [case for case in cases if case.family == family], wide)
    yield from _failures(run, {case.id: case for case in cases})
    yield "</body></html>"


def _versions(run: Run) -> Iterator[str]:
    if run.versions:
        items = "".join(f"<li>{escape(n)}: {escape(v)}</li>" for n, v in run.versions.items())
        yield f"<ul>{items}</ul>"


def _totals(run: Run) -> Iterator[str]:
    yield "<table><thead><tr><th>client</th><th>server</th>"
    yield "".join(f"<th>{word}</th>" for word in WORDS.values()) + "</tr></thead><tbody>"
    for server, client in columns(run):
        found = [one for one in run.results if (one.server, one.client) == (server, client)]
        counts = {status: sum(one.status == status for one in found) for status in WORDS}
        cells = "".join(
            f'<td class="{status if counts[status] and status == FAILED else ""}">'
            f"{counts[status]}</td>"
            for status in WORDS
        )
        yield f"<tr><td>{escape(client)}</td><td>{escape(server)}</td>{cells}</tr>"
    yield "</tbody></table>"


def _family(
    run: Run, family: Family, cases: Sequence[Case], wide: Sequence[tuple[str, str]]
) -> Iterator[str]:
    by_place = {(one.case_id, one.server, one.client): one for one in run.results}
    used = [
        (server, client)
        for server, client in wide
        if any((case.id, server, client) in by_place for case in cases)
    ]
    yield f"<h2>{escape(family.title)}</h2><table><thead><tr><th>case</th><th>asserts</th>"
    heads = (f"{escape(client)}<br><small>{escape(server)}</small>" for server, client in used)
    yield "".join(f'<th class="mark">{head}</th>' for head in heads) + "</tr></thead><tbody>"
    for case in cases:
        found = [by_place.get((case.id, server, client)) for server, client in used]
        bad = any(one is not None and one.status == FAILED for one in found)
        yield f'<tr class="{"bad" if bad else "good"}"><td>{case.id}</td>'
        yield f"<td>{escape(case.title)}<br><small>{escape(case.asserts)}</small></td>"
        yield "".join(map(_cell, found)) + "</tr>"
    yield "</tbody></table>"


def _cell(result: Result | None) -> str:
    if result is None:
        return '<td class="mark"></td>'
    kind = result.status if result.status in (PASSED, FAILED, SKIPPED) else "none"
    mark = MARKS[result.status]
    if result.status == FAILED:
        mark = f'<a class="failed" href="#{_anchor(result)}">{mark}</a>'
    hint = escape(result.reason or f"{result.seconds:.1f} s", quote=True)
    return f'<td class="mark {kind}" title="{hint}">{mark}</td>'


def _anchor(result: Result) -> str:
    return escape(f"{result.case_id}-{result.server}-{result.client}", quote=True)


def _failures(run: Run, cases: dict[str, Case]) -> Iterator[str]:
    failed = run.failed()
    if not failed:
        return
    yield "<h2>Failures</h2>"
    for result in failed:
        title = f"{result.case_id} · {result.client} · {result.server}"
        yield f'<details id="{_anchor(result)}" open><summary><b>{escape(title)}</b> '
        yield f"{escape(result.reason)}</summary>"
        if result.case_id in cases:
            yield f"<p>{escape(cases[result.case_id].asserts)}</p>"
        yield from _evidence(result)
        yield "</details>"


def _evidence(result: Result) -> Iterator[str]:
    evidence = result.evidence
    if evidence is None:
        return
    parts = {
        "checked": evidence.what,
        "expected": evidence.expected,
        "got": evidence.got,
        "what was sent and what came back": "\n".join(evidence.transcript),
        "end of the server's log": evidence.server_log,
        "end of the client's log": evidence.client_log,
    }
    for name, text in parts.items():
        if text:
            yield f"<p><small>{name}</small></p><pre>{escape(text)}</pre>"
