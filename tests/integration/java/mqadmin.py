"""The stock mqadmin in one JVM that takes a command at a time: half a second each becomes ten
milliseconds."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

from pyritemq.conformance.clients import java_flags
from pyritemq.conformance.jars import class_path

if TYPE_CHECKING:
    from types import TracebackType

HARNESS = Path(__file__).with_name("Mqadmin.java")
END = "== end of output ==\n"

# What logging frameworks say about themselves, and stack traces below the first line.
_NOISE = re.compile(
    r"^(?:.* \|-(?:INFO|WARN|ERROR) .*|\tat .*|\t\.\.\. .*|WARNING: .*)\n", re.MULTILINE
)


class Mqadmin:
    """One JVM with the tools; a context manager."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._log = (folder / "mqadmin.log").open("wb")
        flags = [*java_flags(str(folder)), f"-Djava.io.tmpdir={folder}"]
        flags += ["-Djava.security.manager=allow"]  # by which the harness outlives a tool's exit
        command = ["java", *flags, "-cp", class_path(), str(HARNESS)]
        self._process = subprocess.Popen(
            command,
            cwd=folder,
            env={"ROCKETMQ_HOME": str(folder), "PATH": "/usr/bin:/bin"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
            encoding="utf-8",
        )

    def __call__(self, *arguments: str) -> str:
        """Run one command; what it printed, without noise."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write("\t".join(arguments) + "\n")
        self._process.stdin.flush()
        lines: list[str] = []
        for line in self._process.stdout:
            if line == END:
                return _NOISE.sub("", "".join(lines)).strip("\n")
            lines.append(line)
        raise AssertionError(f"mqadmin ended during {arguments}: {''.join(lines)}")

    def __enter__(self) -> Mqadmin:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                stream.close()
        self._process.wait(timeout=30)
        self._log.close()
