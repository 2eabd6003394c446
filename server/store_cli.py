"""`pyritemq store check|repair|dump|rebuild`: the commands for a store that no server runs on.

Turns a command line into calls of store_tools and store_repair, and what they found into lines.
Exit codes: 0 all is well, 1 it could not be done, 2 a wrong command line, 3 damage was found,
4 the store is in use.
"""

from __future__ import annotations

import functools
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, ParamSpec

import click
import orjson

from pyritemq.compat.broker_conf import BrokerConfig
from pyritemq.compat.conf.settings import ConfigError
from pyritemq.compat.properties_file import parse_properties
from pyritemq.protocol.record import decode_properties, decode_record
from pyritemq.server import store_repair, store_tools
from pyritemq.server.broker.store_config import store_config
from pyritemq.server.host import host_facts
from pyritemq.storage.config import StoreConfig
from pyritemq.storage.errors import StorageError, StoreLockedError
from pyritemq.storage.record_codec import CheckedRecord

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyritemq.protocol.record import Record
    from pyritemq.server.store_tools import CheckReport, Progress
    from pyritemq.storage.mapped_file import MappedFile

    P = ParamSpec("P")

HELP = {"help_option_names": ["-h", "--help"], "max_content_width": 100}
EXIT_FAILED, EXIT_DAMAGED, EXIT_IN_USE = 1, 3, 4

FOLDER = click.argument("folder", type=click.Path(path_type=Path), metavar="DIR")
CONFIG = click.option(
    "-c",
    "--config",
    "config_path",
    type=click.Path(),
    default=None,
    help="The broker.conf that the store is used with, for its file sizes and delay levels."
    "  [default: as found]",
)


@click.group(context_settings=HELP)
def store() -> None:
    """Look at or mend a store folder that no server runs on.

    Exit codes: 0 all is well, 1 it could not be done, 3 damage was found, 4 the store is in use.
    """


def _plain_errors(command: Callable[P, None]) -> Callable[P, None]:
    @functools.wraps(command)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        try:
            command(*args, **kwargs)
        except StoreLockedError as error:
            _fail(str(error), EXIT_IN_USE)
        except (StorageError, ConfigError, ValueError) as error:
            _fail(str(error), EXIT_FAILED)
        except OSError as error:
            _fail(f"{error.filename}: {error.strerror}", EXIT_FAILED)

    return run


def _fail(sentence: str, code: int) -> None:
    click.echo(f"pyritemq: {sentence}", err=True)
    sys.exit(code)


def _config(folder: Path, config_path: str | None) -> StoreConfig:
    """Sizes from broker.conf if it is given, else from the files."""
    if config_path is None:
        config = StoreConfig(root=folder)
        store_tools.guess_sizes(config)
        return config
    properties = parse_properties(Path(config_path).read_text(encoding="utf-8"))
    properties["storePathRootDir"] = str(folder)
    broker, _ = BrokerConfig.from_properties(properties, host=host_facts(), source=config_path)
    return store_config(broker)


def _log_size(config: StoreConfig) -> int:
    """Bytes to read: of the last file only what is not a hole."""
    paths = store_tools.log_paths(config)
    used = [path.stat().st_size for path in paths[:-1]]
    used += [min(path.stat().st_size, path.stat().st_blocks * 512) for path in paths[-1:]]
    return sum(used)


@contextmanager
def _progress(title: str, total: int) -> Iterator[Progress]:
    """A bar on standard error while it is a terminal; rich is loaded only then."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        DownloadColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
        TransferSpeedColumn,
    )

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(binary_units=True),
        TransferSpeedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(title, total=total)
        yield lambda size: bar.advance(task, size)


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


@store.command(context_settings=HELP)
@FOLDER
@CONFIG
@_plain_errors
def check(folder: Path, config_path: str | None) -> None:
    """Read every message and its place in the queues; change nothing.

    Ends with exit code 3 if something is wrong, and says in which file and where.
    """
    config = _config(folder, config_path)
    with store_tools.locked(folder) as disk, _progress("check", _log_size(config)) as progress:
        report = store_tools.StoreCheck(disk, config).run(progress)
    _print_check(report)
    if report.problem_count:
        sys.exit(EXIT_DAMAGED)


def _print_check(report: CheckReport) -> None:
    click.echo(
        f"{report.records} messages ({report.bytes_total} bytes) in {report.files} CommitLog "
        f"files, {report.units} units in {report.queues} queues"
    )
    if not report.clean_stop:
        click.echo("the server was not stopped cleanly: its next start recovers the store")
    if report.torn:
        click.echo(report.torn)
    if report.behind:
        click.echo(f"{report.behind} messages get their units at the next start")
    for problem in report.problems:
        click.echo(f"problem: {problem}")
    if report.problem_count > len(report.problems):
        click.echo(f"and {report.problem_count - len(report.problems)} more problems")
    if not report.problem_count:
        click.echo("no problem found")


@store.command(context_settings=HELP)
@FOLDER
@CONFIG
@_plain_errors
def repair(folder: Path, config_path: str | None) -> None:
    """Make a damaged store start again, with every message that can still be read.

    Damaged bytes are copied to DIR/cut; then queues and index are built anew.
    """
    config = _config(folder, config_path)
    with store_tools.locked(folder) as disk, _progress("repair", _log_size(config)) as progress:
        report = store_repair.Repair(disk, config).run(progress)
    for line in report.done:
        click.echo(line)
    _rebuild(config)


@store.command(context_settings=HELP)
@FOLDER
@CONFIG
@_plain_errors
def rebuild(folder: Path, config_path: str | None) -> None:
    """Build queues and index anew from the CommitLog."""
    _rebuild(_config(folder, config_path))


def _rebuild(config: StoreConfig) -> None:
    store_tools.log_paths(config)
    with store_tools.locked(config.root):
        store_repair.drop_derived(config)
    with _progress("rebuild", 2 * _log_size(config)) as progress:
        opened = store_repair.open_and_close(config, _now_ms, progress)
    click.echo(
        f"queues and index of {len(opened.topics())} topics were built from the CommitLog "
        f"up to offset {opened.max_phy_offset}"
    )


@store.command(context_settings=HELP)
@FOLDER
@CONFIG
@click.option("--topic", default=None, help="Only messages of this topic.")
@click.option("--queue", type=int, default=None, help="Only messages of this queue.")
@click.option("--from", "start", type=int, default=0, help="From this CommitLog offset on.")
@click.option("--count", type=click.IntRange(min=1), default=None, help="So many at most.")
@click.option("--body/--no-body", default=False, help="Bodies too, as text where they are text.")
@_plain_errors
def dump(
    folder: Path,
    config_path: str | None,
    topic: str | None,
    queue: int | None,
    start: int,
    count: int | None,
    body: bool,
) -> None:
    """Print messages as lines of JSON, in the order of the CommitLog."""
    config = _config(folder, config_path)
    with store_tools.locked(folder) as disk:
        files = store_tools.open_files(disk, config, lambda fault: click.echo(fault, err=True))
        printed = 0
        for file, position, found in store_tools.records(files, lambda _: None):
            if not isinstance(found, CheckedRecord) or found.phy_offset < start:
                continue
            if topic not in (None, found.topic.decode("utf-8", "replace")):
                continue
            if queue not in (None, found.queue_id):
                continue
            _print_record(file, position, with_body=body)
            printed += 1
            if printed == count:
                return


def _print_record(file: MappedFile, position: int, *, with_body: bool) -> None:
    record = decode_record(file.view, position)
    click.echo(orjson.dumps(_fields(record, with_body=with_body)).decode())


def _fields(record: Record, *, with_body: bool) -> dict[str, object]:
    fields: dict[str, object] = {
        "topic": record.topic,
        "queueId": record.queue_id,
        "queueOffset": record.queue_offset,
        "phyOffset": record.phy_offset,
        "size": record.total_size,
        "storeTimestamp": record.store_timestamp,
        "bornTimestamp": record.born_timestamp,
        "sysFlag": record.sys_flag,
        "reconsumeTimes": record.reconsume_times,
        "properties": decode_properties(record.properties),
        "bodySize": len(record.body),
    }
    if with_body:
        fields["body"] = record.body.decode("utf-8", "backslashreplace")
    return fields
