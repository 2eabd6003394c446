"""The Java driver: one source, compiled once for each client version into a cache."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyritemq.conformance.drivers.build import HERE, cached, require_tools, run_builder
from pyritemq.conformance.jars import class_path

if TYPE_CHECKING:
    from pathlib import Path

SOURCES = HERE / "java"
MAIN = "Driver"

FLAGS = (
    "-Drocketmq.client.rebalance.waitInterval=2000",
    "-Drocketmq.client.rebalance.minInterval=200",
)
"""The client's own switches for how often it looks at its queues; 20 s by default."""

SPRING = "spring-2.3.5"
SPRING_SET = f"client-{SPRING}"
SPRING_MAIN = "org.pyritemq.sample.SpringSample"
"""An application of ours on rocketmq-spring-boot-starter, and the jars that it is run with."""


def spring_classes() -> Path:
    """The folder of the compiled sample. Raises JarsMissingError and DriverBuildError."""
    sources = HERE / "spring"
    jars = class_path(SPRING)

    def make(folder: Path) -> None:
        command = ["javac", "-nowarn", "-parameters", "--release", "17", "-d", str(folder)]
        run_builder([*command, "-cp", jars, *map(str, sorted(sources.glob("*.java")))], folder)

    return cached(SPRING, sources, make)


def java_classes(version: str) -> Path:
    """The folder of the compiled driver for one client version."""
    sources = sorted(SOURCES.glob("*.java"))

    def make(folder: Path) -> None:
        command = ["javac", "-nowarn", "-source", "8", "-target", "8", "-d", str(folder)]
        run_builder([*command, "-cp", class_path(version), *map(str, sources)], folder)

    require_tools(f"java-{version}")
    return cached(f"java-{version}", SOURCES, make)
