"""The broker's part for transactions: decisions on their way, and the job that asks producers."""

from __future__ import annotations

import logging
from concurrent.futures import Future
from typing import TYPE_CHECKING

import trio

from pyritemq.protocol.errors import RecordError
from pyritemq.server.broker.transactions.check import HalfCheck
from pyritemq.server.broker.transactions.decisions import Decisions
from pyritemq.server.broker.transactions.halves import op_message
from pyritemq.storage.errors import StorageError
from pyritemq.storage.messages import STORED

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from pyritemq.server.broker.delays.delivery import Put
    from pyritemq.server.broker.transactions.check import Parts
    from pyritemq.storage.messages import MessageToStore, PutResult

    InThread = Callable[[Callable[[], None]], Awaitable[None]]

logger = logging.getLogger(__name__)

PUT_SECONDS = 60
"""Ours: the send lane takes milliseconds; this only keeps a fault there from hanging a stop."""


class TransactionService:
    """`run` notes decisions and checks; `close` comes when no lane runs any more."""

    def __init__(
        self,
        parts: Parts,
        put: Put,
        *,
        host: Callable[[], bytes],
        now_ms: Callable[[], int],
        in_thread: InThread = trio.to_thread.run_sync,
    ) -> None:
        self._parts = parts
        self._put = put
        self._in_thread = in_thread
        self.decisions = Decisions(
            parts.config,
            put,
            make_note=lambda offsets: op_message(offsets, host=host(), now_ms=now_ms()),
            now_ms=now_ms,
        )
        self._check = HalfCheck(parts, self.decisions, self._put_now, now_ms=now_ms)

    async def run(self) -> None:
        """Until cancelled."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._note)
            while True:
                await trio.sleep(self._parts.config.transaction_check_interval / 1000)
                try:
                    await self._in_thread(self._check.round)
                except (OSError, StorageError, RecordError):
                    logger.exception("transactions not checked")

    def close(self) -> None:
        """Note the decisions that wait: the next start must not ask about them."""
        self.decisions.close(self._parts.store.put_batch)

    async def _note(self) -> None:
        while True:
            await trio.sleep(self._parts.config.transaction_op_batch_interval / 1000)
            self.decisions.write()

    def _put_now(self, message: MessageToStore) -> PutResult | None:
        """Have a message stored and wait for it; None if it was not.  Blocks: not for the loop."""
        answer: Future[list[PutResult]] = Future()
        if not self._put([message], answer.set_result):
            return None
        try:
            [result] = answer.result(PUT_SECONDS)
        except TimeoutError:
            return None
        return result if result.status in STORED else None
