"""docs/conformance.md: the guide, kept as text there, and the catalogue, rendered from the code.

The page has a marked part that this module owns; `pyritemq-conformance docs PAGE` rewrites it, and
a test holds both equal.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyritemq.conformance.catalogue import Case

BEGIN = "<!-- catalogue: written by `pyritemq-conformance docs`, not by hand -->"
END = "<!-- end of the catalogue -->"


class PageError(Exception):
    """The page lacks the marks between which the catalogue stands."""


def with_catalogue(page: str, cases: Sequence[Case]) -> str:
    """The page with its marked part made new."""
    head, begin, rest = page.partition(BEGIN)
    _, end, tail = rest.partition(END)
    if not begin or not end:
        raise PageError(f"the page must have the lines {BEGIN} and {END}")
    return "".join((head, BEGIN, "\n\n", "\n".join(catalogue_lines(cases)), "\n\n", END, tail))


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
