"""The image of the server under test, built from the Dockerfile of this project.

The base is found as for the clients (`images`): named in the environment, the public one, else one
made of this machine's own Python, placed where the public image has it. On a base of our own the
wheels come from here too: a container may have no way to a package index.
"""

from __future__ import annotations

import io
import os
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from docker.errors import APIError, BuildError, DockerException

from pyritemq.conformance.images import (
    ImageError,
    is_here,
    pull_in_time,
    run_tool,
    shared_libraries,
)

if TYPE_CHECKING:
    import docker

PUBLIC_PYTHON = "python:3.13-slim"
LOCAL_PYTHON = f"pyritemq-local/python:{sys.version_info.major}.{sys.version_info.minor}"
SERVER_IMAGE = "pyritemq-local/server:test"

TOOLS = ("/bin/sh",)
"""Beyond Python: what `sh mqbroker` needs."""

LEFT_OUT = ("site-packages", "test", "idlelib", "tkinter", "turtledemo", "lib2to3", "__pycache__")
"""Of the standard library: some hundred megabytes that no server uses."""

CONTEXT = ("server", "protocol", "compat", "storage", "conformance", "spark", "container")
CONTEXT_FILES = ("Dockerfile", "pyproject.toml", "README.md", "LICENSE")


def python_base(client: docker.DockerClient) -> str:
    """The name of an image with a Python that the server runs on."""
    named = os.environ.get("PYRITEMQ_BASE_PYTHON")
    if named:
        return named
    for name in (PUBLIC_PYTHON, LOCAL_PYTHON):
        if is_here(client, name):
            return name
    if pull_in_time(client, PUBLIC_PYTHON):
        return PUBLIC_PYTHON
    _import_local_python(client)
    return LOCAL_PYTHON


def build_server_image(client: docker.DockerClient, root: Path) -> str:
    """Build the Dockerfile of the checkout at `root`; the image's name. Raises ImageError."""
    base = python_base(client)
    arguments = {"PYTHON_IMAGE": base}
    with tempfile.TemporaryDirectory(prefix="pyritemq-image-") as temporary:
        wheels = None
        if base == LOCAL_PYTHON:
            wheels = _collect_wheels(root, Path(temporary))
            arguments["PIP_OPTIONS"] = "--no-index --find-links /src/wheels"
        with tempfile.TemporaryFile() as context:
            _write_context(context, root, wheels)
            context.seek(0)
            try:
                client.images.build(
                    fileobj=context,
                    custom_context=True,
                    tag=SERVER_IMAGE,
                    rm=True,
                    buildargs=arguments,
                )
            except BuildError as error:
                said = "".join(str(line.get("stream", "")) for line in error.build_log)
                raise ImageError(f"Docker could not build the server: {error}\n{said}") from error
            except (APIError, DockerException) as error:
                raise ImageError(f"Docker could not build the server: {error}") from error
    return SERVER_IMAGE


def _collect_wheels(root: Path, folder: Path) -> Path:
    """Wheels of what the server needs, and of what builds it, for this Python."""
    pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--wheel-dir", str(folder)]
    done = subprocess.run(  # noqa: S603 - ours
        [*pip, str(root), "hatchling"], capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise ImageError(f"pip could not collect the server's wheels: {done.stderr.strip()}")
    return folder


def _write_context(context: io.BufferedRandom, root: Path, wheels: Path | None) -> None:
    def keep(entry: tarfile.TarInfo) -> tarfile.TarInfo | None:
        return None if "__pycache__" in entry.name else entry

    with tarfile.open(fileobj=context, mode="w") as tar:
        for name in (*CONTEXT, *CONTEXT_FILES):
            tar.add(root / name, name, filter=keep)
        if wheels is not None:
            tar.add(wheels, "wheels")


def _import_local_python(client: docker.DockerClient) -> None:
    """Make the local base: this Python's files under /usr/local, its libraries, and a shell."""
    library = Path(sysconfig.get_path("stdlib"))
    binary = Path(sys.executable).resolve()
    extensions = [*(library / "lib-dynload").glob("*.so"), binary, *map(Path, TOOLS)]
    libraries = shared_libraries(extensions, outside=library)
    version = f"{sys.version_info.major}.{sys.version_info.minor}"

    def keep(entry: tarfile.TarInfo) -> tarfile.TarInfo | None:
        parts = Path(entry.name).parts
        unused = any(part in LEFT_OUT or part.startswith("config-") for part in parts)
        return None if unused else entry

    with tempfile.TemporaryDirectory(prefix="pyritemq-python-") as temporary:
        archive = Path(temporary) / "python.tar"
        with tarfile.open(archive, "w") as tar:
            tar.add(binary, f"usr/local/bin/python{version}")
            for name in ("python3", "python"):
                _link(tar, f"usr/local/bin/{name}", f"python{version}")
            tar.add(library, f"usr/local/lib/python{version}", filter=keep)
            for path in sorted(libraries):
                tar.add(Path(path).resolve(), path)
            for tool in TOOLS:
                tar.add(Path(tool).resolve(), tool)
            _folders_and_files(tar)
        repository, tag = LOCAL_PYTHON.split(":")
        changes = ["ENV PATH=/usr/local/bin:/usr/bin:/bin", "ENV LANG=C.UTF-8"]
        client.api.import_image(str(archive), repository=repository, tag=tag, changes=changes)
    run_tool(["docker", "run", "--rm", LOCAL_PYTHON, "python3", "-c", "import ssl, zlib, ctypes"])


def _link(tar: tarfile.TarFile, name: str, target: str) -> None:
    entry = tarfile.TarInfo(name)
    entry.type, entry.linkname = tarfile.SYMTYPE, target
    tar.addfile(entry)


def _folders_and_files(tar: tarfile.TarFile) -> None:
    for folder, mode in (("tmp", 0o1777), ("root", 0o755), ("etc", 0o755)):
        entry = tarfile.TarInfo(folder)
        entry.type, entry.mode = tarfile.DIRTYPE, mode
        tar.addfile(entry)
    files = {
        "etc/passwd": "root:x:0:0:root:/root:/bin/sh\n",
        "etc/group": "root:x:0:\n",
        "etc/nsswitch.conf": "hosts: files dns\n",
    }
    for name, text in files.items():
        entry = tarfile.TarInfo(name)
        entry.size, entry.mode = len(text), 0o644
        tar.addfile(entry, io.BytesIO(text.encode()))
