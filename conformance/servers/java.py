"""The real RocketMQ 5.5.0 name server and broker, run from the Maven jars as child processes.

Defaults are the stock ones, apart from a heap that fits a small machine and from the paths: logs,
store and user.home all lie under the folder that the caller gives.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

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
    conf = write_properties(
        folder / "namesrv.conf",
        {
            "listenPort": port,
            "bindAddress": bind,
            "kvConfigPath": folder / "namesrv" / "kvConfig.json",
            "configStorePath": folder / "namesrv" / "namesrv.properties",
        },
    )
    return _java(
        "namesrv", "org.apache.rocketmq.namesrv.NamesrvStartup", conf, folder, (*heap, *flags)
    )


def start_broker(
    folder: Path,
    *,
    properties: Mapping[str, object],
    heap: Sequence[str] = BROKER_HEAP,
    flags: Sequence[str] = (),
) -> Child:
    """Start a Java broker with the given broker.conf properties; the store lies under folder."""
    store = folder / "store"
    conf = write_properties(folder / "broker.conf", {"storePathRootDir": store, **properties})
    return _java(
        "broker", "org.apache.rocketmq.broker.BrokerStartup", conf, folder, (*heap, *flags)
    )


def _java(name: str, main: str, conf: Path, folder: Path, heap: Sequence[str]) -> Child:
    home = folder / "home"
    home.mkdir(parents=True, exist_ok=True)
    command = ["java", *heap, *OPEN_MODULES, f"-Duser.home={home}", "-cp", class_path(), main]
    return Child(name, [*command, "-c", str(conf)], folder=folder, env={"ROCKETMQ_HOME": str(home)})
