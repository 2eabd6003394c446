"""A throw-away RocketMQ server for tests, with pytest or without.

    from pyritemq.testing import rocketmq_server

    with rocketmq_server() as rocketmq:
        producer.set_namesrv_addr(rocketmq.namesrv)

The wheel installs this folder as `pyritemq.testing`, and a link does so in a checkout.  The code is
in `pyritemq.server.testing`; here are only the names that users may rely on.
"""

from typing import TYPE_CHECKING

from pyritemq.server.testing.calls import CallRefused
from pyritemq.server.testing.servers import (
    ChildServer,
    RocketMQ,
    TestingError,
    ThreadServer,
    rocketmq_server,
)

if TYPE_CHECKING:
    from pyritemq.server.testing.container import RocketMQContainer

__all__ = [
    "CallRefused",
    "ChildServer",
    "RocketMQ",
    "RocketMQContainer",
    "TestingError",
    "ThreadServer",
    "rocketmq_server",
]


def __getattr__(name: str) -> object:
    # testcontainers is an extra: only whoever names the class needs it.
    if name == "RocketMQContainer":
        from pyritemq.server.testing.container import RocketMQContainer

        return RocketMQContainer
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
