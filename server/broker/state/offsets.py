"""How far each consumer group has come in each queue (Java: ConsumerOffsetManager).

Owner: the consumer lane; the pull lane commits too.  One lock guards the tables and is held for
look-ups and for taking a copy to save; encoding and the write to disk happen outside it, under
`_file_lock`, which only orders saves.  The broker saves every few seconds and once more when it
stops; a save with nothing new writes nothing.
"""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING, NamedTuple

import orjson

from pyritemq.compat import fastjson
from pyritemq.compat.register_body import DataVersion
from pyritemq.server.broker.state.config_json import dumps_pretty
from pyritemq.server.broker.state.table_file import read_newest
from pyritemq.server.broker.state.topics import next_version

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pyritemq.storage.tables import JsonTable

logger = logging.getLogger(__name__)

SEPARATOR = "@"
NOT_FOUND = -1

VERSION_STEP = 500
"""Java's consumerOffsetUpdateVersionStep: so many commits make a new data version."""

Offsets = dict[str, dict[int, int]]
"""By `topic@group`, then by queue id."""


class OffsetSnapshot(NamedTuple):
    """What is saved."""

    offsets: Mapping[str, Mapping[int, int]]
    pull_offsets: Mapping[str, Mapping[int, int]]
    data_version: DataVersion


class ConsumerOffsetTable:
    """Committed, pulled and reset offsets."""

    def __init__(
        self, file: JsonTable, *, now_ms: Callable[[], int], use_reset: bool = True
    ) -> None:
        self._file = file
        self._now_ms = now_ms
        self._use_reset = use_reset
        self._lock = threading.Lock()
        self._file_lock = threading.Lock()
        self._offsets: Offsets = {}
        self._pull_offsets: Offsets = {}
        self._reset_offsets: Offsets = {}
        self._data_version = DataVersion(timestamp=now_ms())
        self._commits = 0
        self._dirty = False

    def load(self) -> None:
        """Read the file at start.  As in Java, pull offsets are written but not read back."""
        loaded = read_newest(self._file, decode_snapshot)
        if loaded is not None:
            with self._lock:
                self._offsets = {key: dict(queues) for key, queues in loaded.offsets.items()}
                self._data_version = loaded.data_version

    def persist(self) -> None:
        """Save what changed since the last save."""
        with self._file_lock:
            snapshot = self._take_dirty()
            if snapshot is not None:
                self._save(snapshot)

    def commit(
        self, group: str, topic: str, queue_id: int, offset: int, *, peer: str = "-"
    ) -> None:
        """Note how far a group has come; going back is allowed and logged, as in Java."""
        with self._lock:
            queues = self._offsets.setdefault(_key(topic, group), {})
            before = queues.get(queue_id, NOT_FOUND)
            queues[queue_id] = offset
            self._touch()
        if offset < before:
            logger.warning(
                "consumer offset moved back peer=%s topic=%s group=%s queue=%d from=%d to=%d",
                peer,
                topic,
                group,
                queue_id,
                before,
                offset,
            )

    def commit_pull(self, group: str, topic: str, queue_id: int, offset: int) -> None:
        """Note up to where a group has pulled."""
        with self._lock:
            self._pull_offsets.setdefault(_key(topic, group), {})[queue_id] = offset
            self._dirty = True

    def query(self, group: str, topic: str, queue_id: int) -> int:
        """Where the group goes on: a pending reset, else what it committed, else NOT_FOUND."""
        key = _key(topic, group)
        with self._lock:
            if self._use_reset:
                reset = self._reset_offsets.get(key, {}).get(queue_id)
                if reset is not None:
                    return reset
            return self._offsets.get(key, {}).get(queue_id, NOT_FOUND)

    def query_pull(self, group: str, topic: str, queue_id: int) -> int:
        """Up to where the group has pulled; if unknown, as `query`."""
        with self._lock:
            pulled = self._pull_offsets.get(_key(topic, group), {}).get(queue_id)
        return pulled if pulled is not None else self.query(group, topic, queue_id)

    def query_all(self, group: str, topic: str) -> dict[int, int]:
        """Committed offsets by queue; empty if there are none."""
        with self._lock:
            return dict(self._offsets.get(_key(topic, group), ()))

    def assign_reset(self, group: str, topic: str, queue_id: int, offset: int) -> None:
        """An operator moves the group; consumers that are online learn it with their next pull."""
        if not topic or not group or queue_id < 0 or offset < 0:
            logger.warning("reset offset ignored topic=%s group=%s", topic, group)
            return
        key = _key(topic, group)
        with self._lock:
            self._reset_offsets.setdefault(key, {})[queue_id] = offset
            self._offsets.setdefault(key, {})[queue_id] = offset
            self._dirty = True

    def has_reset(self, group: str, topic: str, queue_id: int) -> bool:
        """Whether a reset waits for the group; commits are ignored until it is taken."""
        if not self._use_reset:
            return False
        with self._lock:
            return queue_id in self._reset_offsets.get(_key(topic, group), {})

    def take_reset(self, group: str, topic: str, queue_id: int) -> int | None:
        """The reset that waits, once.  Each pull asks, and hardly ever is there one."""
        if not self._reset_offsets:
            return None
        key = _key(topic, group)
        with self._lock:
            queues = self._reset_offsets.get(key, {})
            offset = queues.pop(queue_id, None)
            if not queues:
                self._reset_offsets.pop(key, None)
            return offset

    def clear_pull(self, group: str, topic: str) -> None:
        with self._lock:
            self._pull_offsets.pop(_key(topic, group), None)

    def remove_topic(self, topic: str) -> None:
        """Forget a deleted topic."""
        self._remove(lambda key: _split(key)[0] == topic)

    def remove_group(self, group: str) -> None:
        """Forget a deleted group."""
        self._remove(lambda key: _split(key)[1] == group)

    def topics_of_group(self, group: str) -> set[str]:
        """The topics in which a group has committed."""
        return {topic for topic, owner in map(_split, self._keys()) if owner == group}

    def groups_of_topic(self, topic: str) -> set[str]:
        """The groups that have committed in a topic."""
        return {group for name, group in map(_split, self._keys()) if name == topic}

    def copy_group(self, *, source: str, target: str, topic: str) -> None:
        """Let one group go on where another is."""
        with self._lock:
            queues = self._offsets.get(_key(topic, source))
            if queues is not None:
                self._offsets[_key(topic, target)] = dict(queues)
                self._dirty = True

    def snapshot(self) -> OffsetSnapshot:
        """A consistent copy."""
        with self._lock:
            return self._copy()

    def _keys(self) -> list[str]:
        with self._lock:
            return list(self._offsets)

    def _remove(self, gone: Callable[[str], bool]) -> None:
        with self._lock:
            for table in (self._offsets, self._pull_offsets, self._reset_offsets):
                for key in [key for key in table if gone(key)]:
                    del table[key]
                    self._dirty = True

    def _touch(self) -> None:
        """Under the lock, after a commit."""
        self._dirty = True
        self._commits += 1
        if self._commits % VERSION_STEP == 0:
            self._data_version = next_version(self._data_version, self._now_ms())

    def _take_dirty(self) -> OffsetSnapshot | None:
        with self._lock:
            if not self._dirty:
                return None
            self._dirty = False
            return self._copy()

    def _save(self, snapshot: OffsetSnapshot) -> None:
        try:
            self._file.save(encode_snapshot(snapshot))
        except BaseException:
            with self._lock:
                self._dirty = True
            raise

    def _copy(self) -> OffsetSnapshot:
        return OffsetSnapshot(
            {key: dict(queues) for key, queues in self._offsets.items()},
            {key: dict(queues) for key, queues in self._pull_offsets.items()},
            self._data_version,
        )


def encode_snapshot(snapshot: OffsetSnapshot) -> bytes:
    """Java's consumerOffset.json.

    `dumps_pretty` for all but the two large tables, which are joined by hand: a broker with 50,000
    queues saves them every 5 seconds, on a thread that shares its time with the hot path.
    """
    groups: dict[str, list[str]] = {}
    for key in snapshot.offsets:
        topic, group = _split(key)
        if group:
            groups.setdefault(group, []).append(topic)
    head = dumps_pretty(
        {"dataVersion": snapshot.data_version.to_json(), "groupTopicMap": groups}
    ).decode()
    tables = ",\n\t".join(
        (
            f'"offsetTable":{_encode_table(snapshot.offsets)}',
            f'"pullOffsetTable":{_encode_table(snapshot.pull_offsets)}',
        )
    )
    return f"{head[:-2]},\n\t{tables}\n}}".encode()


def _encode_table(table: Mapping[str, Mapping[int, int]]) -> str:
    if not table:
        return "{}"
    rows = ",\n\t\t".join(
        f"{orjson.dumps(key).decode()}:{_encode_queues(queues)}" for key, queues in table.items()
    )
    return f"{{\n\t\t{rows}\n\t}}"


def _encode_queues(queues: Mapping[int, int]) -> str:
    if not queues:
        return "{}"
    rows = ",\n\t\t\t".join(f"{queue_id}:{offset}" for queue_id, offset in sorted(queues.items()))
    return f"{{\n\t\t\t{rows}\n\t\t}}"


def decode_snapshot(data: bytes) -> OffsetSnapshot:
    """Read consumerOffset.json, with bare or quoted queue ids.  Raises ValueError, TypeError."""
    members = fastjson.loads(data)
    if not isinstance(members, dict):
        raise ValueError("not a JSON object")
    return OffsetSnapshot(
        _decode_table(members.get("offsetTable")),
        _decode_table(members.get("pullOffsetTable")),
        DataVersion.from_json(members.get("dataVersion") or {}),
    )


def _decode_table(table: object) -> Offsets:
    if table is None:
        return {}
    if not isinstance(table, dict):
        raise ValueError("an offset table is not a JSON object")
    return {
        str(key): {int(queue_id): int(offset) for queue_id, offset in queues.items()}
        for key, queues in table.items()
        if isinstance(queues, dict)
    }


def _key(topic: str, group: str) -> str:
    return f"{topic}{SEPARATOR}{group}"


def _split(key: str) -> tuple[str, str]:
    """Topic and group; neither may contain the separator, so a key with two belongs to nobody."""
    topic, separator, group = key.partition(SEPARATOR)
    return (topic, group) if separator and SEPARATOR not in group else (key, "")
