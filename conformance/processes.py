"""Child processes of a run: started, watched for a line, measured, and ended by their own id.

Output goes to a file, never to the terminal and never to a pipe: a pipe that nobody drains would
stop the child, and Java servers say a lot. Plain blocking code; callers are tests, the golden
capture and bench/.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import socket
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from types import TracebackType

POLL_SECONDS = 0.01
"""How often a log file or an exit is looked at; small beside the second that a JVM needs."""

CLOCK_TICKS = os.sysconf("SC_CLK_TCK")


class ChildError(Exception):
    """A child ended, or stayed silent too long; the message ends with the tail of its log."""


class Child:
    """One process that we started. A context manager: leaving it stops the process."""

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        *,
        folder: Path,
        env: Mapping[str, str] | None = None,
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.name = name
        self.log_path = folder / f"{name}.log"
        self.started_at = time.monotonic()
        with self.log_path.open("wb") as log:
            self._process = subprocess.Popen(  # noqa: S603 - the commands are our own, never a user's
                command,
                cwd=folder,
                env={**os.environ, **(env or {})},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # a Ctrl-C reaches us alone, and we end the child in order
            )

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def returncode(self) -> int | None:
        return self._process.poll()

    def age(self) -> float:
        """Seconds since the process was started."""
        return time.monotonic() - self.started_at

    def output(self) -> str:
        return self.log_path.read_text(encoding="utf-8", errors="replace")

    def wait_for_line(self, pattern: str, *, timeout: float) -> re.Match[str]:
        """The first match of pattern in the output. Raises ChildError on exit or time-out."""
        deadline = time.monotonic() + timeout
        while time.monotonic() < deadline:
            ended = self.returncode is not None  # asked before reading, so the last lines count
            match = re.search(pattern, self.output())
            if match:
                return match
            if ended:
                raise ChildError(self._story(f"ended with {self.returncode} before /{pattern}/"))
            time.sleep(POLL_SECONDS)
        raise ChildError(self._story(f"did not say /{pattern}/ within {timeout:g} s"))

    def wait(self, *, timeout: float) -> int:
        """Wait for the exit. Raises ChildError when it does not come in time."""
        try:
            return self._process.wait(timeout)
        except subprocess.TimeoutExpired:
            raise ChildError(self._story(f"did not end within {timeout:g} s")) from None

    def stop(self, *, timeout: float = 20.0) -> int:
        """SIGTERM, then SIGKILL when the process has not ended in time; returns the exit code."""
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
            try:
                self._process.wait(timeout)
            except subprocess.TimeoutExpired:
                self.kill()
        return self._process.wait()

    def kill(self) -> None:
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()

    def close(self) -> None:
        """End it, whatever it is doing: for a server whose store goes with it."""
        self.kill()

    def cpu_seconds(self) -> float:
        """User and system time of all threads so far."""
        stat = Path(f"/proc/{self.pid}/stat").read_text(encoding="ascii", errors="replace")
        fields = stat.rpartition(")")[2].split()  # the name may hold spaces: count from its bracket
        return (int(fields[11]) + int(fields[12])) / CLOCK_TICKS

    def memory_kib(self, field: str = "VmRSS") -> int:
        """One of the KiB figures of /proc/PID/status: VmRSS, RssAnon, RssFile, VmHWM."""
        status = Path(f"/proc/{self.pid}/status").read_text(encoding="ascii", errors="replace")
        match = re.search(rf"^{field}:\s+(\d+) kB", status, re.MULTILINE)
        if match is None:
            raise ChildError(self._story(f"has no {field} in /proc"))
        return int(match[1])

    def _story(self, what: str) -> str:
        tail = "\n".join(self.output().splitlines()[-15:])
        return f"{self.name} {what}; the end of {self.log_path}:\n{tail}"

    def __enter__(self) -> Child:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()


PORTS_OF_A_BROKER = (0, -2, 1)
"""Offsets from the listen port: itself, the VIP (fast) port, and the port for replicas."""


def free_port(offsets: Sequence[int] = (0,)) -> int:
    """A port that was free a moment ago, as were its neighbours at the given offsets."""
    for _ in range(100):
        with contextlib.ExitStack() as sockets:
            try:
                first = sockets.enter_context(socket.socket())
                first.bind(("", 0))
                port = int(first.getsockname()[1])
                for offset in offsets:
                    if offset:
                        sockets.enter_context(socket.socket()).bind(("", port + offset))
            except OSError:
                continue
            return port
    raise ChildError("no free port found in 100 tries")


def free_broker_port() -> int:
    return free_port(PORTS_OF_A_BROKER)
