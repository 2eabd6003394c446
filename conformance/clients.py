"""The official Java example and benchmark classes, run unmodified.

Most examples leave their name server address to the environment: NAMESRV_ADDR is all that they are
told. They run as plain processes (here: quick, for development, the capture and bench/) or in
containers (containers.py: what the tests do); both kinds answer the same few calls.
"""

from __future__ import annotations

import itertools
import os
import time
from typing import TYPE_CHECKING, Protocol

from pyritemq.conformance.jars import ROCKETMQ_VERSION, class_path
from pyritemq.conformance.processes import Child, ChildError

if TYPE_CHECKING:
    import re
    from collections.abc import Callable, Sequence
    from pathlib import Path
    from types import TracebackType

EXAMPLES = "org.apache.rocketmq.example"
MQADMIN = "org.apache.rocketmq.tools.command.MQAdminStartup"
CLIENT_HEAP = ("-Xms64m", "-Xmx512m")
POLL_SECONDS = 0.2

ClientError = ChildError
"""A client ended too early, or did not do in time what was waited for."""


class RunningClient(Protocol):
    """What a test may do with a client, wherever it runs."""

    name: str

    def output(self) -> str: ...
    def wait_for_line(self, pattern: str, *, timeout: float) -> re.Match[str]: ...
    def wait(self, *, timeout: float) -> int: ...
    def stop(self) -> int: ...
    def __enter__(self) -> RunningClient: ...
    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None: ...


class Clients(Protocol):
    """Starts official clients; server_host is the address at which they reach this machine."""

    server_host: str
    own_loopback: bool
    """Whether each client has a loopback address of its own."""

    def start(
        self,
        name: str,
        *,
        namesrv: str,
        client_version: str = ROCKETMQ_VERSION,
        arguments: Sequence[str] = (),
        flags: Sequence[str] = (),
        loopback: bool = False,
        classes: Path | None = None,
    ) -> RunningClient:
        """`loopback`: pass on what the client asks of 127.0.0.1:9876; only with one of its own.
        `classes`: a folder of compiled ones that goes before the jars."""

    def close(self) -> None: ...


class ProcessClients:
    """Starts official clients as child processes of this one."""

    own_loopback = False

    def __init__(self, folder: Path) -> None:
        self.server_host = "127.0.0.1"
        self._folder = folder
        self._numbers = itertools.count()

    def start(
        self,
        name: str,
        *,
        namesrv: str,
        client_version: str = ROCKETMQ_VERSION,
        arguments: Sequence[str] = (),
        flags: Sequence[str] = (),
        loopback: bool = False,
        classes: Path | None = None,
    ) -> Child:
        assert not loopback, "processes share one loopback address"
        folder = self._folder / f"client-{next(self._numbers)}"
        own = f"{classes}{os.pathsep}" if classes else ""
        paths = ["-cp", own + class_path(client_version), main_class(name)]
        command = ["java", *java_flags(str(folder)), *flags, *paths, *arguments]
        env = {"NAMESRV_ADDR": namesrv, "ROCKETMQ_HOME": str(folder)}
        return Child(f"{name}-{client_version}", command, folder=folder, env=env)

    def close(self) -> None:
        """Nothing is shared between the clients, so nothing is left to close."""


def main_class(name: str) -> str:
    """An example as "quickstart.Producer"; a name that starts with org. is taken as it is."""
    return name if name.startswith("org.") else f"{EXAMPLES}.{name}"


def java_flags(home: str, heap: Sequence[str] = CLIENT_HEAP) -> list[str]:
    """Flags for one client JVM: logs go under home; it starts quickly rather than peaks high."""
    return [
        *heap,
        "-XX:+UseSerialGC",
        "-XX:TieredStopAtLevel=1",
        f"-Duser.home={home}",
        f"-Drocketmq.client.logRoot={home}/logs",
        f"-Drocketmq.log.root={home}/logs",
    ]


def wait_until(client: RunningClient, done: Callable[[str], bool], *, timeout: float) -> str:
    """Wait until the client's output satisfies done, and return that output."""
    deadline = time.monotonic() + timeout
    while time.monotonic() < deadline:
        output = client.output()
        if done(output):
            return output
        time.sleep(POLL_SECONDS)
    return client.output()
