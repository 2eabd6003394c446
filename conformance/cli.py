"""pyritemq-conformance: runs the suite against a server, and writes the report."""

from __future__ import annotations

import signal
import sys
import tempfile
import time
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pyritemq.conformance import (
    catalogue,
    html_report,
    launchers,
    mutants,
    pages,
    recording,
    replay,
    reports,
)
from pyritemq.conformance.drivers import registry
from pyritemq.conformance.jars import JarsMissingError, jar_folder
from pyritemq.conformance.mutations import MUTATIONS
from pyritemq.conformance.recording import Recorder
from pyritemq.conformance.results import FAILED, Result, Run
from pyritemq.conformance.runner import SIDE_BY_SIDE, Runner
from pyritemq.conformance.servers.nodes import (
    ExternalServer,
    NotOurServerError,
    PyriteServer,
    RocketServer,
)
from pyritemq.conformance.servers.proxied import ProxiedServer
from pyritemq.conformance.setup import PLAIN

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyritemq.conformance.launchers import Launcher
    from pyritemq.conformance.servers.nodes import Server


OURS = ("pyrite", "pyritemq", "rocketmq")
"""Servers that a run starts itself."""


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def main() -> None:
    """Cases that any RocketMQ-compatible server can be run against."""


@main.command("list")
@click.option("--only", default="", help="Families, ids or globs, separated by commas.")
def list_cases(only: str) -> None:
    """Print the catalogue, one case a line."""
    for one in _selected(only, core=False):
        click.echo(f"{one.id}  {one.title}")


@main.command()
@click.option(
    "--server",
    "servers",
    multiple=True,
    default=("pyrite",),
    show_default=True,
    metavar="pyrite|rocketmq|HOST:PORT",
    help="What to test; may be given more than once. HOST:PORT is a name server.",
)
@click.option(
    "--clients",
    default=",".join(registry.JAVA_CLIENTS),
    show_default=True,
    help="Clients to test with, separated by commas; `all` is each of them.",
)
@click.option(
    "--try-broken", is_flag=True, help="Run also what a client is known to do wrong everywhere."
)
@click.option("--only", default="", help="Families, ids or globs, separated by commas: SEND,TXN-*")
@click.option("--core", is_flag=True, help="Only the core of the catalogue.")
@click.option(
    "--launcher",
    type=click.Choice(["containers", "local"]),
    default="containers",
    show_default=True,
    help="Where the clients run.",
)
@click.option(
    "--report",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder for results.json, junit.xml and report.html.",
)
@click.option(
    "--matrix",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write the matrix page (docs/conformance-matrix.md) here.",
)
@click.option("--jobs", default=SIDE_BY_SIDE, show_default=True, help="Cases side by side.")
def run(
    servers: tuple[str, ...],
    clients: str,
    try_broken: bool,
    only: str,
    core: bool,
    launcher: str,
    report: Path | None,
    matrix: Path | None,
    jobs: int,
) -> None:
    """Run cases and give a verdict; the exit is 1 when any failed."""
    cases = _selected(only, core=core)
    names = _clients(clients)
    for wanted in servers:
        if wanted not in OURS and ":" not in wanted:
            raise click.UsageError(f"--server {wanted}: want pyrite, rocketmq or HOST:PORT")
    began = time.monotonic()
    signal.signal(signal.SIGTERM, _ended)
    result = Run([], names, launcher, datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"))
    with tempfile.TemporaryDirectory(prefix="pyritemq-conformance-") as folder:
        place = _launcher(launcher, Path(folder))
        try:
            for wanted in servers:
                _run_on(_server(wanted, place), place, cases, result, jobs, try_broken=try_broken)
        finally:
            place.close()
            result.seconds = round(time.monotonic() - began, 1)
            _write(result, report, matrix)  # of a run that is ended early as well
    _summary(result)
    sys.exit(1 if result.failed() else 0)


@main.command("report")
@click.argument("results", nargs=-1, required=True, type=click.Path(path_type=Path, exists=True))
@click.option("--report", type=click.Path(path_type=Path, file_okay=False), help="As for run.")
@click.option("--matrix", type=click.Path(path_type=Path, dir_okay=False), help="As for run.")
def report_runs(results: tuple[Path, ...], report: Path | None, matrix: Path | None) -> None:
    """Join the results.json of several runs; what a later one has replaces what an earlier had."""
    try:
        runs = [reports.run_from_json(path.read_text(encoding="utf-8")) for path in results]
    except (ValueError, KeyError, TypeError) as error:
        raise click.ClickException(f"not the results of a run: {error}") from error
    joined = reports.joined(runs)
    _write(joined, report, matrix)
    _summary(joined)
    sys.exit(1 if joined.failed() else 0)


@main.command("mutants")
@click.option("--only", default="", help="Families, separated by commas.")
@click.option("--untouched", is_flag=True, help="Break nothing: the same cases must then pass.")
def run_mutants(only: str, untouched: bool) -> None:
    """Show that cases can fail: each family meets a server that is broken in its way."""
    wanted = {name.strip() for name in only.split(",") if name.strip()}
    chosen = [one for one in MUTATIONS if not wanted or one.family in wanted]
    if untouched:
        chosen = [mutants.untouched(one) for one in chosen]

    def say(verdict: mutants.Verdict) -> None:
        said = f"{verdict.mutation.family:8} {verdict.mutation.what}: {verdict.result.case_id}"
        click.echo(f"{said} {verdict.result.status}  {verdict.result.reason[:160]}")

    with tempfile.TemporaryDirectory(prefix="pyritemq-conformance-") as folder:
        place = _launcher("local", Path(folder))
        try:
            patience = 1.0 if untouched else mutants.PATIENCE
            verdicts = mutants.run_mutants(place, chosen, say=say, patience=patience)
        finally:
            place.close()
    judge = mutants.broken_by_the_proxy if untouched else mutants.unnoticed
    wrong = judge(verdicts)
    click.echo("\n".join([f"{len(verdicts)} families, {len(wrong)} wrong", *wrong]))
    sys.exit(1 if wrong else 0)


@main.command()
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@click.option("--only", default="SEND,PULL,OFFSET,FRAME", show_default=True, help="As for run.")
def record(file: Path, only: str) -> None:
    """Run cases against PyriteMQ and record what their clients ask."""
    cases = [one for one in _selected(only, core=False) if one.setup == PLAIN and not one.alone]
    recorder = Recorder()
    server = ProxiedServer("pyritemq", recorder.judge)
    with tempfile.TemporaryDirectory(prefix="pyritemq-conformance-") as folder:
        place = _launcher("local", Path(folder))
        try:
            Runner(server, place, say=_Progress(len(cases)), side_by_side=1).run(
                cases, [registry.JAVA_CLIENTS[0]]
            )
        finally:
            place.close()
    exchanges = recorder.exchanges()
    recording.write(file, exchanges, server.addresses)
    click.echo(f"{len(exchanges)} exchanges in {file}")


@main.command("replay")
@click.argument("file", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@click.option(
    "--fixtures",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Keep one exchange of each kind in which both agree, with the real broker's reply.",
)
def replay_file(file: Path, fixtures: Path | None) -> None:
    """Replay a recording to PyriteMQ and to the real RocketMQ, and compare every reply."""
    try:
        exchanges, addresses = recording.read(file)
    except recording.RecordingError as error:
        raise click.ClickException(str(error)) from error
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="pyritemq-replay-")))
        targets = []
        for server in (PyriteServer(), RocketServer()):
            running = stack.enter_context(server.started(folder / server.kind, PLAIN, "127.0.0.1"))
            nodes = {node.name: node.address for node in (*running.namesrvs, *running.brokers)}
            targets.append(replay.Target(server.kind, nodes))
        found = replay.replay(exchanges, addresses, targets[0], targets[1])
    if fixtures is not None:
        recording.write(fixtures, replay.fixtures(found.agreed), addresses)
    for difference in found.differences:
        click.echo(difference.words())
    click.echo(f"{found.compared} replies compared, {len(found.differences)} fields differ")
    sys.exit(1 if found.differences else 0)


@main.command()
@click.argument("page", type=click.Path(path_type=Path, exists=True, dir_okay=False))
def docs(page: Path) -> None:
    """Render the clients and the catalogue into their places in docs/conformance.md."""
    try:
        text = pages.with_rendered(page.read_text(encoding="utf-8"), catalogue.load())
    except pages.PageError as error:
        raise click.ClickException(str(error)) from error
    page.write_text(text, encoding="utf-8")


def _ended(number: int, frame: object) -> None:
    """SIGTERM ends a run in order: servers and containers go, and the report is written."""
    raise SystemExit(128 + number)


def _write(result: Run, report: Path | None, matrix: Path | None) -> None:
    cases = catalogue.load()
    shown = {one.case_id for one in result.results}
    cases = [one for one in cases if one.id in shown]
    if report is not None:
        report.mkdir(parents=True, exist_ok=True)
        (report / "results.json").write_text(reports.to_json(result), encoding="utf-8")
        (report / "junit.xml").write_text(reports.to_junit(result, cases), encoding="utf-8")
        (report / "report.html").write_text(html_report.to_html(result, cases), encoding="utf-8")
    if matrix is not None:
        matrix.write_text(reports.to_matrix(result, cases), encoding="utf-8")


def _run_on(
    server: Server,
    launcher: Launcher,
    cases: Sequence[catalogue.Case],
    into: Run,
    jobs: int,
    *,
    try_broken: bool = False,
) -> None:
    into.servers.append(server.kind)
    into.versions |= server.versions()
    total = sum(len(into.clients) if one.run_with == catalogue.CLIENT else 1 for one in cases)
    progress = _Progress(total)

    def say(result: Result) -> None:
        into.results.append(result)
        progress(result)

    runner = Runner(server, launcher, say=say, side_by_side=jobs, try_broken=try_broken)
    runner.run(cases, into.clients)


class _Progress:
    """A line for each finished cell."""

    def __init__(self, total: int) -> None:
        self._total, self._done = total, 0

    def __call__(self, result: Result) -> None:
        self._done += 1
        line = f"[{self._done:3}/{self._total}] {result.status:7} {result.case_id:9}"
        line += f" {result.client:12} {result.server:9} {result.seconds:6.1f} s  {result.reason}"
        click.echo(line.rstrip())


def _summary(result: Run) -> None:
    counts = ", ".join(f"{count} {status}" for status, count in result.counts().items())
    click.echo(f"{counts} in {result.seconds:.0f} s")
    for failure in result.results:
        if failure.status == FAILED and failure.evidence is not None:
            click.echo(f"\n{failure.case_id} {failure.client} {failure.server}: {failure.reason}")


def _selected(only: str, *, core: bool) -> list[catalogue.Case]:
    patterns = [pattern.strip() for pattern in only.split(",") if pattern.strip()]
    try:
        return catalogue.select(catalogue.load(), patterns, core=core)
    except catalogue.CatalogueError as error:
        raise click.UsageError(str(error)) from error


def _clients(words: str) -> list[str]:
    try:
        return registry.named(words)
    except registry.UnknownClientError as error:
        raise click.UsageError(str(error)) from error


def _server(wanted: str, place: Launcher) -> Server:
    if wanted in ("pyrite", "pyritemq"):
        return PyriteServer()
    if wanted == "rocketmq":
        return RocketServer(place.servers())
    try:
        return ExternalServer(wanted)
    except NotOurServerError as error:
        raise click.ClickException(str(error)) from error


def _launcher(name: str, folder: Path) -> Launcher:
    try:
        jar_folder()
        if name == "local":
            return launchers.LocalLauncher(folder)
        return launchers.container_launcher()
    except (JarsMissingError, launchers.NoEngineError) as error:
        raise click.ClickException(str(error)) from error


if __name__ == "__main__":
    main()
