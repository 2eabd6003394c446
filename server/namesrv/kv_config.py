"""The name server's KV configuration: small texts by namespace and key, kept in one JSON file.

Readers, on any lane, see an immutable table without a lock. Writers, on lane ADMIN, take a lock of
their own, write the file first and publish the new table afterwards: what was acknowledged is on
disk, and a disk that refuses leaves the table as it was. The file is Java's kvConfig.json.
"""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING

from pyritemq.compat import fastjson
from pyritemq.compat.conf.settings import ConfigError

if TYPE_CHECKING:
    from pyritemq.storage.tables import JsonTable

logger = logging.getLogger(__name__)

Table = dict[str, dict[str, str]]

# Java has no bound; ordered topics are the main use, one short entry for each.
ENTRIES_MAX = 100_000


class KvConfigFull(Exception):  # noqa: N818 - a refusal, not an error of ours
    """ENTRIES_MAX is reached."""


class KvConfig:
    """See the module's words."""

    def __init__(self, file: JsonTable) -> None:
        """Raises ConfigError if neither the file nor its backup can be read."""
        self._table = _load(file)
        self._file = file
        self._writing = threading.Lock()
        self.version = 0

    def get(self, namespace: str, key: str) -> str | None:
        return self._table.get(namespace, {}).get(key)

    def list_namespace(self, namespace: str) -> dict[str, str] | None:
        """All of a namespace, or None if it never had a key."""
        entries = self._table.get(namespace)
        return None if entries is None else dict(entries)

    def put(self, namespace: str, key: str, value: str) -> None:
        with self._writing:
            table = self._copy_for(namespace)
            entries = table.setdefault(namespace, {})
            if key not in entries and sum(map(len, table.values())) >= ENTRIES_MAX:
                raise KvConfigFull
            entries[key] = value
            self._publish(table)

    def delete(self, namespace: str, key: str) -> None:
        """An emptied namespace stays, as it does in Java."""
        with self._writing:
            table = self._copy_for(namespace)
            if table.get(namespace, {}).pop(key, None) is not None:
                self._publish(table)

    def _copy_for(self, namespace: str) -> Table:
        table = dict(self._table)
        if namespace in table:
            table[namespace] = dict(table[namespace])
        return table

    def _publish(self, table: Table) -> None:
        self._file.save(fastjson.dumps({"configTable": table}))
        self._table = table
        self.version += 1


def _load(file: JsonTable) -> Table:
    """The newest version that can be read; to start without one would lose it at the next save."""
    versions = file.versions()
    for data in versions:
        table = _decode(data)
        if table is not None:
            return table
        logger.warning("kv config version unreadable file=%s", file.name)
    if versions:
        raise ConfigError(f"{file.name}: not a KV configuration, nor is its backup")
    return {}


def _decode(data: bytes) -> Table | None:
    try:
        table = fastjson.loads(data)["configTable"]
        return {
            str(namespace): {str(key): str(value) for key, value in entries.items()}
            for namespace, entries in table.items()
        }
    except (fastjson.FastjsonError, KeyError, TypeError, AttributeError):
        return None
