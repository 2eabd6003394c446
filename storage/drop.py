"""Empties a store folder, for tests that start over: everything that a store keeps, and only that.

Called when nobody has the store open. Folders are renamed first, which takes no time however much
they hold, and deleted by `delete_dropped`, which may come later. The order is such that a crash in
between leaves a store that opens: queues go before the CommitLog that they are derived from, and
`abort`, which makes the next start look closely, goes last. Not through `Disk`: no fault here is to
be survived by what was stored.
"""

import os
import shutil
from collections.abc import Collection, Iterator
from itertools import count
from pathlib import Path

from pyritemq.storage.config import StoreConfig
from pyritemq.storage.queue_ends import NAME as QUEUE_ENDS

DROPPED = ".dropped"
TIMER_LOG = "timerlog"
FILES = ("timerwheel", QUEUE_ENDS, "checkpoint", "abort")


def drop_store(config: StoreConfig, *, keep: Collection[Path] = ()) -> list[Path]:
    """Take everything out of the store's folder; returns what `delete_dropped` has to delete.

    Files under config/ go too, but for those in `keep`. Raises OSError.
    """
    dropped = [aside for folder in _folders(config) for aside in _set_aside(folder)]
    kept = {path.resolve() for path in keep}
    for path in (*_files_of(config.root / "config"), *(config.root / name for name in FILES)):
        if path.resolve() not in kept:
            path.unlink(missing_ok=True)
    return dropped


def delete_dropped(folders: list[Path]) -> None:
    """Delete folders that were set aside; what cannot be deleted is left for the next time."""
    for folder in folders:
        shutil.rmtree(folder, ignore_errors=True)


def _folders(config: StoreConfig) -> tuple[Path, ...]:
    timer_log = config.root / TIMER_LOG
    return (
        config.consume_queue_dir,
        config.consume_queue_ext_dir,
        *config.commit_log_dirs,
        config.index_dir,
        timer_log,
    )


def _set_aside(folder: Path) -> list[Path]:
    """Rename the folder; with it, what an earlier time had no chance to delete."""
    aside = list(folder.parent.glob(f"{folder.name}{DROPPED}-*"))
    taken = {path.name for path in aside}
    names = (f"{folder.name}{DROPPED}-{number}" for number in count())
    new = folder.with_name(next(name for name in names if name not in taken))
    try:
        os.rename(folder, new)
    except FileNotFoundError:
        return aside
    return [*aside, new]


def _files_of(folder: Path) -> Iterator[Path]:
    try:
        entries = list(os.scandir(folder))
    except FileNotFoundError:
        return
    for entry in entries:
        if entry.is_file(follow_symlinks=False):
            yield Path(entry.path)
