"""Drivers as child processes of this one: quick, and no Docker."""

from __future__ import annotations

import subprocess
from typing import IO, TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

STOP_SECONDS = 10.0
TAIL_LINES = 40


class LocalChannel:
    """Pipes to a child process; its stderr goes to a file."""

    def __init__(
        self, name: str, command: Sequence[str], *, folder: Path, env: Mapping[str, str]
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._log_path = folder / f"{name}.log"
        with self._log_path.open("wb") as log:
            self._process = subprocess.Popen(  # noqa: S603 - the commands are our own
                command,
                cwd=folder,
                env=dict(env),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                encoding="utf-8",
                start_new_session=True,
            )

    def write(self, line: str) -> None:
        stream = self._stdin()
        stream.write(line + "\n")
        stream.flush()

    def lines(self) -> Iterator[str]:
        assert self._process.stdout is not None
        with self._process.stdout as stream:
            yield from stream

    def close(self) -> None:
        """Closing its stdin ends a driver; one that does not listen is killed."""
        try:
            self._stdin().close()
            self._process.wait(STOP_SECONDS)
        except (OSError, subprocess.TimeoutExpired):
            self.kill()

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()

    def log_tail(self) -> str:
        text = self._log_path.read_text(encoding="utf-8", errors="replace")
        return "\n".join(text.splitlines()[-TAIL_LINES:])

    def _stdin(self) -> IO[str]:
        assert self._process.stdin is not None
        return self._process.stdin
