"""Answers sends that stand behind an append which hangs, instead of letting them time out.

The send lane refuses late sends itself, at its next drain (`processors.send_checks`); but while an
append hangs, on a disk that does not take it, there is none.  So a task on the loop looks whether
one has been under way for longer than osPageCacheBusyTimeOutMills, and answers SYSTEM_BUSY to all
that wait meanwhile; requests of our own stay.  Java: MessageStore.isOSPageCacheBusy, with
SendMessageProcessor.rejectRequest for what comes then, and BrokerFastFailure for what waits.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import trio

from pyritemq.protocol.codes import RequestCode, ResponseCode
from pyritemq.server.broker.internal_sends import InternalSend
from pyritemq.server.lanes import Lane

if TYPE_CHECKING:
    from pyritemq.server.broker.broker import Broker
    from pyritemq.server.registry import Request

LOOK_SECONDS = 0.1
"""Java looks every 10 ms; a tenth of a second more is little beside the second that has passed."""

SENDS = frozenset(
    {
        RequestCode.SEND_MESSAGE,
        RequestCode.SEND_MESSAGE_V2,
        RequestCode.SEND_BATCH_MESSAGE,
        RequestCode.CONSUMER_SEND_MSG_BACK,
    }
)
REJECTED = "[REJECTREQUEST]system busy, start flow control for a while"


async def refuse_while_busy(broker: Broker) -> None:
    """Look again and again, until cancelled; on the loop."""
    while True:
        await trio.sleep(LOOK_SECONDS)
        began_ns = broker.put_began_ns
        if began_ns:
            busy_ns = began_ns + broker.config.os_page_cache_busy_time_out_mills * 1_000_000
            if time.monotonic_ns() > busy_ns:
                _refuse_waiting(broker, busy_ns)


def _refuse_waiting(broker: Broker, busy_ns: int) -> None:
    """Answer all that waits; what came before the append counted as hanging hears its wait."""
    waiting = broker.lanes[Lane.SEND].take_back(_is_send)
    now_ns = time.monotonic_ns()
    for index, request in enumerate(waiting, start=1):
        remark = REJECTED
        if request.received_ns < busy_ns and broker.config.broker_fast_failure_enable:
            waited_ms = (now_ns - request.received_ns) // 1_000_000
            remark = (
                "[PCBUSY_CLEAN_QUEUE]broker busy, start flow control for a while, "
                f"period in queue: {waited_ms}ms, size of queue: {len(waiting) - index}"
            )
        if not request.command.is_oneway:
            request.channel.post(request.reply(ResponseCode.SYSTEM_BUSY, remark))


def _is_send(request: Request[Any]) -> bool:
    return request.command.code in SENDS and not isinstance(request, InternalSend)
