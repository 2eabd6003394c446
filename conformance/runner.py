"""Runs cases: plans the cells of the matrix, starts what they need, and collects the results.

Most of a case's time is waiting, so several run side by side on one set of servers: each has
topics and groups of its own. A case that stops or kills servers is alone on its own. Servers of one
kind at a time; a worker thread for each running case.
"""

from __future__ import annotations

import itertools
import tempfile
import time
import traceback
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pyritemq.conformance.catalogue import CLIENT, Case, version_number
from pyritemq.conformance.drivers.link import DriverBrokenError, DriverError, UnsupportedError
from pyritemq.conformance.drivers.registry import client_named
from pyritemq.conformance.processes import ChildError
from pyritemq.conformance.results import FAILED, NOT_APPLICABLE, PASSED, SKIPPED, Evidence, Result
from pyritemq.conformance.servers.nodes import NotOurServerError
from pyritemq.conformance.trial import CheckFailedError, SkipCase, Trial
from pyritemq.conformance.wire import WireError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from pyritemq.conformance.drivers.link import Driver
    from pyritemq.conformance.launchers import Launcher
    from pyritemq.conformance.servers.nodes import RunningServers, Server
    from pyritemq.conformance.setup import Setup

SIDE_BY_SIDE = 6
"""Cases at once on shared servers; on two cores more of them only wait for each other."""

ALONE_SHARE = 3
"""Of how many jobs one may be a case with servers of its own: each real broker is half a
gigabyte."""

PLAIN_ERRORS = (
    CheckFailedError,
    DriverError,
    DriverBrokenError,
    WireError,
    NotOurServerError,
    ChildError,
)
"""Whose message is the whole story; of others the traceback is shown."""


@dataclass(frozen=True)
class Cell:
    """One case with one client; `client` is the case's own kind where it uses none."""

    case: Case
    client: str


class Runner:
    """Runs cells on one kind of server."""

    def __init__(
        self,
        server: Server,
        launcher: Launcher,
        *,
        say: Callable[[Result], None],
        side_by_side: int = SIDE_BY_SIDE,
        patience: float = 1.0,
        try_broken: bool = False,
    ) -> None:
        self._patience = patience
        self._try_broken = try_broken
        self._server = server
        self._launcher = launcher
        self._say = say
        self._side_by_side = side_by_side
        self._alone_side_by_side = max(1, side_by_side // ALONE_SHARE)
        self._numbers = itertools.count(1)

    def run(self, cases: Sequence[Case], clients: Sequence[str]) -> list[Result]:
        results: list[Result] = []
        shared: dict[Setup, list[Cell]] = defaultdict(list)
        alone: list[Cell] = []
        for cell in cells(cases, clients):
            reason = self._obstacle(cell)
            if reason is not None:
                results.append(self._told(reason))
            elif cell.case.alone:
                alone.append(cell)
            else:
                shared[cell.case.setup].append(cell)
        with tempfile.TemporaryDirectory(prefix="pyritemq-conformance-") as folder:
            for setup, group in shared.items():
                results += self._run_shared(setup, group, Path(folder))
            with ThreadPoolExecutor(self._alone_side_by_side) as pool:
                results += pool.map(lambda cell: self._run_alone(cell, Path(folder)), alone)
        return results

    def _obstacle(self, cell: Cell) -> Result | None:
        """Why a cell is not run, as its result."""
        case = cell.case
        if case.alone and not self._server.ours:
            return self._result(cell, SKIPPED, reason="stops or configures servers: not ours")
        lacks = self._server.lacks(case.setup)
        if lacks:
            return self._result(cell, SKIPPED, reason=lacks)
        if case.run_with != CLIENT:
            return None
        version = cell.client.rpartition("-")[2]
        if cell.client.startswith("java-") and version_number(version) < version_number(case.since):
            return self._result(cell, NOT_APPLICABLE, reason=f"since client {case.since}")
        declared = client_named(cell.client)
        against = declared.unusable if self._try_broken else declared.reason_against(case.id)
        if against:
            return self._result(cell, SKIPPED, reason=f"client: {against}")
        try:
            features = self._launcher.shared_driver(cell.client).features
        except Exception as error:  # noqa: BLE001 - whatever a build can raise is the reason
            return self._result(cell, SKIPPED, reason=f"no driver: {error}"[:500])
        missing = [feature for feature in case.features if feature not in features]
        if missing:
            said = ", ".join(f"no {one}: {declared.lacks.get(one, '')}" for one in missing)
            return self._result(cell, NOT_APPLICABLE, reason=f"client has {said}")
        return None

    def _run_shared(self, setup: Setup, group: list[Cell], folder: Path) -> list[Result]:
        place = folder / f"servers-{next(self._numbers)}"
        try:
            with (
                self._server.started(place, setup, self._launcher.host) as servers,
                ThreadPoolExecutor(self._side_by_side) as pool,
            ):
                return list(pool.map(lambda cell: self._run_cell(cell, servers, place), group))
        except (ChildError, WireError, OSError) as error:
            return [self._told(self._failure(cell, error, 0.0, None, None)) for cell in group]

    def _run_alone(self, cell: Cell, folder: Path) -> Result:
        place = folder / f"servers-{next(self._numbers)}"
        try:
            with self._server.started(place, cell.case.setup, self._launcher.host) as servers:
                return self._run_cell(cell, servers, place)
        except (ChildError, WireError, OSError) as error:
            return self._told(self._failure(cell, error, 0.0, None, None))

    def _run_cell(self, cell: Cell, servers: RunningServers, folder: Path) -> Result:
        began = time.monotonic()
        driver: Driver | None = None
        trial: Trial | None = None
        try:
            patience = self._patience
            if cell.case.run_with == CLIENT:
                driver = self._launcher.shared_driver(cell.client)
                patience *= client_named(cell.client).patience
            trial = Trial(
                cell.case,
                driver=driver,
                servers=servers,
                launcher=self._launcher,
                folder=folder,
                patience=patience,
            )
            try:
                cell.case.body(trial)
            finally:
                trial.close()
        except SkipCase as skip:
            return self._told(self._result(cell, SKIPPED, reason=str(skip)))
        except UnsupportedError as error:
            return self._told(self._result(cell, NOT_APPLICABLE, reason=f"client has no {error}"))
        except Exception as error:  # noqa: BLE001 - whatever a case raises is its failure
            seconds = time.monotonic() - began
            return self._told(self._failure(cell, error, seconds, trial, driver))
        return self._told(self._result(cell, PASSED, seconds=time.monotonic() - began))

    def _failure(
        self,
        cell: Cell,
        error: Exception,
        seconds: float,
        trial: Trial | None,
        driver: Driver | None,
    ) -> Result:
        what = (
            str(error)
            if isinstance(error, PLAIN_ERRORS)
            else "".join(traceback.format_exception(error))
        )
        expected, got = "", ""
        if isinstance(error, CheckFailedError):
            what, expected, got = error.what, error.expected, error.got
        evidence = Evidence(
            what=what,
            expected=expected,
            got=got,
            transcript=tuple(trial.transcript) if trial else (),
            server_log=trial.servers.log_tail() if trial else "",
            client_log=driver.log_tail() if driver else "",
        )
        line = 0 if isinstance(error, PLAIN_ERRORS) else -1  # a traceback ends with what was raised
        reason = f"{what}: expected {expected}, got {got}" if expected else _line(what, line)
        return self._result(cell, FAILED, seconds=seconds, reason=reason[:600], evidence=evidence)

    def _result(
        self,
        cell: Cell,
        status: str,
        *,
        seconds: float = 0.0,
        reason: str = "",
        evidence: Evidence | None = None,
    ) -> Result:
        kind = self._server.kind
        return Result(cell.case.id, cell.client, kind, status, round(seconds, 2), reason, evidence)

    def _told(self, result: Result) -> Result:
        self._say(result)
        return result


def _line(text: str, number: int) -> str:
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[number] if lines else text


def cells(cases: Sequence[Case], clients: Sequence[str]) -> Iterator[Cell]:
    for case in cases:
        if case.run_with == CLIENT:
            yield from (Cell(case, client) for client in clients)
        else:
            yield Cell(case, case.run_with)
