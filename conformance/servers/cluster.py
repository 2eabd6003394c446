"""A name server and a broker under test, whichever they are: started and stopped together."""

from __future__ import annotations

import os
import sys
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from pyritemq.conformance.processes import Child, free_broker_port, free_port
from pyritemq.conformance.servers import java

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from contextlib import AbstractContextManager

NOTHING: Mapping[str, object] = MappingProxyType({})

PYRITE_READY_SECONDS = 30.0
"""Ready takes well under a second; a loaded machine gets thirty before we call it broken."""


@dataclass(frozen=True)
class Cluster:
    """Where the servers are, and the processes that they are."""

    namesrv: str
    broker: str
    children: tuple[Child, ...]
    ready_seconds: float
    settings: str
    """In words, what was set other than the defaults; addresses and paths left out."""

    def cpu_seconds(self) -> float:
        return sum(child.cpu_seconds() for child in self.children)

    def memory_kib(self, what: str) -> int:
        return sum(child.memory_kib(what) for child in self.children)


@contextmanager
def pyrite_cluster(
    folder: Path, *, host: str = "127.0.0.1", properties: Mapping[str, object] = NOTHING
) -> Iterator[Cluster]:
    """`pyritemq serve`: name server and broker in one process, advertised at host.

    Properties are the broker's, by Java's names.
    """
    namesrv, broker = free_port(), free_broker_port()
    command = [
        *pyritemq_command(),
        "serve",
        "--namesrv-port",
        str(namesrv),
        "--broker-port",
        str(broker),
    ]
    command += ["--advertise", f"{host}:{broker}", "--store", str(folder / "store")]
    if properties:
        folder.mkdir(parents=True, exist_ok=True)
        config = folder / "pyritemq-broker.conf"
        config.write_text("".join(f"{name}={value}\n" for name, value in properties.items()))
        command += ["--config", str(config)]
    words = " ".join(f"{name}={value}" for name, value in properties.items()) or "all defaults"
    with Child("pyritemq", command, folder=folder) as server:
        server.wait_for_line(java.NAMESRV_READY, timeout=PYRITE_READY_SECONDS)
        server.wait_for_line(java.BROKER_READY, timeout=PYRITE_READY_SECONDS)
        ready = server.age()
        yield Cluster(f"{host}:{namesrv}", f"{host}:{broker}", (server,), ready, words)


@contextmanager
def java_cluster(
    folder: Path, *, host: str = "127.0.0.1", properties: Mapping[str, object] = NOTHING
) -> Iterator[Cluster]:
    """The real RocketMQ 5.5.0: two processes, stock settings but for the heap."""
    namesrv, broker = free_port(), free_broker_port()
    with ExitStack() as stack:
        first = stack.enter_context(java.start_namesrv(folder / "namesrv", port=namesrv))
        first.wait_for_line(java.NAMESRV_READY, timeout=java.READY_SECONDS)
        settings = {**java_broker_settings(f"{host}:{namesrv}", host, broker), **properties}
        second = stack.enter_context(java.start_broker(folder / "broker", properties=settings))
        second.wait_for_line(java.BROKER_READY, timeout=java.READY_SECONDS)
        ready, both = first.age(), (first, second)
        yield Cluster(f"{host}:{namesrv}", f"{host}:{broker}", both, ready, _java_words())


@contextmanager
def java_namesrv(folder: Path, *, host: str) -> Iterator[str]:
    """A Java name server alone; gives its address."""
    port = free_port()
    with java.start_namesrv(folder, port=port) as server:
        server.wait_for_line(java.NAMESRV_READY, timeout=java.READY_SECONDS)
        yield f"{host}:{port}"


@contextmanager
def pyrite_namesrv(folder: Path, *, host: str) -> Iterator[str]:
    """`pyritemq namesrv` alone; gives its address."""
    port = free_port()
    command = [*pyritemq_command(), "namesrv", "--port", str(port)]
    with Child("pyritemq-namesrv", command, folder=folder) as server:
        server.wait_for_line(java.NAMESRV_READY, timeout=PYRITE_READY_SECONDS)
        yield f"{host}:{port}"


@contextmanager
def pyrite_broker(folder: Path, *, namesrv: str, host: str) -> Iterator[str]:
    """`pyritemq broker` alone, registered with the given name server; gives its address."""
    port = free_broker_port()
    command = [*pyritemq_command(), "broker", "--namesrv", namesrv, "--port", str(port)]
    command += ["--advertise", f"{host}:{port}", "--store", str(folder / "store")]
    with Child("pyritemq-broker", command, folder=folder) as server:
        server.wait_for_line(java.BROKER_READY, timeout=PYRITE_READY_SECONDS)
        yield f"{host}:{port}"


def java_broker_settings(namesrv: str, host: str, port: int) -> dict[str, object]:
    """What a broker must be told to be found; all else stays as RocketMQ ships it."""
    return {
        "brokerName": "broker-a",
        "brokerIP1": host,
        "listenPort": port,
        "namesrvAddr": namesrv,
    }


def _java_words() -> str:
    namesrv, broker = " ".join(java.NAMESRV_HEAP), " ".join(java.BROKER_HEAP)
    return f"broker.conf all defaults; JVM of the name server {namesrv}, of the broker {broker}"


CLUSTERS: dict[str, Callable[..., AbstractContextManager[Cluster]]] = {
    "pyritemq": pyrite_cluster,
    "rocketmq": java_cluster,
}


def pyritemq_command() -> list[str]:
    """The installed command beside this Python, or the one named in the environment."""
    named = os.environ.get("PYRITEMQ_COMMAND")
    return named.split() if named else [str(Path(sys.executable).parent / "pyritemq")]
