"""How far each delay level has been delivered: config/delayOffset.json in Java's form.

Written by the send lane when it has stored what was due and by the loop when it passes over
something; `_lock` is held for an assignment or a copy.  The broker saves every
flushDelayOffsetInterval and at stop.  After a crash the next start delivers again what was
delivered since the last save, at most; nothing is passed over, because what an offset counts as
delivered is durable in the CommitLog before the offset is saved.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, NamedTuple

from pyritemq.compat import fastjson
from pyritemq.compat.register_body import DataVersion
from pyritemq.server.broker.state.config_json import dumps_pretty
from pyritemq.server.broker.state.table_file import read_newest
from pyritemq.server.broker.state.topics import next_version

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pyritemq.storage.tables import JsonTable


class DelayOffsetSnapshot(NamedTuple):
    """What is saved."""

    offsets: Mapping[int, int]
    data_version: DataVersion


class DelayOffsetTable:
    """The next queue offset of each level, by level (1, 2, …)."""

    def __init__(
        self,
        file: JsonTable,
        *,
        now_ms: Callable[[], int],
        flush_store: Callable[[], None],
        version_step: int,
    ) -> None:
        self._file = file
        self._now_ms = now_ms
        self._flush_store = flush_store
        self._version_step = max(version_step, 1)
        self._lock = threading.Lock()
        self._file_lock = threading.Lock()
        self._offsets: dict[int, int] = {}
        self._data_version = DataVersion(timestamp=now_ms())
        self._moves = 0
        self._dirty = False

    def load(self) -> None:
        """Read the file at start."""
        loaded = read_newest(self._file, decode_snapshot)
        if loaded is not None:
            with self._lock:
                self._offsets = dict(loaded.offsets)
                self._data_version = loaded.data_version

    def get(self, level: int) -> int:
        """Where the level goes on; a level without an entry starts at 0."""
        with self._lock:
            return self._offsets.get(level, 0)

    def move(self, level: int, offset: int) -> None:
        """All below `offset` has been delivered or passed over."""
        with self._lock:
            before = self._offsets.get(level)
            if before == offset:
                return
            self._offsets[level] = offset
            self._dirty = True
            moves = self._moves + max(offset - (before or 0), 1)
            if moves // self._version_step > self._moves // self._version_step:
                self._data_version = next_version(self._data_version, self._now_ms())
            self._moves = moves

    def snapshot(self) -> DelayOffsetSnapshot:
        """A consistent copy."""
        with self._lock:
            return DelayOffsetSnapshot(dict(sorted(self._offsets.items())), self._data_version)

    def persist(self) -> None:
        """Save what changed since the last save."""
        with self._file_lock:
            with self._lock:
                if not self._dirty:
                    return
                self._dirty = False
            try:
                snapshot = self.snapshot()
                self._flush_store()
                self._file.save(encode_snapshot(snapshot))
            except BaseException:
                with self._lock:
                    self._dirty = True
                raise


def encode_snapshot(snapshot: DelayOffsetSnapshot) -> bytes:
    """Java's delayOffset.json."""
    return dumps_pretty(
        {"dataVersion": snapshot.data_version.to_json(), "offsetTable": snapshot.offsets}
    )


def decode_snapshot(data: bytes) -> DelayOffsetSnapshot:
    """Read delayOffset.json, with bare or quoted levels.  Raises ValueError, TypeError."""
    members = fastjson.loads(data)
    if not isinstance(members, dict):
        raise ValueError("not a JSON object")
    table = members.get("offsetTable") or {}
    return DelayOffsetSnapshot(
        {int(level): int(offset) for level, offset in table.items()},
        DataVersion.from_json(members.get("dataVersion") or {}),
    )
