"""The name server's handlers, one module a subject; importing this fills the registry."""

from pyritemq.server.namesrv.processors import brokers, config, kv, topics

__all__ = ["brokers", "config", "kv", "topics"]
