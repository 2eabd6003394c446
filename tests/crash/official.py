"""Official producers that send all along while their server is killed and started again."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING

from crash.kill_rounds import KillRounds, ServerProcess
from crash.load import Acked
from pyritemq.conformance.clients import java_flags
from pyritemq.conformance.jars import class_path
from pyritemq.conformance.processes import free_broker_port, free_port

if TYPE_CHECKING:
    from types import TracebackType

SENDERS = Path(__file__).with_name("Senders.java")
PROGRESS_SECONDS = 60


class OfficialSenders:
    """The producers' JVM; what they were told is stored is in a file, a line for each message."""

    def __init__(self, folder: Path, namesrv: str) -> None:
        folder.mkdir()
        self._log = folder / "senders.log"
        command = ["java", *java_flags(str(folder)), "-cp", class_path(), str(SENDERS), namesrv]
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                command, cwd=folder, stdin=subprocess.PIPE, stdout=log, stderr=subprocess.DEVNULL
            )

    def wait_for_progress(self) -> None:
        """Until some more sends were acknowledged: the producers have found their server."""
        size = self._log.stat().st_size
        deadline = time.monotonic() + PROGRESS_SECONDS
        while self._log.stat().st_size <= size:
            assert self._process.poll() is None, "the producers ended"
            assert time.monotonic() < deadline, "no send was acknowledged"
            time.sleep(0.01)

    def end(self) -> list[Acked]:
        """Stop them, and take over what was acknowledged."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(timeout=60)
        lines = [line.split(" ") for line in self._log.read_text(encoding="utf-8").splitlines()]
        return [
            Acked(words[1].encode(), int(words[2]), int(words[3]))
            for words in lines
            if words[0] == "ok"
        ]

    def __enter__(self) -> OfficialSenders:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._process.kill()
        self._process.wait()


class OfficialKillRounds(KillRounds):
    """Rounds of killing with that load; everything is checked at the end, by a last server."""

    def load_and_kill(self, rounds: int) -> None:
        ports = free_port(), free_broker_port()
        with OfficialSenders(self._folder / "senders", f"127.0.0.1:{ports[0]}") as senders:
            for _ in range(rounds):
                server = ServerProcess(self._folder, self._flush, ports)
                try:
                    senders.wait_for_progress()
                    time.sleep(self._random.uniform(0, 1.0))  # the moment is the test
                finally:
                    server.kill()
            for acked in senders.end():
                self._add(acked)
        self.check_all()
