"""Which groups pop a topic and which pull it, and `messageRequestMode.json`.

Set by `mqadmin setConsumeMode`, on the admin lane; QUERY_ASSIGNMENT looks it up.  Java:
MessageRequestModeManager.  The table is replaced whole under `_lock`, which also orders saves.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, NamedTuple

from pyritemq.compat import fastjson
from pyritemq.server.broker.state.config_json import dumps_pretty
from pyritemq.server.broker.state.table_file import read_newest

if TYPE_CHECKING:
    from pyritemq.storage.tables import JsonTable

PULL = "PULL"
POP = "POP"


class RequestMode(NamedTuple):
    """How a group gets a topic's messages, and with how many others it shares its queues."""

    topic: str
    group: str
    mode: str
    pop_share_queue_num: int = 0

    def to_json(self) -> dict[str, Any]:
        return {
            "consumerGroup": self.group,
            "mode": self.mode,
            "popShareQueueNum": self.pop_share_queue_num,
            "topic": self.topic,
        }

    @classmethod
    def from_json(cls, members: object) -> RequestMode:
        """Raises ValueError."""
        if not isinstance(members, dict):
            raise ValueError("not a JSON object")
        topic, group = members.get("topic"), members.get("consumerGroup")
        if not isinstance(topic, str) or not isinstance(group, str):
            raise ValueError("topic and consumerGroup must be given")
        mode = members.get("mode", PULL)
        if mode not in (PULL, POP):
            raise ValueError(f"{mode!r} is neither {PULL} nor {POP}")
        share = members.get("popShareQueueNum", 0)
        if not isinstance(share, int):
            raise ValueError("popShareQueueNum is no number")
        return cls(topic, group, mode, share)


Modes = dict[tuple[str, str], RequestMode]


class RequestModeTable:
    """Modes by topic and group."""

    def __init__(self, file: JsonTable) -> None:
        self._file = file
        self._lock = threading.Lock()
        self._modes: Modes = {}

    def load(self) -> None:
        self._modes = read_newest(self._file, _decode) or {}

    def find(self, topic: str, group: str) -> RequestMode | None:
        return self._modes.get((topic, group))

    def set(self, mode: RequestMode) -> None:
        """Put it in place and save."""
        with self._lock:
            modes = self._modes | {(mode.topic, mode.group): mode}
            self._file.save(_encode(modes))
            self._modes = modes

    def encode(self) -> bytes:
        """The table as its file has it."""
        return _encode(self._modes)


def _encode(modes: Modes) -> bytes:
    table: dict[str, dict[str, Any]] = {}
    for (topic, group), mode in modes.items():
        table.setdefault(topic, {})[group] = mode.to_json()
    return dumps_pretty({"messageRequestModeMap": table})


def _decode(data: bytes) -> Modes:
    """Raises ValueError, TypeError."""
    members = fastjson.loads(data)
    if not isinstance(members, dict):
        raise ValueError("not a JSON object")
    table = members.get("messageRequestModeMap") or {}
    modes = [RequestMode.from_json(item) for groups in table.values() for item in groups.values()]
    return {(mode.topic, mode.group): mode for mode in modes}
