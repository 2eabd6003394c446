"""Messages that the broker writes itself: delayed ones that are due, retries, transactions, timers.

The send lane is the only writer of the CommitLog, so they go through it like any client's send and
become part of its next append.  Called from any thread; `done` runs on the send lane with one
result for each message, after they have been published, and must be quick.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from pyritemq.protocol.codes import RequestCode
from pyritemq.protocol.command import FLAG_ONEWAY, Command
from pyritemq.server.connection import NOBODY
from pyritemq.server.lanes import Lane
from pyritemq.server.registry import Request
from pyritemq.storage.messages import PutResult, PutStatus

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyritemq.server.dispatch import Dispatcher
    from pyritemq.server.registry import Handler
    from pyritemq.storage.messages import MessageToStore


class InternalSend(Request[Any]):
    """Stands among the clients' sends of a drain; nobody is answered."""

    __slots__ = ("done", "is_delayed", "messages")

    def __init__(
        self,
        messages: list[MessageToStore],
        done: Callable[[list[PutResult]], None],
        handler: Handler[Any],
        *,
        is_delayed: bool = False,
    ) -> None:
        super().__init__(_ONEWAY, NOBODY, handler, time.monotonic_ns())
        self.messages = messages
        self.done = done
        self.is_delayed = is_delayed

    def fail(self) -> None:
        """Tell that nothing was written."""
        self.done([PutResult(PutStatus.UNKNOWN_ERROR, 0, 0, 0, 0)] * len(self.messages))


_ONEWAY = Command(RequestCode.SEND_MESSAGE_V2, flag=FLAG_ONEWAY)


class InternalSends:
    """The broker's own way into its send lane."""

    def __init__(self, dispatcher: Dispatcher[Any]) -> None:
        self._lane = dispatcher.lanes[Lane.SEND]
        self._handler = dispatcher.handler_of(RequestCode.SEND_MESSAGE_V2)

    def put(
        self,
        messages: list[MessageToStore],
        done: Callable[[list[PutResult]], None],
        *,
        is_delayed: bool = False,
    ) -> bool:
        """Have messages appended; False if the lane is closed and `done` will never run.

        The lane takes them however full it is, so whoever calls bounds what it has under way.
        Those that come out of a delay level are counted as such.
        """
        return self._lane.insist(InternalSend(messages, done, self._handler, is_delayed=is_delayed))
