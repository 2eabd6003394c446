"""The operations port: what a monitor, an orchestrator or a test asks over HTTP.

    GET  /metrics   numbers in Prometheus' text form
    GET  /healthz   200 while the server is alive: restart it if this does not answer
    GET  /readyz    200 while clients can be served, else 503 with the reasons
    POST /reset     drop all topics, groups, offsets and messages; only if it was allowed

Runs on the loop; numbers are read when they are asked for, in a thread, and cost nothing before.
"""

from __future__ import annotations

import logging
import time
from http import HTTPStatus
from typing import TYPE_CHECKING

import click
import orjson
import trio

from pyritemq.compat.broker_conf import BrokerConfig
from pyritemq.compat.namesrv_conf import NamesrvConfig
from pyritemq.server.http import JSON, HttpReply, HttpRequest, serve_http
from pyritemq.server.lanes import Lane
from pyritemq.server.latencies import RequestLatencies
from pyritemq.server.listener import bind
from pyritemq.server.metrics.lanes import lane_families
from pyritemq.server.metrics.process import process_families
from pyritemq.server.metrics.rocketmq import broker_families
from pyritemq.server.metrics.store import own_families
from pyritemq.server.metrics.text import CONTENT_TYPE, render
from pyritemq.server.reset import ResetRefused
from pyritemq.storage.errors import StorageError

if TYPE_CHECKING:
    import socket
    from collections.abc import Awaitable, Callable, Iterator, Mapping

    from pyritemq.server.lanes import LanePool
    from pyritemq.server.lifecycle import RunningBroker, RunningNamesrv
    from pyritemq.server.metrics.text import Family

    Endpoint = Callable[[], Awaitable[HttpReply]]

logger = logging.getLogger(__name__)

READERS = ("GET", "HEAD")
PROMETHEUS, NO_EXPORTER = "PROM", "DISABLE"


def wanted_port(config: BrokerConfig | NamesrvConfig, asked: int | None) -> int | None:
    """The port that was asked for, or what a broker's metricsExporterType says; None for none."""
    if asked is not None or isinstance(config, NamesrvConfig):
        return asked
    if config.metrics_exporter_type == PROMETHEUS:
        return config.metrics_prom_exporter_port
    if config.metrics_exporter_type != NO_EXPORTER:
        logger.warning("metricsExporterType ignored reason=only PROM is there")
    return None


def open_port(config: BrokerConfig | NamesrvConfig, asked: int | None) -> socket.socket | None:
    """The listening socket: bound before anything else happens, so that a port in use is one
    sentence.  Raises AddressInUse."""
    port = wanted_port(config, asked)
    if port is None:
        return None
    host = config.bind_address
    if asked is None and isinstance(config, BrokerConfig):
        host = config.metrics_prom_exporter_host or host
    return bind(host, port)


def serve_operations(
    nursery: trio.Nursery, port: socket.socket | None, operations: Operations
) -> None:
    """Serve in the background, if there is a port."""
    if port is not None:
        nursery.start_soon(serve_http, port, operations.answer)
        host, number = port.getsockname()[:2]
        click.echo(f"The operations port is {host}:{number}")


class Operations:
    """Answers for the servers of this process, of which either may be missing."""

    def __init__(
        self,
        *,
        namesrv: RunningNamesrv | None = None,
        broker: RunningBroker | None = None,
        allow_reset: bool = False,
    ) -> None:
        self._namesrv = namesrv
        self._broker = broker
        self._allow_reset = allow_reset
        self._reset_failure: str | None = None
        if broker is not None and broker.config.enable_remoting_metrics:
            broker.server.dispatcher.latencies = RequestLatencies()
        self._endpoints: Mapping[str, tuple[tuple[str, ...], Endpoint]] = {
            "/metrics": (READERS, self._metrics),
            "/": (READERS, self._metrics),  # RocketMQ's endpoint answers here, too
            "/healthz": (READERS, self._healthz),
            "/readyz": (READERS, self._readyz),
            "/reset": (("POST",), self._reset),
        }

    async def answer(self, request: HttpRequest) -> HttpReply:
        """The reply to any request."""
        found = self._endpoints.get(request.path)
        if found is None:
            known = ", ".join(self._endpoints)
            return HttpReply(HTTPStatus.NOT_FOUND, f"not found; there are {known}\n")
        methods, endpoint = found
        if request.method not in methods:
            allow = {"Allow": ", ".join(methods)}
            text = f"{request.path} takes {allow['Allow']}\n"
            return HttpReply(HTTPStatus.METHOD_NOT_ALLOWED, text, headers=allow)
        if "origin" in request.headers:
            # A page in somebody's browser may reach this port too, and must not empty it.
            return HttpReply(HTTPStatus.FORBIDDEN, "not for web pages\n")
        return await endpoint()

    async def _metrics(self) -> HttpReply:
        text = await trio.to_thread.run_sync(self._render)
        return HttpReply(HTTPStatus.OK, text, CONTENT_TYPE)

    def _render(self) -> str:
        return render(self._families())

    def _families(self) -> Iterator[Family]:
        if self._broker is not None:
            broker = self._broker.broker
            yield from broker_families(broker, self._broker.server.dispatcher.latencies)
            yield from own_families(broker)
        yield from lane_families(self._lanes())
        yield from process_families()

    def _lanes(self) -> dict[str, dict[Lane, LanePool]]:
        services = {"namesrv": self._namesrv, "broker": self._broker}
        return {name: one.server.lanes for name, one in services.items() if one is not None}

    async def _healthz(self) -> HttpReply:
        return HttpReply(HTTPStatus.OK, "ok\n")

    async def _readyz(self) -> HttpReply:
        reasons = list(self._reasons())
        if reasons:
            text = "".join(f"{reason}\n" for reason in reasons)
            return HttpReply(HTTPStatus.SERVICE_UNAVAILABLE, text)
        return HttpReply(HTTPStatus.OK, "ready\n")

    def _reasons(self) -> Iterator[str]:
        """Why clients cannot be served."""
        if self._namesrv is not None and not self._namesrv.is_ready:
            yield "the name server does not give out routes yet"
        if self._broker is None:
            return
        if self._reset_failure is not None:
            yield f"the last reset failed: {self._reset_failure}"
        if not self._broker.is_ready:
            yield "the broker is starting or stopping"
            return
        if not self._broker.broker.store.is_writable:
            yield "the store takes no messages: its disk is full or has failed"
        registration = self._broker.broker.registration
        if not registration.is_registered:
            yield "no name server knows the broker"

    async def _reset(self) -> HttpReply:
        if not self._allow_reset:
            return _refusal(HTTPStatus.FORBIDDEN, "start the server with --allow-reset for this")
        if self._broker is None:
            return _refusal(HTTPStatus.CONFLICT, "there is no broker in this process")
        look_ups = None if self._namesrv is None else self._namesrv.server.lanes[Lane.CLIENT]
        started = time.monotonic()
        try:
            await self._broker.reset(look_ups=look_ups)
        except ResetRefused as refusal:
            return _refusal(HTTPStatus.SERVICE_UNAVAILABLE, str(refusal))
        except (StorageError, OSError) as error:
            self._reset_failure = str(error)
            return _refusal(HTTPStatus.INTERNAL_SERVER_ERROR, str(error))
        elapsed_ms = round((time.monotonic() - started) * 1000, 1)
        return _json(HTTPStatus.OK, {"reset": True, "elapsedMs": elapsed_ms})


def _json(status: HTTPStatus, members: dict[str, object]) -> HttpReply:
    return HttpReply(status, orjson.dumps(members).decode() + "\n", JSON)


def _refusal(status: HTTPStatus, reason: str) -> HttpReply:
    return _json(status, {"reset": False, "reason": reason})
