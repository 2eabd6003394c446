"""Handlers of the broker's request codes; importing this package fills `broker_handlers`."""

from pyritemq.server.broker.processors import (
    ack,
    admin,
    clients,
    locks,
    offsets,
    pop,
    pop_looks,
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
    "ack",
    "admin",
    "clients",
    "locks",
    "offsets",
    "pop",
    "pop_looks",
    "pull",
    "query",
    "recall",
    "reply",
    "send",
    "send_back",
    "topics",
    "transactions",
]
