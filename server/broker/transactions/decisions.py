"""Which halves are decided but not yet noted in the op topic, and the notes' way there.

A decision is noted in batches, as Java does: when transactionOpMsgMaxSize bytes of offsets have
gathered, or transactionOpBatchInterval after the last note.  Until a note is published its halves
are known here, so a check in between does not ask about them:

    1. transaction lane: `begin`: the half is under way.
    2. send lane: has stored the message of a commit; `decide`: the half waits for its note.
    3. send lane: has published the note; the half is forgotten here and found there.

A check looks here first and then into the op topic; so it misses no half between 2 and 3.
`_lock` is held for a few assignments; the put inside `write` is called without it.
"""

from __future__ import annotations

import logging
import threading
from enum import Enum
from typing import TYPE_CHECKING

from pyritemq.storage.messages import STORED

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from pyritemq.compat.broker_conf import BrokerConfig
    from pyritemq.server.broker.delays.delivery import Put
    from pyritemq.storage.messages import MessageToStore, PutResult

logger = logging.getLogger(__name__)

WAITING_MAX = 100_000
"""Ours, five times Java's: beyond it, on a disk that takes no notes, a decision is forgotten and
its producer asked again."""


class Standing(Enum):
    """What is known here of a half."""

    OPEN = 0
    UNDER_WAY = 1
    DECIDED = 2


class Decisions:
    """Queue offsets of halves."""

    def __init__(
        self,
        config: BrokerConfig,
        put: Put,
        *,
        make_note: Callable[[list[int]], MessageToStore],
        now_ms: Callable[[], int],
    ) -> None:
        self._config = config
        self._put = put
        self._make_note = make_note
        self._now_ms = now_ms
        self._lock = threading.Lock()
        self._under_way: set[int] = set()
        self._decided: set[int] = set()  # those that wait, and those whose note is on its way
        self._waiting: list[int] = []
        self._waiting_size = 0
        self._written_ms = 0
        self._failing = False

    def begin(self, offset: int) -> bool:
        """A decision is under way; False if there is one already, which stands."""
        with self._lock:
            if offset in self._under_way or offset in self._decided:
                return False
            self._under_way.add(offset)
            return True

    def abandon(self, offset: int) -> None:
        """The decision could not be carried out; the half stays open."""
        with self._lock:
            self._under_way.discard(offset)

    def decide(self, offsets: Iterable[int]) -> None:
        """Decisions have been carried out and are to be noted."""
        with self._lock:
            for offset in offsets:
                self._under_way.discard(offset)
                if len(self._waiting) < WAITING_MAX:
                    self._decided.add(offset)
                    self._wait(offset)
            is_due = self._waiting_size > self._config.transaction_op_msg_max_size or (
                self._now_ms() - self._written_ms >= self._config.transaction_op_batch_interval
            )
            is_due = is_due and not self._failing
        if is_due:
            self.write()

    def standing(self, offset: int) -> Standing:
        """What is known of a half; OPEN also means that the op topic has to be looked at."""
        with self._lock:
            if offset in self._decided:
                return Standing.DECIDED
            return Standing.UNDER_WAY if offset in self._under_way else Standing.OPEN

    def write(self) -> None:
        """Note all that waits; never blocks."""
        batches = self._take()
        if not batches:
            return
        notes = [self._make_note(batch) for batch in batches]

        def done(results: list[PutResult]) -> None:  # on the send lane
            self._written(batches, results)

        if not self._put(notes, done):
            self._give_back(batches)

    def close(self, put_batch: Callable[[Sequence[MessageToStore]], list[PutResult]]) -> None:
        """Note all that waits, when no lane runs any more."""
        batches = self._take()
        if batches:
            self._written(batches, put_batch([self._make_note(batch) for batch in batches]))

    def _wait(self, offset: int) -> None:
        self._waiting.append(offset)
        self._waiting_size += len(str(offset)) + 1

    def _take(self) -> list[list[int]]:
        """All that waits, in batches of at most the size of a note, and one offset more."""
        size_max = self._config.transaction_op_msg_max_size
        batches: list[list[int]] = []
        size = size_max
        with self._lock:
            for offset in self._waiting:
                if size >= size_max:
                    batches.append([])
                    size = 0
                batches[-1].append(offset)
                size += len(str(offset)) + 1
            self._waiting.clear()
            self._waiting_size = 0
            if batches:  # one that comes after a quiet time is noted at once
                self._written_ms = self._now_ms()
        return batches

    def _give_back(self, batches: list[list[int]]) -> None:
        with self._lock:
            for batch in batches:
                for offset in batch:
                    self._wait(offset)

    def _written(self, batches: list[list[int]], results: Sequence[PutResult]) -> None:
        refused: list[list[int]] = []
        with self._lock:
            for batch, result in zip(batches, results, strict=True):
                if result.status in STORED:
                    self._decided.difference_update(batch)
                else:
                    refused.append(batch)
            changed = self._failing != bool(refused)
            self._failing = bool(refused)
        self._give_back(refused)
        if changed:
            word = "held up" if refused else "written again"
            logger.warning("transaction op messages %s", word)
