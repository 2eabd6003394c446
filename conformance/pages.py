"""docs/conformance.md: the guide, kept as text there, with parts rendered from the code.

The page has two marked parts that this module owns, the clients and the catalogue;
`pyritemq-conformance docs PAGE` rewrites them, and a test holds page and code equal. The matrix
shows the same of the clients that it is about.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyritemq.conformance.drivers.registry import CLIENTS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pyritemq.conformance.catalogue import Case
    from pyritemq.conformance.drivers.registry import Client

_MARK = "<!-- {}: written by `pyritemq-conformance docs`, not by hand -->"
_END = "<!-- end of the {} -->"


class PageError(Exception):
    """The page lacks the marks between which a rendered part stands."""


def with_rendered(page: str, cases: Sequence[Case]) -> str:
    """The page with its marked parts made new."""
    page = _with_part(page, "clients", clients_lines(list(CLIENTS.values())))
    return _with_part(page, "catalogue", catalogue_lines(cases))


def _with_part(page: str, name: str, lines: Iterable[str]) -> str:
    first, last = _MARK.format(name), _END.format(name)
    head, begin, rest = page.partition(first)
    _, end, tail = rest.partition(last)
    if not begin or not end:
        raise PageError(f"the page must have the lines {first} and {last}")
    return "".join((head, begin, "\n\n", "\n".join(lines), "\n\n", end, tail))


def clients_lines(clients: Sequence[Client]) -> Iterator[str]:
    """What each client is, lacks, and does wrong with every server."""
    yield "| client | library | needs on the path |"
    yield "|---|---|---|"
    for client in clients:
        yield f"| `{client.name}` | {client.library} | {', '.join(client.tools) or 'nothing'} |"
    for client in clients:
        if client.unusable:
            yield from ("", f"**{client.name}** cannot be run: {client.unusable}.")
        if client.lacks:
            lacks = "; ".join(f"{feature}: {why}" for feature, why in client.lacks.items())
            yield from ("", f"**{client.name}** lacks {lacks}.")
        if client.broken:
            yield from ("", f"What **{client.name}** does with the real broker as well:", "")
            yield from (f"- {cases}: {why}." for cases, why in client.broken.items())


def catalogue_lines(cases: Sequence[Case]) -> Iterator[str]:
    families = list(dict.fromkeys(case.family for case in cases))
    core = sum(case.core for case in cases)
    yield f"{len(cases)} cases in {len(families)} families; {core} of them are the core."
    for family in families:
        yield from ("", f"### {family.prefix}: {family.title}", "")
        yield "| id | asserts | with | since | from |"
        yield "|---|---|---|---|---|"
        for case in (one for one in cases if one.family == family):
            yield _row(case)


def _row(case: Case) -> str:
    words = [f"**{case.title}.** {case.asserts}"]
    needs = case.setup.words()
    if needs:
        words.append(f"*Servers: {needs}.*")
    if case.alone:
        words.append("*Needs servers of its own: it stops, kills or configures them.*")
    if case.known:
        words.append(f"*Known: {case.known}*")
    used = " ".join(case.features) if case.features else case.run_with
    core = " · core" if case.core else ""
    cells = (f"{case.id}{core}", " ".join(words), used, case.since, case.source)
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"
