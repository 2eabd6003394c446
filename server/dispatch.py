"""From decoded commands to lanes and back.

`received` runs on the loop and only sorts: everything of one socket read becomes at most one job
for each lane.  `_run` runs on lane threads and calls the handlers.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from pyritemq.protocol.codes import RequestCode
from pyritemq.protocol.command import Command
from pyritemq.server.failures import reply_overloaded, reply_to_failure, reply_unsupported
from pyritemq.server.lanes import Lane, LanePool, Outbox
from pyritemq.server.registry import Handler, Registry, Request

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pyritemq.server.connection import Channel
    from pyritemq.server.latencies import RequestLatencies

ONEWAY_FLAG = 2
RESPONSE_FLAG = 1

ServiceT = TypeVar("ServiceT")


class Dispatcher(Generic[ServiceT]):
    """Owns a service's lanes and hands them their requests."""

    def __init__(
        self,
        service: ServiceT,
        registry: Registry[ServiceT],
        *,
        lane_sizes: Mapping[Lane, tuple[int, int]],
        post: Callable[[Outbox], None],
        channel_closed: Callable[[Channel], None],
    ) -> None:
        self.service = service  # replaced only while every lane is paused
        self.latencies: RequestLatencies | None = None
        self._handlers = registry.table()
        used = {handler.lane for handler in self._handlers.values()} | {Lane.CLIENT}
        self.lanes = {
            lane: LanePool(lane, threads=threads, capacity=capacity, run=self._run, post=post)
            for lane, (threads, capacity) in lane_sizes.items()
            if lane in used
        }
        self._closed_notice: Handler[ServiceT] = Handler(
            # Never on the wire from a client: it only names the notice in logs.
            RequestCode.UNREGISTER_CLIENT,
            None,
            Lane.CLIENT,
            single=lambda _, request: channel_closed(request.channel),
        )

    def received(self, channel: Channel, commands: list[Command]) -> None:
        """Sort the commands of one socket read into their lanes; on the loop, never blocks."""
        received_ns = time.monotonic_ns()
        handlers = self._handlers
        by_lane: dict[Lane, list[Request[Any]]] = {}
        for command in commands:
            if command.flag & RESPONSE_FLAG:
                channel.answered(command)
                continue
            handler = handlers.get(command.code)
            if handler is None:
                _answer(channel, reply_unsupported(command), command)
                continue
            request: Request[Any] = Request(command, channel, handler, received_ns)
            requests = by_lane.get(handler.lane)
            if requests is None:
                by_lane[handler.lane] = [request]
            else:
                requests.append(request)
        for lane, requests in by_lane.items():
            self.offer(lane, requests)

    def offer(self, lane: Lane, requests: list[Request[Any]]) -> None:
        """Hand requests to a lane and answer for those that it refuses; on the loop."""
        for refused in self.lanes[lane].offer(requests):
            _answer(refused.channel, reply_overloaded(refused.command), refused.command)

    def handler_of(self, code: RequestCode) -> Handler[ServiceT]:
        """A code's declaration, for requests that the service makes itself."""
        return self._handlers[code]

    def closed(self, channel: Channel) -> None:
        """Let the client lane know that a connection is gone, behind what it still has to do."""
        notice = Command(-1, flag=ONEWAY_FLAG)
        self.lanes[Lane.CLIENT].insist(
            Request(notice, channel, self._closed_notice, time.monotonic_ns())
        )

    def close(self) -> None:
        """Finish all that is queued; blocks, so it is called from a thread."""
        for lane in self.lanes.values():
            lane.close()

    def _run(self, requests: list[Request[Any]], outbox: Outbox) -> None:
        index = 0
        while index < len(requests):
            batch = requests[index].handler.batch
            if batch is None:
                self._run_single(requests[index], outbox)
                index += 1
                continue
            end = index + 1
            while end < len(requests) and requests[end].handler.batch is batch:
                end += 1
            self._run_batch(batch, requests[index:end], outbox)
            index = end

    def _run_single(self, request: Request[Any], outbox: Outbox) -> None:
        handler = request.handler
        assert handler.single is not None
        try:
            if handler.header is not None:
                request.header = handler.header.decode(request.command.ext_fields)
            reply = handler.single(self.service, request)
        except Exception as error:  # noqa: BLE001 - the lane's edge: nothing may end the lane
            reply = reply_to_failure(request, error)
        if reply is not None:
            outbox.add_reply(request, reply)
            if self.latencies is not None:
                command, now_ns = request.command, time.monotonic_ns()
                ms = (now_ns - request.received_ns) // 1_000_000
                self.latencies.observe(
                    command.code, reply.code, ms, oneway=command.is_oneway, times=1
                )

    def _run_batch(
        self,
        batch: Callable[[ServiceT, list[Request[Any]], Outbox], None],
        requests: list[Request[Any]],
        outbox: Outbox,
    ) -> None:
        # Replies of the batch are held apart: if it fails half-way, each request gets one answer.
        replies = Outbox()
        try:
            batch(self.service, requests, replies)
        except Exception as error:  # noqa: BLE001 - the lane's edge: nothing may end the lane
            for request in requests:
                outbox.add_reply(request, reply_to_failure(request, error))
            return
        if self.latencies is not None:
            self.latencies.observe_batch(requests, replies, time.monotonic_ns())
        if outbox.chunks:
            for channel, chunks in replies.chunks.items():
                outbox.add(channel, *chunks)
        else:
            outbox.chunks = replies.chunks


def _answer(channel: Channel, reply: Command, request: Command) -> None:
    if not request.is_oneway:
        channel.write([reply.encode()])
