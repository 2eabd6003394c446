"""Reading a broker table at start: the newest version on disk that makes sense.

Java's ConfigManager turns to the backup when a file is missing, empty or cannot be parsed.  The
first two are the store's business (`storage.tables`), the third is known only to the table.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, TypeVar

from pyritemq.storage import tables
from pyritemq.storage.errors import StoreCorruptError

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
