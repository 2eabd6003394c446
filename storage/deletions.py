"""Topics that were deleted: which records of the CommitLog must not come back as units of a queue.

A deleted topic's queues go, its records stay until they expire. A start that derives queues from
the CommitLog would bring the topic back, and if it was made anew, at offset 0, would take new
records for old ones: Java does both after a crash. So the offset at which a topic was deleted is
kept, in config/deletedTopics.json, for as long as the CommitLog holds records below it.

    {"topics": {"TOPIC": 123456}, "underway": ["TOPIC"]}

`underway` is a deletion whose files may still be there; a start ends it. Written by delete_topics
on the admin lane, with the send lane and the flusher kept out; read by recovery.
"""

import json
from collections.abc import Iterable
from pathlib import Path

from pyritemq.storage.disk import Disk
from pyritemq.storage.errors import StoreCorruptError
from pyritemq.storage.tables import load, save


class TopicDeletions:
    """Offsets below which records of a topic count for nothing."""

    def __init__(self, disk: Disk, root: Path) -> None:
        self._disk = disk
        self._path = root / "config" / "deletedTopics.json"
        self.offsets: dict[bytes, int] = {}
        self.underway: list[bytes] = []

    def load(self, *, min_phy_offset: int) -> None:
        """Read the table; entries for records that have expired are forgotten."""
        data = load(self._path, disk=self._disk)
        if data is None:
            return
        try:
            table = json.loads(data)
            offsets = {name.encode(): int(offset) for name, offset in table["topics"].items()}
            self.underway = [name.encode() for name in table["underway"]]
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise StoreCorruptError(f"the file {self._path} is not understood") from error
        self.offsets = {name: at for name, at in offsets.items() if at > min_phy_offset}

    def begin(self, topics: Iterable[bytes], phy_offset: int) -> None:
        """Note, durably, that what lies below phy_offset is deleted."""
        underway = list(topics)
        offsets = self.offsets | dict.fromkeys(underway, phy_offset)
        self._save(offsets, underway)
        self.offsets, self.underway = offsets, underway

    def end(self) -> None:
        """Their files are gone."""
        self._save(self.offsets, [])
        self.underway = []

    @property
    def last_offset(self) -> int:
        """Records at or behind it belong to no deleted topic."""
        return max(self.offsets.values(), default=0)

    def covers(self, topic: bytes, phy_offset: int) -> bool:
        return phy_offset < self.offsets.get(topic, 0)

    def _save(self, offsets: dict[bytes, int], underway: list[bytes]) -> None:
        table = {
            "topics": {name.decode(): offset for name, offset in offsets.items()},
            "underway": [name.decode() for name in underway],
        }
        save(self._path, json.dumps(table).encode(), disk=self._disk)
