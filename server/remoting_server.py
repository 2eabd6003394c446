"""A service on the network: its listener, its dispatcher and its lanes, run as one.

`run` lives on the trio loop.  A stop is orderly: no new connections, then the lanes finish what
they have, then their replies are written, then connections close.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

import trio

from pyritemq.server.dispatch import Dispatcher
from pyritemq.server.listener import Listener

if TYPE_CHECKING:
    import socket
    from collections.abc import Mapping

    from pyritemq.server.connection import Channel
    from pyritemq.server.lanes import Lane, LanePool, Outbox
    from pyritemq.server.registry import Registry


class Service(Protocol):
    """What the network side needs to know of a broker or a name server."""

    def channel_closed(self, channel: Channel) -> None:
        """A connection is gone; called on lane CLIENT."""


ServiceT = TypeVar("ServiceT", bound=Service)

FRAME_MAX_BYTES = 16 * 1024 * 1024
"""Java's com.rocketmq.remoting.frameMaxLength."""


class RemotingServer(Generic[ServiceT]):
    """Serves one service's request codes on its listening sockets."""

    def __init__(
        self,
        service: ServiceT,
        registry: Registry[ServiceT],
        sockets: list[socket.socket],
        *,
        lane_sizes: Mapping[Lane, tuple[int, int]],
        idle_seconds: float,
        frame_max: int = FRAME_MAX_BYTES,
    ) -> None:
        self.dispatcher = Dispatcher(
            service,
            registry,
            lane_sizes=lane_sizes,
            post=_deliver,
            channel_closed=lambda channel: self.dispatcher.service.channel_closed(channel),
        )
        self.listener = Listener(
            sockets,
            frame_max=frame_max,
            idle_seconds=idle_seconds,
            received=self.dispatcher.received,
            closed=self.dispatcher.closed,
        )
        self._stop = trio.Event()
        self.stopped = trio.Event()

    @property
    def lanes(self) -> dict[Lane, LanePool]:
        return self.dispatcher.lanes

    async def run(self, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Serve until `stop` or cancellation."""
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self.listener.run)
                task_status.started()
                await self._stop.wait()
                self.listener.stop_accepting()
                await self._finish_lanes()
                nursery.cancel_scope.cancel()
        finally:
            with trio.CancelScope(shield=True):
                await self._finish_lanes()
            self.stopped.set()

    @property
    def is_stopping(self) -> bool:
        return self._stop.is_set()

    def stop(self) -> None:
        """Begin an orderly stop; `run` returns when it is over."""
        self._stop.set()

    async def _finish_lanes(self) -> None:
        await trio.to_thread.run_sync(self.dispatcher.close)


def _deliver(outbox: Outbox) -> None:
    """Write a drain's replies, once for each connection; on the lane's own thread."""
    for channel, buffers in outbox.chunks.items():
        channel.write(buffers)
