"""Images that drivers other than Java's run in: this machine's own files, and no registry.

A driver is built with a tool of this machine, so what it links to is here as well: the image is
that program's interpreter, if it has one, and the libraries of both, where they lie here. The
driver itself is mounted.
"""

from __future__ import annotations

import hashlib
import tarfile
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from pyritemq.conformance.images import add_small_root, is_here, shared_libraries

if TYPE_CHECKING:
    import docker

    from pyritemq.conformance.drivers.build import Program

LEFT_OUT = ("site-packages", "test", "idlelib", "tkinter", "__pycache__")
"""Of an interpreter's library: what no driver uses."""

REPOSITORY = "pyritemq-local/driver-base"


def driver_image(client: docker.DockerClient, program: Program) -> str:
    """The name of an image in which this driver's command runs."""
    files = _files(program)
    tag = _digest(files)
    name = f"{REPOSITORY}:{tag}"
    if not is_here(client, name):
        with tempfile.TemporaryDirectory(prefix="pyritemq-driver-") as temporary:
            archive = Path(temporary) / "root.tar"
            with tarfile.open(archive, "w") as tar:
                add_small_root(tar)
                for path in files:
                    tar.add(path.resolve(), str(path), filter=_kept)
            changes = ["ENV PATH=/usr/local/bin:/usr/bin:/bin", "ENV LANG=C.UTF-8"]
            client.api.import_image(str(archive), repository=REPOSITORY, tag=tag, changes=changes)
    return name


def _files(program: Program) -> list[Path]:
    """What the program needs of this machine; nothing for one that is linked statically."""
    if not program.binaries:
        return []
    libraries = shared_libraries(program.linked(), outside=program.folder)
    return [*program.binaries, *program.trees, *map(Path, sorted(libraries))]


def _digest(files: list[Path]) -> str:
    """Of names and times: another Node or another libc is another image."""
    known = "".join(f"{path} {path.resolve().stat().st_mtime_ns}\n" for path in files)
    return hashlib.sha256(known.encode()).hexdigest()[:16]


def _kept(entry: tarfile.TarInfo) -> tarfile.TarInfo | None:
    parts = Path(entry.name).parts
    return None if any(part in LEFT_OUT for part in parts) else entry
