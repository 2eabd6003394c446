"""A broker table's file: read at start, saved when the table changes.

Read is the newest version on disk that makes sense.

Java's ConfigManager turns to the backup when a file is missing, empty or cannot be parsed.  The
first two are the store's business (`storage.tables`), the third is known only to the table.
"""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING, TypeVar

from pyritemq.storage import tables
from pyritemq.storage.errors import StorageError, StoreCorruptError

if TYPE_CHECKING:
    from collections.abc import Callable

logger = logging.getLogger(__name__)

T = TypeVar("T")


def read_newest(file: tables.JsonTable, decode: Callable[[bytes], T]) -> T | None:
    """The table, or None if there is no file; `decode` raises ValueError or TypeError.

    Raises StoreCorruptError when neither file nor backup can be read: to start with an empty table
    then would lose what it held at the next save.
    """
    newest = file.load()
    if newest is None:
        return None
    try:
        return decode(newest)
    except (ValueError, TypeError) as error:
        logger.warning("table unreadable file=%s reason=%s", file.path, error)
        fault = error
    backup = tables.load(file.path.with_name(file.path.name + ".bak"))
    try:
        return decode(backup or b"")
    except (ValueError, TypeError):
        raise StoreCorruptError(
            f"{file.path} cannot be read ({fault}), nor can its backup"
        ) from None


class TableSaver:
    """Saves one table, by one thread at a time; `encode` makes the file of what the table is now.

    An operator is told when a change could not be saved.  A client that brought a new group or
    topic along is served all the same, as by Java: a full disk must not keep anybody from reading.
    What could not be saved is saved as soon as it can be.
    """

    def __init__(self, file: tables.JsonTable, encode: Callable[[], bytes]) -> None:
        self._file = file
        self._encode = encode
        self._file_lock = threading.Lock()
        self._is_late = False

    def save(self) -> None:
        """Raises StorageError or OSError."""
        with self._file_lock:
            self._file.save(self._encode())
            self._is_late = False

    def save_or_later(self) -> None:
        try:
            self.save()
        except (OSError, StorageError) as error:
            if not self._is_late:
                logger.error("not saved, will be file=%s reason=%s", self._file.name, error)
            self._is_late = True

    def save_late(self) -> None:
        """Save what could not be saved before, if anything."""
        if self._is_late:
            self.save()
            logger.warning("saved at last file=%s", self._file.name)
