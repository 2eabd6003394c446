"""The real RocketMQ 5.5.0 name server and broker, run from the Maven jars as child processes.

Defaults are the stock ones, apart from a heap that fits a small machine and from the paths: logs,
store and user.home all lie under the folder that the caller gives.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from pyritemq.conformance.jars import class_path
from pyritemq.conformance.processes import Child

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

NAMESRV_HEAP = ("-Xms64m", "-Xmx256m")
BROKER_HEAP = ("-Xms256m", "-Xmx1g")
"""The stock scripts ask for 4 and 8 GiB, more than a small machine has: docs/performance.md."""

READY_SECONDS = 60.0
"""A loaded two-core machine has needed 15 s for both; four times that means trouble."""

NAMESRV_READY = r"The Name Server boot success.*"
BROKER_READY = r"The broker\[.+?, .+?\] boot success.*"

OPEN_MODULES = (
    "--add-opens=java.base/java.nio=ALL-UNNAMED",
    "--add-opens=java.base/sun.nio.ch=ALL-UNNAMED",
    "--add-opens=java.base/java.lang=ALL-UNNAMED",
    "--add-exports=java.base/jdk.internal.ref=ALL-UNNAMED",
)
"""What the broker's off-heap and file code reaches into on JDK 17, as the stock scripts allow."""


class ServerProcess(Protocol):
    """What is needed of a server process, in a container or not."""

    def wait_for_line(self, pattern: str, *, timeout: float) -> object: ...
    def stop(self) -> int: ...
    def kill(self) -> None: ...
    def close(self) -> None:
        """End it if it runs, and leave nothing behind."""

    def output(self) -> str: ...


class ServerContainers(Protocol):
    """Where the real servers run when not as child processes."""

    def start_server(self, name: str, command: Sequence[str], folder: Path) -> ServerProcess: ...


def write_properties(path: Path, properties: Mapping[str, object]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(
        "".join(f"{key}={value}\n" for key, value in properties.items()), encoding="utf-8"
    )
    return path


def start_namesrv(
    folder: Path,
    *,
    port: int,
    bind: str = "0.0.0.0",  # noqa: S104 - containers reach it
    heap: Sequence[str] = NAMESRV_HEAP,
    flags: Sequence[str] = (),
) -> Child:
    """Start a Java name server; wait_for_line(NAMESRV_READY) says when it serves."""
    return start_child(
        "namesrv", namesrv_command(folder, port=port, bind=bind), folder, (*heap, *flags)
    )


def namesrv_command(folder: Path, *, port: int, bind: str = "0.0.0.0") -> tuple[str, Path]:  # noqa: S104
    """The main class and its configuration file, written under folder."""
    properties = {
        "listenPort": port,
        "bindAddress": bind,
        "kvConfigPath": folder / "namesrv" / "kvConfig.json",
        "configStorePath": folder / "namesrv" / "namesrv.properties",
    }
    conf = write_properties(folder / "namesrv.conf", properties)
    return "org.apache.rocketmq.namesrv.NamesrvStartup", conf


def start_broker(
    folder: Path,
    *,
    properties: Mapping[str, object],
    heap: Sequence[str] = BROKER_HEAP,
    flags: Sequence[str] = (),
) -> Child:
    """Start a Java broker with the given broker.conf properties; the store lies under folder."""
    return start_child("broker", broker_command(folder, properties), folder, (*heap, *flags))


def broker_command(folder: Path, properties: Mapping[str, object]) -> tuple[str, Path]:
    store = folder / "store"
    conf = write_properties(folder / "broker.conf", {"storePathRootDir": store, **properties})
    return "org.apache.rocketmq.broker.BrokerStartup", conf


def start_child(name: str, program: tuple[str, Path], folder: Path, heap: Sequence[str]) -> Child:
    home = _home(folder)
    command = ["java", *java_arguments(program, home, heap, class_path())]
    return Child(name, command, folder=folder, env={"ROCKETMQ_HOME": str(home)})


def start_contained(
    containers: ServerContainers,
    name: str,
    program: tuple[str, Path],
    folder: Path,
    heap: Sequence[str],
) -> ServerProcess:
    """The same in a container that has the jars in /jars."""
    arguments = java_arguments(program, _home(folder), heap, "/jars/*")
    return containers.start_server(name, arguments, folder)


def java_arguments(
    program: tuple[str, Path], home: Path, heap: Sequence[str], jars: str
) -> list[str]:
    main, conf = program
    return [*heap, *OPEN_MODULES, f"-Duser.home={home}", "-cp", jars, main, "-c", str(conf)]


def _home(folder: Path) -> Path:
    home = folder / "home"
    home.mkdir(parents=True, exist_ok=True)
    return home
