"""The store directory: CommitLog, ConsumeQueues, flush, recovery. Knows no requests, no threads."""

from pyritemq.storage.config import StoreConfig
from pyritemq.storage.message_store import MessageStore
from pyritemq.storage.messages import GetResult, GetStatus, MessageToStore, PutResult, PutStatus

__all__ = [
    "GetResult",
    "GetStatus",
    "MessageStore",
    "MessageToStore",
    "PutResult",
    "PutStatus",
    "StoreConfig",
]
