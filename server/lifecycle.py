"""Starting and stopping: what runs in a process, in which order it comes up and goes down.

A stop (SIGTERM, SIGINT) is orderly: the broker leaves the name servers, stops accepting, lets its
lanes finish, writes its tables and closes its store; then the name server stops.
"""

from __future__ import annotations

import signal
import subprocess
import sys
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click
import trio

import pyritemq.server.broker.processors
import pyritemq.server.namesrv.processors  # noqa: F401 - both fill the registries of handlers
from pyritemq.server.broker.broker import Broker
from pyritemq.server.clock import SystemClock
from pyritemq.server.host import resolve
from pyritemq.server.lanes import Lane
from pyritemq.server.listener import AddressInUse, bind
from pyritemq.server.namesrv.namesrv import NameServer
from pyritemq.server.operations import Operations, open_port, serve_operations, wanted_port
from pyritemq.server.registry import broker_handlers, namesrv_handlers
from pyritemq.server.remoting_server import FRAME_MAX_BYTES, RemotingServer
from pyritemq.server.reset import ResetRefused, start_over

if TYPE_CHECKING:
    import socket
    from collections.abc import Awaitable, Callable

    from pyritemq.compat.broker_conf import BrokerConfig
    from pyritemq.compat.namesrv_conf import NamesrvConfig
    from pyritemq.server.lanes import LanePool

    Signalled = Callable[[], Awaitable[None]]

VIP_PORT_DISTANCE = 2
"""Clients with the VIP channel on connect to the broker's port minus two."""

BROKER_PORT_STEP = 10
"""Between brokers of one machine: room for the VIP channel below and replication above."""

FREE_PORT_TRIES = 20


@dataclass(frozen=True, slots=True)
class Options:
    """What the command line says beyond Java's properties."""

    advertise: str | None = None
    metrics_port: int | None = None
    allow_reset: bool = False
    brokers: int = 1
    config_path: str | None = None
    log_level: str = "warning"
    frame_max: int = FRAME_MAX_BYTES


def serve(namesrv_config: NamesrvConfig, broker_config: BrokerConfig, options: Options) -> None:
    """Name server and broker(s) until a signal."""
    if options.brokers > 1:
        trio.run(_until_signal, partial(_serve_many, namesrv_config, broker_config, options))
    else:
        trio.run(_until_signal, partial(_serve_one, namesrv_config, broker_config, options))


def serve_namesrv(config: NamesrvConfig, options: Options) -> None:
    """A name server until a signal."""
    trio.run(_until_signal, partial(_serve_namesrv, config, options))


def serve_broker(config: BrokerConfig, options: Options) -> None:
    """A broker until a signal."""
    trio.run(_until_signal, partial(_serve_broker, config, options))


class RunningNamesrv:
    """A name server that listens; `run` serves until `stop`."""

    def __init__(self, config: NamesrvConfig, *, frame_max: int = FRAME_MAX_BYTES) -> None:
        sock = bind(config.bind_address, config.listen_port, backlog=config.server_socket_backlog)
        config.listen_port = sock.getsockname()[1]
        self.config = config
        self.service = NameServer(config, clock=SystemClock())
        self.server = RemotingServer(
            self.service,
            namesrv_handlers,
            [sock],
            lane_sizes=namesrv_lane_sizes(config),
            idle_seconds=config.server_channel_max_idle_time_seconds,
            frame_max=frame_max,
        )

    @property
    def address(self) -> str:
        """Where a broker of the same machine finds it."""
        host = self.config.bind_address
        return f"{'127.0.0.1' if host in ('0.0.0.0', '::') else host}:{self.config.listen_port}"  # noqa: S104

    @property
    def is_ready(self) -> bool:
        """Whether it gives out routes."""
        return not self.server.is_stopping and self.service.is_ready()

    async def run(self, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        async with trio.open_nursery() as nursery:
            await nursery.start(self.server.run)
            nursery.start_soon(self.service.run)
            task_status.started()
            await self.server.stopped.wait()
            nursery.cancel_scope.cancel()

    def announce(self) -> None:
        click.echo(
            "The Name Server boot success. serializeType=JSON, "
            f"address {self.config.bind_address}:{self.config.listen_port}"
        )


class RunningBroker:
    """A broker that listens, with its store open; `run` serves until `stop`."""

    def __init__(
        self,
        config: BrokerConfig,
        *,
        advertise: str | None,
        frame_max: int = FRAME_MAX_BYTES,
    ) -> None:
        sockets = bind_with_vip(
            config.bind_address, config.listen_port, backlog=config.server_socket_backlog
        )
        try:
            config.listen_port = sockets[0].getsockname()[1]
            # Fixed now, as in Java: the port that clients are told may change later.
            config.ha_listen_port = config.ha_port
            host, port = _advertised(advertise, config)
            self.broker = Broker(config, advertised=(host, port), clock=SystemClock())
        except BaseException:
            for sock in sockets:
                sock.close()
            raise
        self.config = config
        self.server = RemotingServer(
            self.broker,
            broker_handlers,
            sockets,
            lane_sizes=broker_lane_sizes(config),
            idle_seconds=config.server_channel_max_idle_time_seconds,
            frame_max=frame_max,
        )
        self.broker.connect(self.server.dispatcher)
        self.closed = trio.Event()
        self._changing = trio.Lock()  # a reset or a stop, one at a time
        self._is_stopping = False
        self._jobs: tuple[trio.CancelScope, trio.Event] | None = None
        self._nursery: trio.Nursery

    @property
    def is_ready(self) -> bool:
        """Whether it serves and its jobs run: not while it starts, starts over or stops."""
        return self._jobs is not None and not self._is_stopping

    async def run(self, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        try:
            async with trio.open_nursery() as self._nursery:
                await self._nursery.start(self.server.run)
                await self.start_jobs()
                task_status.started()
                await self.server.stopped.wait()
                self._nursery.cancel_scope.cancel()
        finally:
            with trio.CancelScope(shield=True):
                await trio.to_thread.run_sync(self.broker.close)
            self.closed.set()

    async def start_jobs(self) -> None:
        """Start the broker's background jobs; it is registered when this returns."""
        jobs = trio.CancelScope(), trio.Event()
        await self._nursery.start(self._run_jobs, *jobs)
        self._jobs = jobs

    async def _run_jobs(
        self, scope: trio.CancelScope, ended: trio.Event, task_status: trio.TaskStatus[None]
    ) -> None:
        try:
            with scope:
                await self.broker.run(task_status=task_status)
        finally:
            ended.set()

    async def end_jobs(self) -> None:
        """Leave the name servers and end the background jobs; before `start_jobs` again."""
        assert self._jobs is not None, "jobs were not started"
        (scope, ended), self._jobs = self._jobs, None
        await self.broker.registration.stop()
        scope.cancel()
        await ended.wait()

    async def reset(self, *, look_ups: LanePool | None = None) -> None:
        """Drop all topics, groups, offsets and messages and go on as an empty broker.

        Raises ResetRefused, StorageError or OSError: see `reset.start_over`.
        """
        async with self._changing:
            if self._jobs is None or self._is_stopping:
                raise ResetRefused("the broker is not running")
            await start_over(self, look_ups=look_ups)

    async def stop(self) -> None:
        """Leave the name servers first, so that clients look elsewhere; then finish the work."""
        self._is_stopping = True
        async with self._changing:
            await self.broker.registration.stop()
            self.server.stop()

    def announce(self) -> None:
        line = (
            f"The broker[{self.config.broker_name}, {self.broker.advertised_address}] boot success."
        )
        line += " serializeType=JSON"
        if self.config.namesrv_addr:
            line += f" and name server is {self.config.namesrv_addr}"
        click.echo(line)


def namesrv_lane_sizes(config: NamesrvConfig) -> dict[Lane, tuple[int, int]]:
    """Threads and capacity of each lane; a name server never blocks, so one thread each will do."""
    return {
        Lane.CLIENT: (1, config.client_request_thread_pool_queue_capacity),
        Lane.ADMIN: (1, config.default_thread_pool_queue_capacity),
    }


def broker_lane_sizes(config: BrokerConfig) -> dict[Lane, tuple[int, int]]:
    """Threads and capacity of each lane; the capacities are Java's settings.

    The send lane is the only writer of the CommitLog and so always has one thread.  The others have
    few, since Python threads add no speed.  The admin and reply
    lanes have more, since their requests may ask a client and wait for up to ten seconds; threads
    are started only when there is work for them.
    """
    return {
        Lane.SEND: (1, config.send_thread_pool_queue_capacity),
        # One hot thread, so that pulls that wait are drained together.  Not settled: 4 threads
        # gave 65,000 messages/s and 1 gave 82,000 (2026-11-18), but that was one run each, the
        # first beside other work.  A cold read holds up other pulls meanwhile.
        Lane.PULL: (1, config.pull_thread_pool_queue_capacity),
        Lane.ACK: (1, config.ack_thread_pool_queue_capacity),
        Lane.QUERY: (2, config.query_thread_pool_queue_capacity),
        Lane.CLIENT: (1, config.client_manager_thread_pool_queue_capacity),
        Lane.CONSUMER: (1, config.consumer_manager_thread_pool_queue_capacity),
        Lane.TRANSACTION: (1, config.end_transaction_pool_queue_capacity),
        Lane.ADMIN: (8, config.admin_broker_thread_pool_queue_capacity),
        Lane.REPLY: (
            config.process_reply_message_thread_pool_nums,
            config.reply_thread_pool_queue_capacity,
        ),
        Lane.REPLICATION: (1, config.admin_broker_thread_pool_queue_capacity),
    }


def bind_with_vip(host: str, port: int, *, backlog: int) -> list[socket.socket]:
    """The broker's two listening sockets: its port and the VIP channel's, two below."""
    if port:
        main = bind(host, port, backlog=backlog)
        try:
            return [main, bind(host, port - VIP_PORT_DISTANCE, backlog=backlog)]
        except AddressInUse:
            main.close()
            raise
    for _ in range(FREE_PORT_TRIES):
        main = bind(host, 0, backlog=backlog)
        try:
            vip_port = main.getsockname()[1] - VIP_PORT_DISTANCE
            return [main, bind(host, vip_port, backlog=backlog)]
        except AddressInUse:
            main.close()
    raise AddressInUse(f"cannot find a free pair of ports on {host}")


def _advertised(advertise: str | None, config: BrokerConfig) -> tuple[str, int]:
    """The address for routes and message ids: `--advertise`, else brokerIP1 and the port."""
    if advertise is None:
        return resolve(config.broker_ip1), config.listen_port
    host, colon, port = advertise.rpartition(":")
    if not colon:
        return resolve(advertise), config.listen_port
    if not port.isdecimal() or not 0 < int(port) < 65536:
        raise ValueError(f"--advertise {advertise}: {port!r} is not a port number")
    return resolve(host.strip("[]")), int(port)


async def _serve_one(
    namesrv_config: NamesrvConfig,
    broker_config: BrokerConfig,
    options: Options,
    signalled: Signalled,
) -> None:
    port = open_port(broker_config, options.metrics_port)
    namesrv = RunningNamesrv(namesrv_config, frame_max=options.frame_max)
    broker_config.namesrv_addr = namesrv.address
    broker = RunningBroker(broker_config, advertise=options.advertise, frame_max=options.frame_max)
    operations = Operations(namesrv=namesrv, broker=broker, allow_reset=options.allow_reset)
    async with trio.open_nursery() as nursery:
        serve_operations(nursery, port, operations)
        await nursery.start(namesrv.run)
        namesrv.announce()
        await nursery.start(broker.run)
        broker.announce()
        await signalled()
        await broker.stop()
        await broker.closed.wait()
        namesrv.server.stop()
        await namesrv.server.stopped.wait()
        nursery.cancel_scope.cancel()


async def _serve_namesrv(config: NamesrvConfig, options: Options, signalled: Signalled) -> None:
    port = open_port(config, options.metrics_port)
    namesrv = RunningNamesrv(config, frame_max=options.frame_max)
    async with trio.open_nursery() as nursery:
        serve_operations(nursery, port, Operations(namesrv=namesrv))
        await nursery.start(namesrv.run)
        namesrv.announce()
        await signalled()
        namesrv.server.stop()
        await namesrv.server.stopped.wait()
        nursery.cancel_scope.cancel()


async def _serve_broker(config: BrokerConfig, options: Options, signalled: Signalled) -> None:
    port = open_port(config, options.metrics_port)
    broker = RunningBroker(config, advertise=options.advertise, frame_max=options.frame_max)
    async with trio.open_nursery() as nursery:
        operations = Operations(broker=broker, allow_reset=options.allow_reset)
        serve_operations(nursery, port, operations)
        await nursery.start(broker.run)
        broker.announce()
        await signalled()
        await broker.stop()
        await broker.closed.wait()
        nursery.cancel_scope.cancel()


async def _serve_many(
    namesrv_config: NamesrvConfig,
    broker_config: BrokerConfig,
    options: Options,
    signalled: Signalled,
) -> None:
    """A name server here and each broker in a process of its own, operations ports likewise."""
    port = open_port(namesrv_config, options.metrics_port)
    namesrv = RunningNamesrv(namesrv_config, frame_max=options.frame_max)
    brokers = BrokerProcesses()
    async with trio.open_nursery() as nursery:
        serve_operations(nursery, port, Operations(namesrv=namesrv))
        await nursery.start(namesrv.run)
        namesrv.announce()
        async with trio.open_nursery() as children:
            for index in range(options.brokers):
                command = _broker_command(namesrv, broker_config, options, index)
                children.start_soon(brokers.run, command)
            children.start_soon(brokers.stop_when, signalled)
        namesrv.server.stop()
        await namesrv.server.stopped.wait()
        nursery.cancel_scope.cancel()
    if brokers.failure is not None:
        raise brokers.failure


async def _until_signal(serve: Callable[[Signalled], Awaitable[None]]) -> None:
    """Run `serve` with SIGTERM and SIGINT caught from the start, so that none is lost."""
    with trio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:

        async def signalled() -> None:
            async for _ in signals:
                return

        await serve(signalled)


class BrokerProcesses:
    """Broker processes that live and die together."""

    def __init__(self) -> None:
        self._stop = trio.Event()
        self.failure: ValueError | None = None

    async def stop_when(self, signalled: Signalled) -> None:
        """End all of them with SIGTERM on a signal, or when one of them has failed."""
        async with trio.open_nursery() as nursery:

            async def wait_for_signal() -> None:
                await signalled()
                self._stop.set()

            nursery.start_soon(wait_for_signal)
            await self._stop.wait()
            nursery.cancel_scope.cancel()

    async def run(self, command: list[str]) -> None:
        """One process, until it ends."""
        process = await trio.lowlevel.open_process(command, stdin=subprocess.DEVNULL)
        async with trio.open_nursery() as nursery:

            async def end() -> None:
                await self._stop.wait()
                process.terminate()

            nursery.start_soon(end)
            code = await process.wait()
            nursery.cancel_scope.cancel()
        if not self._stop.is_set():
            self.failure = ValueError(f"a broker process ended with exit code {code}")
            self._stop.set()


def _broker_command(
    namesrv: RunningNamesrv, config: BrokerConfig, options: Options, index: int
) -> list[str]:
    name = f"{config.broker_name}-{index}"
    port = config.listen_port + index * BROKER_PORT_STEP if config.listen_port else 0
    command = [sys.executable, "-m", "pyritemq.server", "broker", "-n", namesrv.address]
    command += ["--name", name, "--store", str(Path(config.store_path_root_dir) / name)]
    command += ["--listen", config.bind_address, "--port", str(port)]
    command += ["--log-level", options.log_level, "--frame-max", str(options.frame_max)]
    if options.config_path is not None:
        command += ["-c", options.config_path]
    metrics_port = wanted_port(config, options.metrics_port)
    if metrics_port is not None:
        # The name server has the port that was asked for, if one was, the brokers those after it.
        step = index if options.metrics_port is None else index + 1
        command += ["--metrics-port", str(metrics_port and metrics_port + step)]
    if options.allow_reset:
        command += ["--allow-reset"]
    if options.advertise is not None:
        # Each broker needs a port of its own, so only the host can be shared.
        command += ["--advertise", options.advertise.rpartition(":")[0] or options.advertise]
    return command
