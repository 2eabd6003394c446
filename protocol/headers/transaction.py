"""Headers of transactions: a producer decides, the broker asks, an operator has it ask again."""

from pyritemq.protocol.fields import Header, Int, Long, header
from pyritemq.protocol.headers.rpc import RpcHeader


@header
class EndTransactionHeader(RpcHeader):
    topic: str | None = None
    producer_group: str
    tran_state_table_offset: Long  # the half's queue offset
    commit_log_offset: Long
    commit_or_rollback: Int  # TRANSACTION_COMMIT, TRANSACTION_ROLLBACK or TRANSACTION_NOT
    from_transaction_check: bool = False
    msg_id: str
    transaction_id: str | None = None


@header
class CheckTransactionStateHeader(RpcHeader):
    topic: str | None = None
    tran_state_table_offset: Long
    commit_log_offset: Long
    msg_id: str | None = None
    transaction_id: str | None = None
    offset_msg_id: str | None = None


@header
class ResumeCheckHalfMessageHeader(Header):
    topic: str | None = None
    msg_id: str | None = None
