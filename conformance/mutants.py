"""Runs one case of each family against a server that is broken in that family's way."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyritemq.conformance import catalogue
from pyritemq.conformance.catalogue import CLIENT
from pyritemq.conformance.mutations import MUTATIONS, Mutation
from pyritemq.conformance.results import FAILED, PASSED
from pyritemq.conformance.runner import Runner
from pyritemq.conformance.servers.proxied import MutantServer

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pyritemq.conformance.launchers import Launcher
    from pyritemq.conformance.results import Result

CLIENT_USED = "java-5.5.0"
SIDE_BY_SIDE = 4
PATIENCE = 0.25
"""A failure is what is looked for, and most of them are something that never comes."""


@dataclass(frozen=True)
class Verdict:
    """What became of a mutation: its case must have failed under it."""

    mutation: Mutation
    result: Result

    @property
    def noticed(self) -> bool:
        return self.result.status == FAILED


def untouched(mutation: Mutation) -> Mutation:
    """The same proxies and the same case, with nothing broken: then it must pass."""
    return Mutation(mutation.family, "nothing is broken", mutation.case)


def run_mutants(
    launcher: Launcher,
    mutations: Sequence[Mutation] = MUTATIONS,
    *,
    say: Callable[[Verdict], None] = lambda verdict: None,
    patience: float = PATIENCE,
) -> list[Verdict]:
    cases = {case.id: case for case in catalogue.load()}

    def one(mutation: Mutation) -> Verdict:
        case = cases[mutation.case]
        runner = Runner(
            MutantServer(mutation),
            launcher,
            say=lambda result: None,
            side_by_side=1,
            patience=patience,
        )
        clients = [CLIENT_USED] if case.run_with == CLIENT else []
        (result,) = runner.run([case], clients)
        verdict = Verdict(mutation, result)
        say(verdict)
        return verdict

    with ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
        return list(pool.map(one, mutations))


def unnoticed(verdicts: Sequence[Verdict]) -> list[str]:
    """The mutations under which no case failed; empty when the suite can see all of them."""
    return [
        f"{one.mutation.family}: {one.mutation.what}: {one.result.case_id} {one.result.status}"
        for one in verdicts
        if not one.noticed
    ]


def broken_by_the_proxy(verdicts: Sequence[Verdict]) -> list[str]:
    """Of a run with untouched mutations: what did not pass."""
    return [
        f"{one.mutation.case}: {one.result.reason}"
        for one in verdicts
        if one.result.status != PASSED
    ]
