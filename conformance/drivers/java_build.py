"""The Java driver: one source, compiled once for each client version into a cache."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from pathlib import Path

from pyritemq.conformance.jars import class_path

SOURCES = Path(__file__).parent / "java"
MAIN = "Driver"

FLAGS = (
    "-Drocketmq.client.rebalance.waitInterval=2000",
    "-Drocketmq.client.rebalance.minInterval=200",
)
"""The client's own switches for how often it looks at its queues; 20 s by default."""


class DriverBuildError(Exception):
    """A driver could not be built; the message has the compiler's words."""


def java_classes(version: str) -> Path:
    """The folder of the compiled driver for one client version."""
    sources = sorted(SOURCES.glob("*.java"))
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in sources)).hexdigest()[:16]
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "pyritemq"
    folder = cache / "drivers" / f"java-{version}-{digest}"
    if folder.is_dir():
        return folder
    if shutil.which("javac") is None:
        raise DriverBuildError("no javac on the path; install a JDK 17 (openjdk-17-jdk-headless)")
    fresh = folder.with_name(f".{folder.name}.{os.getpid()}")
    fresh.mkdir(parents=True, exist_ok=True)
    command = ["javac", "-nowarn", "-source", "8", "-target", "8", "-d", str(fresh)]
    command += ["-cp", class_path(version), *map(str, sources)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - ours
    if done.returncode:
        raise DriverBuildError(f"javac for client {version}:\n{done.stderr[-3000:]}")
    if folder.is_dir():  # another run was faster
        shutil.rmtree(fresh)
    else:
        fresh.rename(folder)
    return folder
