"""Builds drivers from their sources here, once for each content, into a cache.

Each client's folder beside this module has its sources and the lock file of what it needs. What a
builder makes is a folder with everything of the driver in it, and the command that runs it there.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import sysconfig
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pyritemq.conformance.drivers.registry import client_named

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

HERE = Path(__file__).parent

BUILD_SECONDS = 1500
"""A Rust client from nothing on two busy cores has needed ten minutes."""


class DriverBuildError(Exception):
    """A driver could not be built; the message has the tool's own words."""


@dataclass(frozen=True)
class Program:
    """A driver that is ready to run: `command` with {} where its folder is mounted."""

    folder: Path
    command: tuple[str, ...]
    binaries: tuple[Path, ...] = ()
    """Programs of this machine that it runs with; none for a driver that is linked statically."""
    trees: tuple[Path, ...] = ()
    """Folders of this machine that those programs need."""
    env: tuple[tuple[str, str], ...] = ()

    def argv(self, folder: str) -> list[str]:
        return [word.replace("{}", folder) for word in self.command]

    def linked(self) -> list[Path]:
        """All that may want shared libraries of this machine."""
        whole = [*self.folder.rglob("*.so"), *self.folder.rglob("*.node")]
        own = [self.folder / "driver"] if (self.folder / "driver").is_file() else []
        whole += [path for tree in self.trees for path in tree.rglob("*.so")]
        return [*self.binaries, *own, *whole]


def cache_folder() -> Path:
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return cache / "pyritemq" / "drivers"


def digest(paths: Sequence[Path]) -> str:
    """Of names and contents: another source is another folder in the cache."""
    whole = hashlib.sha256()
    for path in sorted(paths):
        whole.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return whole.hexdigest()[:16]


def missing_tools(client: str) -> list[str]:
    return [tool for tool in client_named(client).tools if shutil.which(tool) is None]


def require_tools(client: str) -> None:
    """Raises DriverBuildError with what is not on the path."""
    missing = missing_tools(client)
    if missing:
        raise DriverBuildError(f"client {client} needs {' and '.join(missing)} on the path")


def cached(name: str, sources: Path, make: Callable[[Path], None]) -> Path:
    """The folder that `make` filled for these sources, now or on an earlier day."""
    files = [path for path in sources.rglob("*") if path.is_file()]
    folder = cache_folder() / f"{name}-{digest(files)}"
    if folder.is_dir():
        return folder
    fresh = folder.with_name(f".{folder.name}.{os.getpid()}")
    shutil.rmtree(fresh, ignore_errors=True)
    fresh.mkdir(parents=True)
    try:
        make(fresh)
    except DriverBuildError:
        shutil.rmtree(fresh, ignore_errors=True)
        raise
    if folder.is_dir():  # another run was faster
        shutil.rmtree(fresh)
    else:
        fresh.rename(folder)
    return folder


def run_builder(command: Sequence[str], folder: Path, env: Mapping[str, str] | None = None) -> None:
    """Raises DriverBuildError with the end of what it said."""
    try:
        done = subprocess.run(  # noqa: S603 - the commands are our own
            command,
            cwd=folder,
            env={**os.environ, **(env or {})},
            capture_output=True,
            text=True,
            check=False,
            timeout=BUILD_SECONDS,
        )
    except subprocess.TimeoutExpired:
        raise DriverBuildError(f"{command[0]} was not done in {BUILD_SECONDS} s") from None
    if done.returncode:
        raise DriverBuildError(f"{' '.join(command)}:\n{(done.stderr or done.stdout)[-3000:]}")


def go_program(name: str) -> Program:
    sources = HERE / "go"

    def make(folder: Path) -> None:
        target = ["-trimpath", "-ldflags", "-s -w", "-o", str(folder / "driver")]
        run_builder(["go", "build", *target, "."], sources, {"CGO_ENABLED": "0"})

    return Program(cached(name, sources, make), ("{}/driver",))


def node_program(name: str) -> Program:
    sources = HERE / "node"

    def make(folder: Path) -> None:
        for path in sources.iterdir():
            shutil.copy(path, folder)
        run_builder(["npm", "ci", "--omit=dev", "--ignore-scripts", "--no-audit"], folder)

    node = Path(shutil.which("node") or "node")
    return Program(cached(name, sources, make), (str(node), "{}/driver.js"), (node,))


def python_program(name: str) -> Program:
    sources = HERE / "python"

    def make(folder: Path) -> None:
        shutil.copy(sources / "driver.py", folder)
        pip = [
            sys.executable,
            "-m",
            "pip",
            "install",
            "--quiet",
            "--no-deps",
            "--only-binary=:all:",
        ]
        wanted = ["--require-hashes", "-r", str(sources / "requirements.txt")]
        run_builder([*pip, "--target", str(folder / "lib"), *wanted], folder)

    python = Path(sys.executable).resolve()
    library = Path(sysconfig.get_path("stdlib")).resolve()
    command = (str(python), "-B", "{}/driver.py")
    return Program(cached(name, sources, make), command, (python,), (library,))


BUILDERS: dict[str, Callable[[str], Program]] = {
    "go": go_program,
    "node": node_program,
    "python": python_program,
}


def program(client: str) -> Program:
    """The driver of a client other than Java. Raises UnknownClientError and DriverBuildError."""
    require_tools(client)
    return BUILDERS[client.partition("-")[0]](client)
