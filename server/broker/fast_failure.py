"""Answers sends that stand behind an append which hangs, instead of letting them time out.

The send lane refuses late sends itself, at its next drain (`processors.send_checks`); but while an
append hangs, on a disk that does not take it, there is none.  So a task on the loop looks how long
one has been under way.  Longer than waitTimeMillsInSendQueue: those that have waited as long are
answered as the lane would.  Longer than osPageCacheBusyTimeOutMills: all that wait are.  Requests
of our own stay.  Java: BrokerFastFailure for what waits, and SendMessageProcessor.rejectRequest
with MessageStore.isOSPageCacheBusy for what comes while the append hangs.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import trio

from pyritemq.protocol.codes import RequestCode, ResponseCode
from pyritemq.server.broker.internal_sends import InternalSend
from pyritemq.server.broker.remarks import late_remark
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
            _look(broker, began_ns)


def _look(broker: Broker, began_ns: int) -> None:
    config = broker.config
    now_ns = time.monotonic_ns()
    busy_ns = began_ns + config.os_page_cache_busy_time_out_mills * 1_000_000
    limit_ns = config.wait_time_mills_in_send_queue * 1_000_000
    if now_ns > busy_ns:
        _refuse_waiting(broker, busy_ns)
    elif config.broker_fast_failure_enable and now_ns - began_ns > limit_ns:
        _refuse_late(broker, now_ns, limit_ns)


def _refuse_late(broker: Broker, now_ns: int, limit_ns: int) -> None:
    """Answer those that have waited too long."""

    def is_late(request: Request[Any]) -> bool:
        return _is_send(request) and now_ns - request.received_ns >= limit_ns

    late = broker.lanes[Lane.SEND].take_back(is_late)
    for index, request in enumerate(late, start=1):
        waited_ms = (now_ns - request.received_ns) // 1_000_000
        _answer(request, late_remark(waited_ms, len(late) - index))


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
        _answer(request, remark)


def _answer(request: Request[Any], remark: str) -> None:
    if not request.command.is_oneway:
        request.channel.post(request.reply(ResponseCode.SYSTEM_BUSY, remark))


def _is_send(request: Request[Any]) -> bool:
    return request.command.code in SENDS and not isinstance(request, InternalSend)
