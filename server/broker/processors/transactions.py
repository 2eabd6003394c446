"""END_TRANSACTION, on the transaction lane, and RESUME_CHECK_HALF_MESSAGE.

A producer commits or rolls back a half that it names by its place.  All commits of a drain become
one put; their replies, if anyone waits for one, are made on the send lane when it has stored them.
The checks, codes and remarks are those of Java's EndTransactionProcessor (5.5.0).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from pyritemq.compat.message_id import parse_message_id
from pyritemq.protocol.codes import RequestCode, ResponseCode
from pyritemq.protocol.errors import ProtocolError, RecordError
from pyritemq.protocol.fields import parse_long
from pyritemq.protocol.headers.transaction import (
    EndTransactionHeader,
    ResumeCheckHalfMessageHeader,
)
from pyritemq.protocol.record import (
    TRANSACTION_COMMIT,
    TRANSACTION_NOT,
    TRANSACTION_ROLLBACK,
    decode_properties,
    decode_record,
)
from pyritemq.server.broker.delays.rewriting import REAL_TOPIC
from pyritemq.server.broker.state import names
from pyritemq.server.broker.state.events import COMMITTED, FINISH_LATENCY, ROLLED_BACK
from pyritemq.server.broker.transactions.halves import (
    IMMUNITY_SECONDS,
    PRODUCER_GROUP,
    committed,
    resumed,
)
from pyritemq.server.failures import reply_to_failure
from pyritemq.server.lanes import Lane
from pyritemq.server.registry import RequestRefused, broker_handlers
from pyritemq.storage.messages import STORED, MessageToStore, PutStatus

if TYPE_CHECKING:
    from pyritemq.protocol.command import Command
    from pyritemq.protocol.record import Record
    from pyritemq.server.broker.broker import Broker
    from pyritemq.server.lanes import Outbox
    from pyritemq.server.registry import Request
    from pyritemq.storage.messages import PutResult

SLAVE = "SLAVE"
_SCHEDULE_TOPIC = names.SCHEDULE_TOPIC.encode()

_REFUSALS = {
    PutStatus.CREATE_MAPPED_FILE_FAILED: (
        ResponseCode.SYSTEM_ERROR,
        "Create mapped file failed.",
    ),
    PutStatus.SERVICE_NOT_AVAILABLE: (
        ResponseCode.SERVICE_NOT_AVAILABLE,
        "Service not available now.",
    ),
    PutStatus.OS_PAGE_CACHE_BUSY: (
        ResponseCode.SYSTEM_ERROR,
        "OS page cache busy, please try another machine",
    ),
    PutStatus.UNKNOWN_ERROR: (ResponseCode.SYSTEM_ERROR, "UNKNOWN_ERROR"),
}
_ILLEGAL = frozenset({PutStatus.MESSAGE_ILLEGAL, PutStatus.PROPERTIES_SIZE_EXCEEDED})
_ILLEGAL_REMARK = (
    "The message is illegal, maybe msg body or properties length not matched. "
    "msg body length limit {}B, msg properties length limit 32KB."
)

_RESUME_REFUSED = "Put message back to RMQ_SYS_TRANS_HALF_TOPIC failed."
_RESUME_FAILED = "Exception was thrown when putting message back to RMQ_SYS_TRANS_HALF_TOPIC."


class _Commit(NamedTuple):
    """A commit whose message is to be stored; `half_offset` is None if it lies elsewhere."""

    request: Request[Any]
    message: MessageToStore
    half_offset: int | None
    topic: str
    born_timestamp: int


@broker_handlers.handles_batch(RequestCode.END_TRANSACTION, lane=Lane.TRANSACTION)
def end_transactions(broker: Broker, requests: list[Request[Any]], outbox: Outbox) -> None:
    commits: list[_Commit] = []
    for request in requests:
        try:
            reply = _end(broker, request, commits)
        except Exception as error:  # noqa: BLE001 - one bad request must not fail its neighbours
            reply = reply_to_failure(request, error)
        if reply is not None:
            outbox.add_reply(request, reply)
    if commits:
        _put(broker, commits)


def _end(broker: Broker, request: Request[Any], commits: list[_Commit]) -> Command | None:
    """The reply; None for a commit, whose reply comes later, and for an undecided producer."""
    header = EndTransactionHeader.decode(request.command.ext_fields)
    decision = header.commit_or_rollback
    if decision not in (TRANSACTION_NOT, TRANSACTION_COMMIT, TRANSACTION_ROLLBACK):
        raise ProtocolError("commitOrRollback field wrong")
    if broker.config.broker_role == SLAVE:
        return request.reply(ResponseCode.SLAVE_NOT_AVAILABLE)
    if decision == TRANSACTION_NOT:
        return None
    half = _half_at(broker, header.commit_log_offset)
    properties = decode_properties(half.properties)
    if not header.from_transaction_check and _is_too_late(broker, half, properties):
        return request.reply(ResponseCode.ILLEGAL_OPERATION)
    _check(header, half, properties)
    message = _final_message(broker, half) if decision == TRANSACTION_COMMIT else None
    return _decide(broker, request, half, message, properties.get(REAL_TOPIC, ""), commits)


def _final_message(broker: Broker, half: Record) -> MessageToStore:
    try:
        message = committed(half, level_max=broker.delays.level_max)
    except ValueError as fault:
        raise ProtocolError(f"the message cannot be committed: {fault}") from None
    if message.topic != _SCHEDULE_TOPIC:
        broker.timers.hold(message)
    return message


def _decide(
    broker: Broker,
    request: Request[Any],
    half: Record,
    message: MessageToStore | None,
    topic: str,
    commits: list[_Commit],
) -> Command | None:
    """Commit if there is a message to store, else roll back."""
    offset = half.queue_offset if half.topic == names.TRANS_HALF_TOPIC else None
    if offset is not None and not broker.transactions.decisions.begin(offset):
        return request.reply()  # said twice: the first decision stands
    if message is not None:
        commits.append(_Commit(request, message, offset, topic, half.born_timestamp))
        return None
    broker.events.count(ROLLED_BACK, topic=topic)
    if offset is not None:
        broker.transactions.decisions.decide([offset])
    return request.reply()


def _half_at(broker: Broker, phy_offset: int) -> Record:
    found = broker.store.record_at(phy_offset)
    try:
        if found is not None:
            return decode_record(found)
    except RecordError:
        pass
    raise RequestRefused(ResponseCode.SYSTEM_ERROR, "Find prepared transaction message failed")


def _is_too_late(broker: Broker, half: Record, properties: dict[str, str]) -> bool:
    """Once a half's own immunity is over, only the answer to a question counts."""
    text = properties.get(IMMUNITY_SECONDS)
    if not text:
        return False
    try:
        immunity_ms = parse_long(text) * 1000
    except ValueError:
        immunity_ms = 0
    immunity_ms = max(immunity_ms, broker.config.transaction_time_out)
    return broker.clock.now_ms() - half.born_timestamp > immunity_ms


def _check(header: EndTransactionHeader, half: Record, properties: dict[str, str]) -> None:
    """That the half is the one that the producer means.  Raises RequestRefused."""
    if properties.get(PRODUCER_GROUP) != header.producer_group:
        raise RequestRefused(ResponseCode.SYSTEM_ERROR, "The producer group wrong")
    if half.queue_offset != header.tran_state_table_offset:
        raise RequestRefused(ResponseCode.SYSTEM_ERROR, "The transaction state table offset wrong")
    if half.phy_offset != header.commit_log_offset:
        raise RequestRefused(ResponseCode.SYSTEM_ERROR, "The commit log offset wrong")


def _put(broker: Broker, commits: list[_Commit]) -> None:
    def done(results: list[PutResult]) -> None:  # on the send lane
        decided: list[int] = []
        for commit, result in zip(commits, results, strict=True):
            if commit.half_offset is not None and result.status in STORED:
                decided.append(commit.half_offset)
            elif commit.half_offset is not None:
                broker.transactions.decisions.abandon(commit.half_offset)
            if result.status in STORED:
                _count_commit(broker, commit)
            _answer(commit.request, *_outcome(broker, result.status))
        broker.transactions.decisions.decide(decided)

    if broker.internal_sends.put([commit.message for commit in commits], done):
        return
    for commit in commits:  # the server is stopping: the next start asks
        if commit.half_offset is not None:
            broker.transactions.decisions.abandon(commit.half_offset)
        _answer(commit.request, *_REFUSALS[PutStatus.SERVICE_NOT_AVAILABLE])


def _count_commit(broker: Broker, commit: _Commit) -> None:
    broker.events.count(COMMITTED, topic=commit.topic)
    seconds = (broker.clock.now_ms() - commit.born_timestamp) // 1000
    broker.events.observe(FINISH_LATENCY, seconds, topic=commit.topic)


def _outcome(broker: Broker, status: PutStatus) -> tuple[ResponseCode, str | None]:
    if status in STORED:
        return ResponseCode.SUCCESS, None
    if status in _ILLEGAL:
        remark = _ILLEGAL_REMARK.format(broker.config.max_message_size)
        return ResponseCode.MESSAGE_ILLEGAL, remark
    return _REFUSALS.get(status, (ResponseCode.SYSTEM_ERROR, "UNKNOWN_ERROR DEFAULT"))


def _answer(request: Request[Any], code: ResponseCode, remark: str | None) -> None:
    """Reply from outside the request's lane."""
    if not request.command.is_oneway:
        request.channel.post(request.reply(code, remark))


@broker_handlers.handles(
    RequestCode.RESUME_CHECK_HALF_MESSAGE, ResumeCheckHalfMessageHeader, lane=Lane.ADMIN
)
def resume_check_half_message(
    broker: Broker, request: Request[ResumeCheckHalfMessageHeader]
) -> Command | None:
    """Ask again about a half that was given up; its count starts anew."""
    try:
        place = parse_message_id(request.header.msg_id or "")
        message = resumed(_half_at(broker, place.phy_offset))
    except (ValueError, RequestRefused):
        return request.reply(ResponseCode.SYSTEM_ERROR, _RESUME_FAILED)

    def done(results: list[PutResult]) -> None:  # on the send lane
        if results[0].status is PutStatus.PUT_OK:
            _answer(request, ResponseCode.SUCCESS, None)
        else:
            _answer(request, ResponseCode.SYSTEM_ERROR, _RESUME_REFUSED)

    if not broker.internal_sends.put([message], done):
        return request.reply(ResponseCode.SYSTEM_ERROR, _RESUME_REFUSED)
    return None
