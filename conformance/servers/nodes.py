"""Servers under test: name servers and brokers that a case may stop, kill and start again.

A node keeps its ports and its folder over restarts, as a machine does. PyriteMQ and the real
RocketMQ differ only in how one process is started; an external server has addresses and nothing
else.
"""

from __future__ import annotations

import shutil
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from importlib import metadata
from typing import TYPE_CHECKING, Protocol

from pyritemq.conformance.jars import ROCKETMQ_VERSION
from pyritemq.conformance.processes import Child, free_broker_port, free_port
from pyritemq.conformance.servers import java
from pyritemq.conformance.servers.cluster import java_broker_settings, pyritemq_command
from pyritemq.conformance.wire import Wire, WireError, java_json
from pyritemq.protocol.codes import RequestCode

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from contextlib import AbstractContextManager
    from pathlib import Path

    from pyritemq.conformance.servers.java import ServerContainers, ServerProcess
    from pyritemq.conformance.setup import Setup

READY_SECONDS = 180.0
"""A real broker takes five; in a container on a machine that is full of work, a minute was seen."""
TAIL_LINES = 40
QUICK_START = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
"""Half the CPU seconds of a start (namesrv: 7.8 to 4.0), and no case asks for throughput."""

SMALL_HEAP = ("-Xms128m", "-Xmx512m", *QUICK_START)


class NotOurServerError(Exception):
    """A case wants to stop or start a server that somebody else runs."""


class Node:
    """One server. Calls come from the one case that has the servers to itself."""

    def __init__(
        self, name: str, address: str, launch: Callable[[], ServerProcess] | None, ready: str = ""
    ) -> None:
        self.name = name
        self.address = address
        self._launch = launch
        self._ready = ready
        self._process: ServerProcess | None = None

    def start(self) -> None:
        if self._launch is None:
            raise NotOurServerError(f"{self.name} is not ours to start")
        self.leave()
        self._process = self._launch()
        self._process.wait_for_line(self._ready, timeout=READY_SECONDS)

    def stop(self) -> None:
        """A clean stop, as SIGTERM asks for it."""
        self._running().stop()

    def kill(self) -> None:
        """SIGKILL: nothing is flushed, nobody is told."""
        self._running().kill()

    def restart(self, *, kill: bool = False) -> None:
        (self.kill if kill else self.stop)()
        self.start()

    def leave(self) -> None:
        if self._process is not None:
            self._process.close()

    def log_tail(self) -> str:
        if self._process is None:
            return ""
        return "\n".join(self._process.output().splitlines()[-TAIL_LINES:])

    def _running(self) -> ServerProcess:
        if self._process is None:
            raise NotOurServerError(f"{self.name} is not ours to stop")
        return self._process


@dataclass
class RunningServers:
    """A started topology."""

    kind: str
    setup: Setup
    namesrvs: list[Node]
    brokers: list[Node] = field(default_factory=list)

    @property
    def namesrv(self) -> str:
        return ";".join(node.address for node in self.namesrvs)

    @property
    def broker(self) -> Node:
        return self.brokers[0]

    def log_tail(self) -> str:
        parts = [f"== {node.name}\n{node.log_tail()}" for node in (*self.namesrvs, *self.brokers)]
        return "\n".join(parts)


class Server(Protocol):
    """A kind of server that topologies can be made of."""

    kind: str
    ours: bool
    """Whether this run starts it, and may therefore stop, kill and configure it."""

    def started(
        self, folder: Path, setup: Setup, host: str
    ) -> AbstractContextManager[RunningServers]: ...
    def lacks(self, setup: Setup) -> str: ...
    def versions(self) -> dict[str, str]:
        """What is under test, for the report."""


class PyriteServer:
    """PyriteMQ as it is installed."""

    kind = "pyritemq"
    ours = True

    def namesrv(self, folder: Path, host: str) -> Node:
        port = free_port()
        # Not the default, in the home folder: what one run leaves there another would find.
        kept = {"kvConfigPath": folder / "namesrv" / "kvConfig.json"}
        conf = java.write_properties(folder / "namesrv.conf", kept)
        command = [*pyritemq_command(), "namesrv", "--port", str(port), "--config", str(conf)]
        return Node(
            "namesrv",
            f"{host}:{port}",
            lambda: Child("namesrv", command, folder=folder),
            java.NAMESRV_READY,
        )

    def broker(self, folder: Path, name: str, namesrv: str, host: str, setup: Setup) -> Node:
        port = free_broker_port()
        conf = java.write_properties(folder / "broker.conf", setup.settings())
        command = [*pyritemq_command(), "broker", "--namesrv", namesrv, "--port", str(port)]
        command += ["--advertise", f"{host}:{port}", "--store", str(folder / "store")]
        command += ["--name", name, "--config", str(conf)]
        return Node(
            name,
            f"{host}:{port}",
            lambda: Child(name, command, folder=folder),
            java.BROKER_READY,
        )

    def lacks(self, setup: Setup) -> str:
        return ""

    def versions(self) -> dict[str, str]:
        return {"PyriteMQ": metadata.version("pyritemq")}

    @contextmanager
    def started(self, folder: Path, setup: Setup, host: str) -> Iterator[RunningServers]:
        with _topology(self, folder, setup, host) as running:
            yield running


class RocketServer:
    """The real RocketMQ 5.5.0 from its Maven jars, in containers or as child processes."""

    kind = "rocketmq"
    ours = True

    def __init__(self, containers: ServerContainers | None = None) -> None:
        self._containers = containers

    def namesrv(self, folder: Path, host: str) -> Node:
        port = free_port()
        program = java.namesrv_command(folder, port=port)
        launch = self._launch("namesrv", program, folder, (*java.NAMESRV_HEAP, *QUICK_START))
        return Node("namesrv", f"{host}:{port}", launch, java.NAMESRV_READY)

    def broker(self, folder: Path, name: str, namesrv: str, host: str, setup: Setup) -> Node:
        port = free_broker_port()
        settings: dict[str, object] = {
            **java_broker_settings(namesrv, host, port),
            **setup.settings(),
            "brokerName": name,
        }
        program = java.broker_command(folder, settings)
        launch = self._launch(name, program, folder, SMALL_HEAP)
        return Node(name, f"{host}:{port}", launch, java.BROKER_READY)

    def _launch(
        self, name: str, program: tuple[str, Path], folder: Path, heap: Sequence[str]
    ) -> Callable[[], ServerProcess]:
        containers = self._containers
        if containers is None:
            return lambda: java.start_child(name, program, folder, heap)
        return lambda: java.start_contained(containers, name, program, folder, heap)

    def lacks(self, setup: Setup) -> str:
        return ""

    def versions(self) -> dict[str, str]:
        return {"Apache RocketMQ": ROCKETMQ_VERSION}

    @contextmanager
    def started(self, folder: Path, setup: Setup, host: str) -> Iterator[RunningServers]:
        with _topology(self, folder, setup, host) as running:
            yield running


class ExternalServer:
    """Servers that somebody else runs, found through their name server."""

    kind = "external"
    ours = False

    def __init__(self, namesrv: str) -> None:
        self._namesrv = namesrv
        self._brokers = _brokers_of(namesrv)

    def versions(self) -> dict[str, str]:
        return {"external": self._namesrv}

    def lacks(self, setup: Setup) -> str:
        """Why a case with this setup cannot run here; empty when it can."""
        if setup.brokers > len(self._brokers):
            return f"needs {setup.brokers} brokers"
        if setup.namesrvs > len(self._namesrv.split(";")):
            return f"needs {setup.namesrvs} name servers"
        with Wire(self._brokers[0].address) as wire:
            text = bytes(wire.call(RequestCode.GET_BROKER_CONFIG).body).decode()
        lines = set(text.splitlines())
        missing = [f"{n}={v}" for n, v in setup.demanded() if f"{n}={v}" not in lines]
        return f"needs a broker with {', '.join(missing)}" if missing else ""

    @contextmanager
    def started(self, folder: Path, setup: Setup, host: str) -> Iterator[RunningServers]:
        namesrvs = [Node("namesrv", address, None) for address in self._namesrv.split(";")]
        yield RunningServers(self.kind, setup, namesrvs, self._brokers)


def _brokers_of(namesrv: str) -> list[Node]:
    try:
        with Wire(namesrv.split(";")[0]) as wire:
            info = java_json(wire.call(RequestCode.GET_BROKER_CLUSTER_INFO).body)
    except (WireError, ValueError) as error:
        raise NotOurServerError(f"no name server answers at {namesrv}: {error}") from error
    table = info.get("brokerAddrTable", {})
    nodes = [
        Node(name, data["brokerAddrs"]["0"], None)
        for name, data in sorted(table.items())
        if "0" in data["brokerAddrs"]
    ]
    if not nodes:
        raise NotOurServerError(f"the name server at {namesrv} knows no broker")
    return nodes


@contextmanager
def _topology(
    server: PyriteServer | RocketServer, folder: Path, setup: Setup, host: str
) -> Iterator[RunningServers]:
    with ExitStack() as stack:
        namesrvs = [
            server.namesrv(folder / f"namesrv-{number}", host) for number in range(setup.namesrvs)
        ]
        running = RunningServers(server.kind, setup, namesrvs)
        for node in namesrvs:
            stack.callback(node.leave)
            node.start()
        for letter in "abcdefgh"[: setup.brokers]:
            name = f"broker-{letter}"
            node = server.broker(folder / name, name, running.namesrv, host, setup)
            stack.callback(node.leave)
            node.start()
            running.brokers.append(node)
        yield running
    shutil.rmtree(folder, ignore_errors=True)  # the store of a real broker is a gigabyte of holes
