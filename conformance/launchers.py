"""Where drivers and official programs run: as processes of this machine, or in containers."""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING, Protocol

from pyritemq.conformance.clients import Clients, ProcessClients, java_flags
from pyritemq.conformance.drivers.build import program
from pyritemq.conformance.drivers.java_build import FLAGS, MAIN, java_classes
from pyritemq.conformance.drivers.link import Driver
from pyritemq.conformance.drivers.local import LocalChannel
from pyritemq.conformance.drivers.registry import client_named
from pyritemq.conformance.jars import class_path

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from pyritemq.conformance.servers.java import ServerContainers


class NoEngineError(Exception):
    """There is no Docker to run containers in; the message says what to do."""


class Launcher(Protocol):
    """What a run needs of the place where clients run."""

    name: str
    host: str
    """The address at which clients reach this machine; servers must advertise it."""

    def driver(self, client: str, *, flags: Sequence[str] = ()) -> Driver: ...
    def shared_driver(self, client: str) -> Driver: ...
    def programs(self) -> Clients: ...
    def servers(self) -> ServerContainers | None:
        """What real servers are run in; None for plain processes."""

    def close(self) -> None: ...


class SharedDrivers:
    """One driver for each client, started when it is first wanted, and anew when it died: a client
    that ends its own process fails the cases of that moment, not all that follow."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._drivers: dict[str, Driver] = {}

    def shared_driver(self, client: str) -> Driver:
        with self._lock:
            known = self._drivers.get(client)
            if known is None or known.ended:
                self._drivers[client] = known = self.driver(client)
            return known

    def driver(self, client: str, *, flags: Sequence[str] = ()) -> Driver:
        raise NotImplementedError

    def close_drivers(self) -> None:
        for driver in self._drivers.values():
            driver.close()


class LocalLauncher(SharedDrivers):
    """Plain processes: quick, and no Docker."""

    name = "local"
    host = "127.0.0.1"

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self._folder = folder
        self._programs = ProcessClients(folder / "programs")
        self._count = 0

    def driver(self, client: str, *, flags: Sequence[str] = ()) -> Driver:
        self._count += 1
        folder = self._folder / f"{client}-{self._count}"
        env = {**os.environ, "ROCKETMQ_HOME": str(folder), "HOME": str(folder)}
        env.pop("NAMESRV_ADDR", None)
        command = self._command(client, folder, env, flags)
        return Driver(client, LocalChannel(client, command, folder=folder, env=env))

    def _command(
        self, client: str, folder: Path, env: dict[str, str], flags: Sequence[str]
    ) -> list[str]:
        version = java_version(client)
        if version is None:
            built = program(client)
            env |= {name: value.replace("{}", str(built.folder)) for name, value in built.env}
            return built.argv(str(built.folder))
        paths = f"{java_classes(version)}{os.pathsep}{class_path(version)}"
        return ["java", *java_flags(str(folder)), *FLAGS, *flags, "-cp", paths, MAIN]

    def programs(self) -> Clients:
        return self._programs

    def servers(self) -> ServerContainers | None:
        return None

    def close(self) -> None:
        self.close_drivers()
        self._programs.close()


class ContainerLauncher(SharedDrivers):
    """Every client in a container; the default, and what CI does."""

    name = "containers"

    def __init__(self) -> None:
        from pyritemq.conformance.containers import ContainerClients

        super().__init__()
        self._containers = ContainerClients()
        self.host = self._containers.server_host

    def driver(self, client: str, *, flags: Sequence[str] = ()) -> Driver:
        from pyritemq.conformance.drivers.contained import ContainerChannel

        version = java_version(client)
        if version is None:
            return Driver(
                client, ContainerChannel(self._containers.driver_container(program(client)))
            )
        paths = "/driver:/jars/*"
        command = [*java_flags("/tmp"), *FLAGS, *flags, "-cp", paths, MAIN]  # noqa: S108
        container = self._containers.container(version, command)
        container.with_volume_mapping(str(java_classes(version)), "/driver", "ro")
        return Driver(client, ContainerChannel(container))

    def programs(self) -> Clients:
        return self._containers

    def servers(self) -> ServerContainers | None:
        return self._containers

    def close(self) -> None:
        try:
            self.close_drivers()
        finally:
            self._containers.close()


def container_launcher() -> ContainerLauncher:
    """Raises NoEngineError where there is no Docker, or no Python library for it."""
    try:
        from pyritemq.conformance.containers import engine_answers
    except ImportError as error:
        raise NoEngineError(
            f"{error}: install pyritemq[conformance], or use --launcher local"
        ) from error
    if not engine_answers():
        raise NoEngineError(
            "no Docker engine answers: start one (scripts/docker-up does), or use --launcher local"
        )
    return ContainerLauncher()


def java_version(client: str) -> str | None:
    """The version of a Java client, None for a client in another language."""
    named = client_named(client)
    return named.name.removeprefix("java-") if named.language == "Java" else None
