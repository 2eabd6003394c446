"""Official Java clients in containers, through testcontainers.

Containers join a network of the session, and reach the server under test at that network's gateway,
which is this machine; the server listens on every interface and advertises that address. Everything
made here carries a label, so that what a killed run left behind is removed by the next one, and
nothing else ever is.
"""

from __future__ import annotations

import contextlib
import os
import re
import time
from pathlib import Path
from typing import TYPE_CHECKING

# Ryuk is an image from a registry; our own label does its work. Must be set before the import.
os.environ.setdefault("TESTCONTAINERS_RYUK_DISABLED", "true")

import docker
from docker.errors import APIError, DockerException
from testcontainers.core.container import DockerContainer

from pyritemq.conformance.clients import ClientError, java_flags, main_class
from pyritemq.conformance.driver_images import driver_image
from pyritemq.conformance.drivers.java_build import java_classes
from pyritemq.conformance.images import client_image
from pyritemq.conformance.jars import ROCKETMQ_VERSION

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from types import TracebackType

    from pyritemq.conformance.drivers.build import Program

LABEL = "pyritemq.session"
POLL_SECONDS = 0.2
"""Between two looks at a container's log; each costs a request to the engine."""


class ContainerClient:
    """One official client in a container; the same few calls as processes.Child.

    The engine keeps whole lines: one without its end shows only after the client has ended.
    """

    def __init__(self, name: str, container: DockerContainer) -> None:
        self.name = name
        self._container = container
        container.start()

    def output(self) -> str:
        return b"\n".join(self._container.get_logs()).decode("utf-8", "replace")

    def wait_for_line(self, pattern: str, *, timeout: float) -> re.Match[str]:
        deadline = time.monotonic() + timeout
        while time.monotonic() < deadline:
            ended = not self._is_running()
            match = re.search(pattern, self.output())
            if match:
                return match
            if ended:
                raise ClientError(self._story(f"ended before /{pattern}/"))
            time.sleep(POLL_SECONDS)
        raise ClientError(self._story(f"did not say /{pattern}/ within {timeout:g} s"))

    def wait(self, *, timeout: float) -> int:
        deadline = time.monotonic() + timeout
        while self._is_running():
            if time.monotonic() > deadline:
                raise ClientError(self._story(f"did not end within {timeout:g} s"))
            time.sleep(POLL_SECONDS)
        return int(self._container.get_wrapped_container().attrs["State"]["ExitCode"])

    def kill(self) -> None:
        """SIGKILL; its output stays readable until the context is left."""
        with contextlib.suppress(APIError):  # it may have ended by itself
            self._container.get_wrapped_container().kill()
        self.wait(timeout=10)

    def close(self) -> None:
        """Remove the container, running or not."""
        with contextlib.suppress(APIError):
            self._container.stop()

    def stop(self) -> int:
        """End the client with SIGTERM; its output stays readable until the context is left."""
        self._container.get_wrapped_container().stop(timeout=10)
        return self.wait(timeout=10)

    def _is_running(self) -> bool:
        wrapped = self._container.get_wrapped_container()
        wrapped.reload()
        return bool(wrapped.attrs["State"]["Running"])

    def _story(self, what: str) -> str:
        tail = "\n".join(self.output().splitlines()[-15:])
        return f"{self.name} {what}; the end of its output:\n{tail}"

    def __enter__(self) -> ContainerClient:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._container.stop()


class ContainerClients:
    """Starts official clients in containers; one network for the session."""

    own_loopback = True

    def __init__(self) -> None:
        self._docker = docker.from_env()
        self._remove_leftovers()
        label = {LABEL: str(os.getpid())}
        self._network = self._docker.networks.create(f"pyritemq-{os.getpid()}", labels=label)
        self._network.reload()
        self.server_host = str(self._network.attrs["IPAM"]["Config"][0]["Gateway"])
        """The address at which containers reach this machine; the server must advertise it."""

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
        network: str | None = None,
    ) -> ContainerClient:
        """`network`: one that a test made, instead of the session's ("container:ID" as well)."""
        program = ["Loopback", main_class(name)] if loopback else [main_class(name)]
        paths = ":".join([*["/driver"] * loopback, *["/classes"] * bool(classes), "/jars/*"])
        command = [*java_flags("/tmp"), *flags, "-cp", paths, *program, *arguments]  # noqa: S108
        container = self.container(client_version, command, network=network)
        if loopback:
            container.with_volume_mapping(str(java_classes(client_version)), "/driver", "ro")
        if classes:
            container.with_volume_mapping(str(classes), "/classes", "ro")
        container.with_env("NAMESRV_ADDR", namesrv)
        return ContainerClient(f"{name}-{client_version}", container)

    def container(
        self, client_version: str, command: Sequence[str], *, network: str | None = None
    ) -> DockerContainer:
        """A container, not started, with one client line in /jars; Java is its entry."""
        container = DockerContainer(client_image(self._docker, client_version))
        container.with_command(list(command)).with_env("ROCKETMQ_HOME", "/tmp")  # noqa: S108
        return container.with_kwargs(
            labels={LABEL: str(os.getpid())}, network=network or self._network.name
        )

    def driver_container(self, program: Program) -> DockerContainer:
        """A container, not started, with a driver other than Java's in /driver."""
        container = DockerContainer(driver_image(self._docker, program))
        container.with_command(program.argv("/driver")).with_env("HOME", "/tmp")  # noqa: S108
        for name, value in program.env:
            container.with_env(name, value.replace("{}", "/driver"))
        container.with_volume_mapping(str(program.folder), "/driver", "ro")
        return container.with_kwargs(
            labels={LABEL: str(os.getpid())},
            network=self._network.name,
            working_dir="/tmp",  # noqa: S108
        )

    def start_server(self, name: str, command: Sequence[str], folder: Path) -> ContainerClient:
        """A server: on this machine's own network, with its folder mounted."""
        container = DockerContainer(client_image(self._docker, ROCKETMQ_VERSION))
        container.with_command(list(command)).with_env("ROCKETMQ_HOME", str(folder / "home"))
        container.with_volume_mapping(str(folder), str(folder), "rw")
        user = f"{os.getuid()}:{os.getgid()}"
        container.with_kwargs(labels={LABEL: str(os.getpid())}, network_mode="host", user=user)
        return ContainerClient(name, container)

    def close(self) -> None:
        try:
            self._network.remove()
        finally:
            self._docker.close()

    def _remove_leftovers(self) -> None:
        """Remove what runs that are no longer alive left; another live run keeps its own."""
        everything = {"filters": {"label": LABEL}}
        for container in self._docker.containers.list(all=True, **everything):
            if _is_orphan(container.labels):
                with contextlib.suppress(APIError):  # gone by now, or going
                    container.remove(force=True)
        for network in self._docker.networks.list(**everything):
            if _is_orphan(network.attrs.get("Labels") or {}):
                with contextlib.suppress(APIError):
                    network.remove()


def _is_orphan(labels: Mapping[str, str]) -> bool:
    return not Path(f"/proc/{labels[LABEL]}").exists()


def engine_answers() -> bool:
    try:
        client = docker.from_env(timeout=10)
    except DockerException:
        return False
    try:
        return bool(client.ping())
    except (APIError, OSError, DockerException):
        return False
    finally:
        client.close()
