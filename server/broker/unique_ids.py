"""Unique message ids of Java's form, for producers that send none of their own.

Used on the send lane only.  32 hex digits: address, process, a random word (Java: the hash of its
class loader), milliseconds since the month began, a counter.
"""

from __future__ import annotations

import datetime
import os
import secrets
import struct
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyritemq.server.clock import Clock

_TAIL = struct.Struct(">IH")


class UniqueIds:
    """Makes ids that no other process of this cluster makes."""

    def __init__(self, address: bytes, clock: Clock) -> None:
        process = struct.pack(">H", os.getpid() & 0xFFFF)
        self._prefix = (address + process + secrets.token_bytes(4)).hex().upper()
        self._clock = clock
        self._counter = 0

    def make(self) -> str:
        """The next id."""
        now_ms = self._clock.now_ms()
        today = datetime.datetime.fromtimestamp(now_ms / 1000, tz=datetime.UTC)
        month = today.replace(day=1, hour=0, minute=0, second=0, microsecond=0)
        since_ms = (now_ms - int(month.timestamp() * 1000)) & 0xFFFFFFFF
        self._counter = (self._counter + 1) & 0xFFFF
        return self._prefix + _TAIL.pack(since_ms, self._counter).hex().upper()
