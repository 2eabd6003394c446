"""Handlers of the broker's request codes; importing this package fills `broker_handlers`."""

from pyritemq.server.broker.processors import (
    admin,
    clients,
    locks,
    offsets,
    pull,
    query,
    recall,
    reply,
    send,
    send_back,
    topics,
    transactions,
)

__all__ = [
    "admin",
    "clients",
    "locks",
    "offsets",
    "pull",
    "query",
    "recall",
    "reply",
    "send",
    "send_back",
    "topics",
    "transactions",
]
