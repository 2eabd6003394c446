"""The one place where a request code meets its header, its lane and its handler.

A processor module declares each of its handlers with `@broker_handlers.handles(...)` (or
`namesrv_handlers`); the dispatcher, the metrics and the table in the docs are made from these
declarations, and nothing else lists codes.  A registry is filled by imports at start and only read
afterwards, by the trio loop and by lane threads.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar, overload

from pyritemq.protocol.codes import RequestCode, ResponseCode

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyritemq.protocol.command import Command
    from pyritemq.protocol.fields import Header
    from pyritemq.server.connection import Channel
    from pyritemq.server.lanes import Lane, Outbox

HeaderT = TypeVar("HeaderT", bound="Header | None")
ServiceT = TypeVar("ServiceT")


class RequestRefused(Exception):  # noqa: N818 - a refusal is an answer, not an error of ours
    """Raised by a handler to answer with this code and remark instead of a result."""

    def __init__(self, code: ResponseCode, remark: str, header: Header | None = None) -> None:
        super().__init__(code, remark)
        self.code = code
        self.remark = remark
        self.header = header


class Request(Generic[HeaderT]):
    """One request as its handler sees it; `header` is decoded on the lane, not on the loop.

    `suspended` is set when a held request comes back to its lane: it must be answered now.
    """

    __slots__ = ("channel", "command", "handler", "header", "received_ns", "suspended")

    header: HeaderT

    def __init__(
        self, command: Command, channel: Channel, handler: Handler[Any], received_ns: int
    ) -> None:
        self.command = command
        self.channel = channel
        self.handler = handler
        self.received_ns = received_ns
        self.suspended = False

    def reply(
        self,
        code: int = ResponseCode.SUCCESS,
        remark: str | None = None,
        header: Header | None = None,
        body: bytes = b"",
    ) -> Command:
        """An answer in the serialisation of the question."""
        ext_fields = None if header is None else header.encode()
        return self.command.make_reply(code, remark, ext_fields, body)


@dataclass(frozen=True, slots=True)
class Handler(Generic[ServiceT]):
    """A request code's declaration.

    A single handler answers one request and returns its reply, or None when the reply comes later.
    A batch handler gets all requests of its code in one drain and puts replies into the outbox.
    """

    code: RequestCode
    header: type[Header] | None
    lane: Lane
    single: Callable[[ServiceT, Request[Any]], Command | None] | None = None
    batch: Callable[[ServiceT, list[Request[Any]], Outbox], None] | None = None


class Registry(Generic[ServiceT]):
    """Handlers of one service (broker or name server) by request code."""

    def __init__(self, service: str) -> None:
        self.service = service
        self._handlers: dict[int, Handler[ServiceT]] = {}

    @overload
    def handles(
        self, code: RequestCode, header: type[HeaderT], *, lane: Lane
    ) -> Callable[
        [Callable[[ServiceT, Request[HeaderT]], Command | None]],
        Callable[[ServiceT, Request[HeaderT]], Command | None],
    ]: ...

    @overload
    def handles(
        self, code: RequestCode, header: None, *, lane: Lane
    ) -> Callable[
        [Callable[[ServiceT, Request[None]], Command | None]],
        Callable[[ServiceT, Request[None]], Command | None],
    ]: ...

    def handles(self, code: RequestCode, header: Any, *, lane: Lane) -> Any:
        """Declare the handler of `code`: its header type (None: no header) and its lane."""

        def declare(
            function: Callable[[ServiceT, Request[Any]], Command | None],
        ) -> Callable[[ServiceT, Request[Any]], Command | None]:
            self._add(Handler(code, header, lane, single=function))
            return function

        return declare

    def handles_batch(
        self, *codes: RequestCode, lane: Lane
    ) -> Callable[
        [Callable[[ServiceT, list[Request[Any]], Outbox], None]],
        Callable[[ServiceT, list[Request[Any]], Outbox], None],
    ]:
        """Declare a handler that takes all requests of `codes` in a drain and decodes them."""

        def declare(
            function: Callable[[ServiceT, list[Request[Any]], Outbox], None],
        ) -> Callable[[ServiceT, list[Request[Any]], Outbox], None]:
            for code in codes:
                self._add(Handler(code, None, lane, batch=function))
            return function

        return declare

    def table(self) -> dict[int, Handler[ServiceT]]:
        """Handlers by code, for the dispatcher."""
        return dict(self._handlers)

    def __iter__(self) -> Iterator[Handler[ServiceT]]:
        return iter(self._handlers[code] for code in sorted(self._handlers))

    def _add(self, handler: Handler[ServiceT]) -> None:
        known = self._handlers.get(handler.code)
        if known is not None:
            raise ValueError(f"{self.service}: {handler.code.name} is declared twice")
        self._handlers[int(handler.code)] = handler


if TYPE_CHECKING:
    from pyritemq.server.broker.broker import Broker
    from pyritemq.server.namesrv.namesrv import NameServer

broker_handlers: Registry[Broker] = Registry("broker")
namesrv_handlers: Registry[NameServer] = Registry("name server")
