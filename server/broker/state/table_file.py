"""Where a table of the broker is kept between runs; the tables themselves know only this.

`read_newest` runs at start; `save` runs on whichever lane changed the table, one at a time for
each table.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Protocol, TypeVar

from pyritemq.storage.errors import StoreCorrupt

if TYPE_CHECKING:
    from collections.abc import Callable

logger = logging.getLogger(__name__)

T = TypeVar("T")


class TableFile(Protocol):
    """A small file that is replaced whole."""

    @property
    def name(self) -> str:
        """How to name it to a user."""

    def versions(self) -> list[bytes]:
        """What is on disk, newest first; empty at the first start."""

    def save(self, data: bytes) -> None:
        """Put `data` in place of what is there; a crash leaves the old or the new, whole."""


def read_newest(file: TableFile, decode: Callable[[bytes], T]) -> T | None:
    """The newest version that can be read, or None if there is no file.

    Raises StoreCorrupt when there are versions and none is readable: to start with an empty table
    then would lose what it held at the next save.
    """
    versions = file.versions()
    for data in versions:
        try:
            return decode(data)
        except (ValueError, TypeError) as error:
            logger.warning("table version unreadable file=%s reason=%s", file.name, error)
    if versions:
        raise StoreCorrupt(f"{file.name} cannot be read, nor can its backup")
    return None
