"""Docker images for the official Java clients, made without any registry when there is none.

One way to a base image, whatever the machine: the one named in the environment, the public one when
it is here, the public one when it can be pulled in time, else one made of this machine's own files.
The local one puts things where the public one has them, so what is built on top cannot tell.
"""

from __future__ import annotations

import io
import os
import re
import shutil
import subprocess
import tarfile
import tempfile
import threading
from pathlib import Path
from typing import TYPE_CHECKING

from docker.errors import APIError, DockerException, ImageNotFound

from pyritemq.conformance.jars import jar_folder

if TYPE_CHECKING:
    from collections.abc import Iterable

    import docker

PUBLIC_JRE = "eclipse-temurin:17-jre"
LOCAL_JRE = "pyritemq-local/jre:17-2"
JAVA_HOME = "/opt/java/openjdk"
"""Where the public image keeps its Java."""

PULL_SECONDS = 60.0
"""A pull that resolves to nothing fails in 0.2 s; one into a silent network would hang for ever."""

JRE_MODULES = (
    "java.base,java.logging,java.management,java.naming,java.sql,java.xml,java.desktop,"
    "jdk.unsupported,jdk.crypto.ec,jdk.management"
)
"""What the client, fastjson and Netty load; java.desktop for fastjson's java.beans."""


class ImageError(Exception):
    """An image could not be made; the message says which and why."""


def jre_base(client: docker.DockerClient) -> str:
    """The name of an image with a Java 17 runtime."""
    named = os.environ.get("PYRITEMQ_BASE_JRE")
    if named:
        return named
    for name in (PUBLIC_JRE, LOCAL_JRE):
        if is_here(client, name):
            return name
    if pull_in_time(client, PUBLIC_JRE):
        return PUBLIC_JRE
    _import_local_jre(client)
    return LOCAL_JRE


def client_image(client: docker.DockerClient, version: str) -> str:
    """An image with the jars of one client line in /jars; built once per set of jars and base."""
    base = jre_base(client)
    stamp = f"{_created(client, base)}-{int(jar_folder(version).stat().st_mtime)}"
    name = f"pyritemq-local/rocketmq-client:{version}-{re.sub('[^0-9A-Za-z]', '', stamp)}"
    if not is_here(client, name):
        _build(client, name, base, jar_folder(version))
    return name


def is_here(client: docker.DockerClient, name: str) -> bool:
    try:
        client.images.get(name)
    except ImageNotFound:
        return False
    return True


def _created(client: docker.DockerClient, name: str) -> str:
    return str(client.images.get(name).short_id).removeprefix("sha256:")


def pull_in_time(client: docker.DockerClient, name: str) -> bool:
    """Pull on a thread of its own, which the caller leaves behind when the deadline passes."""
    pulled = threading.Event()

    def pull() -> None:
        try:
            client.images.pull(name)
        except DockerException:
            return
        pulled.set()

    worker = threading.Thread(target=pull, daemon=True)
    worker.start()
    worker.join(PULL_SECONDS)
    return pulled.is_set()


def _build(client: docker.DockerClient, name: str, base: str, jars: Path) -> None:
    dockerfile = f'FROM {base}\nCOPY jars /jars\nENTRYPOINT ["java"]\n'.encode()
    with tempfile.TemporaryFile() as context:
        with tarfile.open(fileobj=context, mode="w") as tar:
            entry = tarfile.TarInfo("Dockerfile")
            entry.size = len(dockerfile)
            tar.addfile(entry, io.BytesIO(dockerfile))
            tar.add(jars, "jars")
        context.seek(0)
        try:
            client.images.build(fileobj=context, custom_context=True, tag=name, rm=True)
        except (APIError, DockerException) as error:
            raise ImageError(f"Docker could not build {name} from {base}: {error}") from error


def _import_local_jre(client: docker.DockerClient) -> None:
    """Make the local base: a linked Java runtime, the libraries that it needs, and little else."""
    if shutil.which("jlink") is None:
        raise ImageError(f"{PUBLIC_JRE} cannot be pulled, and no jlink is here to make one")
    with tempfile.TemporaryDirectory(prefix="pyritemq-jre-") as temporary:
        java = Path(temporary) / "java"
        command = ["jlink", "--add-modules", JRE_MODULES, "--no-man-pages", "--no-header-files"]
        run_tool([*command, "--output", str(java)])
        archive = Path(temporary) / "jre.tar"
        with tarfile.open(archive, "w") as tar:
            _add_root(tar, java)
        changes = [f"ENV JAVA_HOME={JAVA_HOME}", f"ENV PATH={JAVA_HOME}/bin:/usr/bin:/bin"]
        repository, tag = LOCAL_JRE.split(":")
        client.api.import_image(
            str(archive), repository=repository, tag=tag, changes=[*changes, "ENV LANG=C.UTF-8"]
        )


def _add_root(tar: tarfile.TarFile, java: Path) -> None:
    tar.add(java, JAVA_HOME)
    for library in sorted(_shared_libraries(java)):
        tar.add(Path(library).resolve(), library)
    add_small_root(tar)


def add_small_root(tar: tarfile.TarFile) -> None:
    """What programs expect of any system: a place for temporary files, a user, name look-ups."""
    for folder, mode in (("tmp", 0o1777), ("root", 0o700), ("etc", 0o755)):
        entry = tarfile.TarInfo(folder)
        entry.type, entry.mode = tarfile.DIRTYPE, mode
        tar.addfile(entry)
    files = {
        "etc/passwd": "root:x:0:0:root:/root:/bin/sh\n",
        "etc/nsswitch.conf": "hosts: files dns\n",
    }
    for name, text in files.items():
        entry = tarfile.TarInfo(name)
        entry.size, entry.mode = len(text), 0o644
        tar.addfile(entry, io.BytesIO(text.encode()))


def _shared_libraries(java: Path) -> set[str]:
    return shared_libraries([java / "bin" / "java", *(java / "lib").rglob("*.so")], outside=java)


def shared_libraries(binaries: Iterable[Path], *, outside: Path) -> set[str]:
    """The closure that ldd finds; also what glibc loads by name to resolve hosts."""
    found: set[str] = set()
    for binary in binaries:
        for path in re.findall(r"(/\S+) \(0x", run_tool(["ldd", str(binary)], may_fail=True)):
            if not path.startswith(str(outside)):
                found.add(path)
    libc = next((path for path in found if Path(path).name.startswith("libc.so")), None)
    if libc is None:
        raise ImageError(f"ldd shows no libc for {outside}")
    beside = Path(libc).parent
    names = (
        "libnss_dns.so.2",
        "libnss_files.so.2",
        "libresolv.so.2",
        "libgcc_s.so.1",
        "libstdc++.so.6",
        "libpthread.so.0",  # these three: RocksDB's library, which the real broker loads
        "libdl.so.2",
        "librt.so.1",
    )
    return found | {str(beside / name) for name in names if (beside / name).exists()}


def run_tool(command: list[str], *, may_fail: bool = False) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - ours
    if done.returncode and not may_fail:
        raise ImageError(f"{command[0]} failed: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout
