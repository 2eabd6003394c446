"""A compose file, run by Docker Compose as its users run it, with the image of this checkout.

Only what would collide with other runs is changed: the image's name, the containers' fixed names
(they stay as aliases on the network) and the published ports.
"""

from __future__ import annotations

import shutil
import subprocess
from typing import TYPE_CHECKING, Any

import yaml

from pyritemq.conformance.containers import LABEL

if TYPE_CHECKING:
    from pathlib import Path
    from types import TracebackType

UP_SECONDS = 120


class ComposeError(Exception):
    """Docker Compose refused the file or could not do what it was asked."""


def compose_command() -> list[str]:
    """`docker compose`, or the older `docker-compose`. Raises ComposeError."""
    plugin = ["docker", "compose"]
    if shutil.which("docker") and not _run([*plugin, "version"]).returncode:
        return plugin
    if found := shutil.which("docker-compose"):
        return [found]
    raise ComposeError("Docker Compose is not installed")


class ComposeProject:
    """The services of one file; entering starts them, leaving removes them and their volumes."""

    def __init__(self, name: str, path: Path, *, image: str, session: int) -> None:
        self.name = name
        changed = adapted(yaml.safe_load(path.read_text(encoding="utf-8")), image, session)
        # Beside the file, since it names others relative to itself.
        self._path = path.with_name(f".{name}.yml")
        self._path.write_text(yaml.safe_dump(changed), encoding="utf-8")
        self._command = [*compose_command(), "-p", name, "-f", str(self._path)]

    def container(self, service: str) -> str:
        """The id of a service's container."""
        return self("ps", "-q", service).strip()

    def __call__(self, *words: str) -> str:
        done = _run([*self._command, *words])
        if done.returncode:
            raise ComposeError(f"compose {' '.join(words)}: {done.stderr.strip()}")
        return done.stdout

    def __enter__(self) -> ComposeProject:
        try:
            self("up", "-d")
        except BaseException:
            self._remove()
            raise
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._remove()

    def _remove(self) -> None:
        try:
            self("down", "--volumes", "--timeout", "10")
        finally:
            self._path.unlink()


def adapted(file: dict[str, Any], image: str, session: int) -> dict[str, Any]:
    """The file with another image, and without what only one run on a machine can have."""
    for service in file["services"].values():
        service["image"] = image
        service.pop("build", None)
        service.pop("ports", None)
        service["labels"] = {LABEL: str(session)}
        alias = service.pop("container_name")
        service["networks"] = {name: {"aliases": [alias]} for name in service["networks"]}
    for network in file["networks"]:
        file["networks"][network] = {"labels": {LABEL: str(session)}}
    return file


def _run(command: list[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(  # noqa: S603 - ours
        command, capture_output=True, text=True, check=False, timeout=UP_SECONDS
    )
