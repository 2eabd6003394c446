"""Headers of LOCK_BATCH_MQ and UNLOCK_BATCH_MQ; the queues themselves are in the body."""

from pyritemq.protocol.fields import header
from pyritemq.protocol.headers.rpc import RpcHeader


@header
class LockBatchMqHeader(RpcHeader):
    pass


@header
class UnlockBatchMqHeader(RpcHeader):
    pass
