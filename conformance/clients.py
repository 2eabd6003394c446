"""The official Java example and benchmark classes, run unmodified as child processes.

Most examples leave their name server address to the environment: NAMESRV_ADDR is all that they
are told.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyritemq.conformance.jars import ROCKETMQ_VERSION, class_path
from pyritemq.conformance.processes import Child

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

EXAMPLES = "org.apache.rocketmq.example"
CLIENT_HEAP = ("-Xms64m", "-Xmx512m")


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


def start_example(
    name: str,
    folder: Path,
    *,
    namesrv: str,
    client_version: str = ROCKETMQ_VERSION,
    arguments: Sequence[str] = (),
    flags: Sequence[str] = (),
) -> Child:
    """Start EXAMPLES.<name>, e.g. "quickstart.Producer", or a class named in full."""
    main = name if name.startswith("org.") else f"{EXAMPLES}.{name}"
    command = ["java", *java_flags(str(folder)), *flags, "-cp", class_path(client_version), main]
    env = {"NAMESRV_ADDR": namesrv, "ROCKETMQ_HOME": str(folder)}
    return Child(
        f"{main.rpartition('.example.')[2]}-{client_version}",
        [*command, *arguments],
        folder=folder,
        env=env,
    )
