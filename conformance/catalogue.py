"""The catalogue of cases: what each is called, what it holds, and what it needs to run.

A case is a function under `@case(...)` in one of the modules of cases/; its docstring is what it
asserts. Everything else (the runner, the report, docs/conformance.md) is made from what is declared
here, so that a new case is one function in one file.
"""

from __future__ import annotations

import fnmatch
import importlib
import pkgutil
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pyritemq.conformance.setup import PLAIN, Setup

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pyritemq.conformance.trial import Trial

Body = Callable[["Trial"], None]

CLIENT = "client"
WIRE = "wire"
TOOLS = "tools"
"""What a case is run with: each client that has the feature, our own frames, or official programs
and tools as they are."""

_ID = re.compile(r"[A-Z]+-\d{3}")
_VERSION = re.compile(r"\d+\.\d+\.\d+")


class CatalogueError(Exception):
    """A case is declared wrongly, or a selection names nothing."""


@dataclass(frozen=True)
class Family:
    """Cases about one thing; the prefix of their ids."""

    prefix: str
    title: str


@dataclass(frozen=True)
class Case:
    """One entry of the catalogue."""

    id: str
    title: str
    asserts: str
    family: Family
    source: str
    since: str
    run_with: str
    features: tuple[str, ...]
    setup: Setup
    alone: bool
    """Needs servers that no other case uses: it stops, kills or reconfigures them."""
    core: bool
    known: str
    """Why this case may fail or differ even on the real broker; empty for nearly all."""
    body: Body = field(repr=False, compare=False)


_families: dict[str, Family] = {}
_cases: dict[str, Case] = {}


def family(prefix: str, title: str) -> Family:
    """Declare a family; each module of cases/ has one or a few."""
    if prefix in _families:
        raise CatalogueError(f"family {prefix} is declared twice")
    _families[prefix] = made = Family(prefix, title)
    return made


def case(
    case_id: str,
    title: str,
    *,
    source: str,
    since: str = "4.9.8",
    run_with: str = CLIENT,
    features: str = "send",
    setup: Setup = PLAIN,
    alone: bool = False,
    core: bool = False,
    known: str = "",
) -> Callable[[Body], Body]:
    """Declare a case. `since` is the first client version that has it; `features` are those that a
    client must have, separated by spaces."""

    def declare(body: Body) -> Body:
        prefix = case_id.partition("-")[0]
        if not _ID.fullmatch(case_id) or prefix not in _families:
            raise CatalogueError(f"{case_id}: want FAMILY-NNN with a declared family")
        if case_id in _cases:
            raise CatalogueError(f"{case_id} is declared twice")
        asserts = " ".join((body.__doc__ or "").split())
        if not asserts:
            raise CatalogueError(f"{case_id}: the docstring must say what is asserted")
        if not _VERSION.fullmatch(since):
            raise CatalogueError(f"{case_id}: since={since!r} is not a version")
        _cases[case_id] = Case(
            id=case_id,
            title=title,
            asserts=asserts,
            family=_families[prefix],
            source=source,
            since=since,
            run_with=run_with,
            features=tuple(features.split()) if run_with == CLIENT else (),
            setup=setup,
            alone=alone,
            core=core,
            known=known,
            body=body,
        )
        return body

    return declare


def load() -> list[Case]:
    """All cases, by family in the order of declaration and then by id."""
    from pyritemq.conformance import cases

    for module in sorted(info.name for info in pkgutil.iter_modules(cases.__path__)):
        importlib.import_module(f"{cases.__name__}.{module}")
    order = {prefix: number for number, prefix in enumerate(_families)}
    return sorted(_cases.values(), key=lambda one: (order[one.family.prefix], one.id))


def select(all_cases: Sequence[Case], patterns: Iterable[str], *, core: bool = False) -> list[Case]:
    """The cases that match one of the patterns: a family (`SEND`), an id, or a glob (`TXN-*`)."""
    wanted = list(patterns)
    chosen = [one for one in all_cases if not core or one.core]
    if not wanted:
        return chosen
    for pattern in wanted:
        if not any(_matches(one, pattern) for one in all_cases):
            raise CatalogueError(f"--only {pattern}: no case or family is called that")
    return [one for one in chosen if any(_matches(one, pattern) for pattern in wanted)]


def _matches(one: Case, pattern: str) -> bool:
    return one.family.prefix == pattern or fnmatch.fnmatchcase(one.id, pattern)


def version_number(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))
