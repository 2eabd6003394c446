"""What tools ask of a broker, by subject; importing this package fills `broker_handlers`.

Replies and remarks are those of AdminBrokerProcessor of 5.5.0.
"""

from pyritemq.server.broker.processors.admin import (
    auth,
    cold_data,
    config,
    consumers,
    forwarded,
    groups,
    ha,
    lite,
    offsets,
    runtime,
    stats,
    store,
    timers,
)

__all__ = [
    "auth",
    "cold_data",
    "config",
    "consumers",
    "forwarded",
    "groups",
    "ha",
    "lite",
    "offsets",
    "runtime",
    "stats",
    "store",
    "timers",
]
