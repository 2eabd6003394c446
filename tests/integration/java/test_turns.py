"""One store, on which PyriteMQ and the Java broker take turns under an application that goes on.

The application is made of official clients and sends every kind of message. What is not finished
when one broker stops (delays, timers, retries, open transactions) is finished by the other, both
ways; and all that is stored is read back the same, whoever wrote it and whoever reads it. The
CommitLog lies in two folders and in several files.
"""

from __future__ import annotations

import subprocess
import time
from collections import Counter
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from pyritemq.conformance.clients import java_flags
from pyritemq.conformance.jars import class_path
from pyritemq.conformance.processes import Child, free_broker_port
from pyritemq.conformance.servers import java
from pyritemq.conformance.servers.cluster import pyrite_namesrv, pyritemq_command

if TYPE_CHECKING:
    from collections.abc import Iterator

APPLICATION = Path(__file__).with_name("Turns.java")
END = "== end of output ==\n"
SECONDS = 90.0
STOP_SECONDS = 60.0

AT_ONCE = (
    [f"plain-{number}" for number in range(10)]
    + [f"{kind}-{number}" for kind in ("big", "zip") for number in range(6)]
    + [f"{kind}-{number}" for kind in ("batch", "order") for number in range(8)]
)
LATER = [f"{kind}-{number}" for kind in ("delay", "timer") for number in range(3)]
RETRIED = ["retry-0", "retry-1"]
COMMITTED = ["half-0c", "half-2c"]


class Application:
    """The application's JVM, told what to do line by line."""

    def __init__(self, folder: Path, namesrv: str, program: Path = APPLICATION) -> None:
        folder.mkdir()
        command = ["java", *java_flags(str(folder)), "-cp", class_path()]
        self._log = (folder / "errors.log").open("wb")
        self._process = subprocess.Popen(
            [*command, str(program), namesrv],
            cwd=folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
            encoding="utf-8",
        )

    def __call__(self, *words: str) -> list[str]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write("\t".join(words) + "\n")
        self._process.stdin.flush()
        lines = []
        for line in self._process.stdout:
            if line == END:
                return lines
            lines.append(line.rstrip("\n"))
        raise AssertionError(f"the application ended during {words}: {lines}")

    def received(self, group: str, wanted: set[str]) -> dict[str, list[str]]:
        """What a group has got by key, once that is all that is wanted."""
        deadline = time.monotonic() + SECONDS
        while True:
            found: dict[str, list[str]] = {}
            for line in self("received", group):
                found.setdefault(line.split(" ")[1], []).append(line)
            if found.keys() >= wanted:
                return found
            missing = sorted(wanted - found.keys())
            assert time.monotonic() < deadline, f"{group} did not get {missing}"
            time.sleep(0.1)

    def close(self) -> None:
        for stream in (self._process.stdin, self._process.stdout):
            assert stream is not None
            stream.close()
        self._process.wait(timeout=30)
        self._log.close()


class Store:
    """One store folder, one address, and the brokers that take turns on it."""

    def __init__(self, folder: Path, namesrv: str) -> None:
        self._folder = folder
        self._namesrv = namesrv
        self._port = free_broker_port()
        self._properties = {
            "brokerName": "broker-a",
            "brokerIP1": "127.0.0.1",
            "listenPort": self._port,
            "namesrvAddr": namesrv,
            "storePathRootDir": folder / "store",
            "storePathCommitLog": f"{folder / 'disk-1'},{folder / 'disk-2'}",
            "mappedFileSizeCommitLog": 1 << 17,
            "mappedFileSizeConsumeQueue": 20 * 50,
            "mappedFileSizeTimerLog": 5200,
            "timerWheelEnable": "true",
            "messageDelayLevel": "1s 12s 12s 12s",
            "transactionCheckInterval": 1000,
            "transactionTimeOut": 1000,
            "transactionCheckMax": 100,
            "transactionOpBatchInterval": 100,
        }

    @contextmanager
    def served_by_us(self) -> Iterator[None]:
        config = java.write_properties(self._folder / "ours.conf", self._properties)
        command = [*pyritemq_command(), "broker", "-c", str(config)]
        with Child("pyritemq-broker", command, folder=self._folder) as broker:
            broker.wait_for_line(java.BROKER_READY, timeout=SECONDS)
            yield
            broker.stop(timeout=STOP_SECONDS)

    @contextmanager
    def served_by_java(self) -> Iterator[None]:
        with java.start_broker(self._folder / "java", properties=self._properties) as broker:
            broker.wait_for_line(java.BROKER_READY, timeout=java.READY_SECONDS)
            yield
            broker.stop(timeout=STOP_SECONDS)


def keys(a_round: str, *kinds: list[str]) -> set[str]:
    return {f"{a_round}-{name}" for kind in kinds for name in kind}


def begin(application: Application, a_round: str) -> None:
    """Send everything, and let what comes at once be consumed; retried is put off."""
    sent = [line for line in application("send", a_round) if line.startswith(("sent", "batch"))]
    assert len(sent) == len(AT_ONCE) - 8 + 1 + len(RETRIED)
    assert all("SEND_OK" in line for line in sent)
    found = application.received("workers", keys(a_round, AT_ONCE))
    assert not keys(a_round, RETRIED, LATER, COMMITTED) & found.keys(), "too slow to hand it over"


def finish(application: Application, a_round: str) -> None:
    """The next broker delivers what the one before could not."""
    application("decide", "true")
    found = application.received("workers", keys(a_round, RETRIED, LATER, COMMITTED))
    application("decide", "false")
    for key in keys(a_round, RETRIED):
        assert [line.split(" ")[2] for line in found[key]] == ["1"], "consumed at its first retry"
    assert {key for key in found if "-half-" in key and key.endswith("r")} == set()


def read_all(application: Application, group: str, rounds: str) -> dict[str, list[str]]:
    """All that the topic holds, as a group finds it that was never there before."""
    kinds = (AT_ONCE, LATER, RETRIED, COMMITTED)
    wanted = set().union(*(keys(a_round, *kinds) for a_round in rounds))
    application("consume", group)
    found = application.received(group, wanted)
    assert found.keys() == wanted
    return found


def test_the_brokers_finish_what_the_other_began_and_read_what_it_wrote(tmp_path: Path) -> None:
    with pyrite_namesrv(tmp_path / "namesrv", host="127.0.0.1") as namesrv:
        store = Store(tmp_path, namesrv)
        application = Application(tmp_path / "application", namesrv)
        try:
            with store.served_by_us():
                application("consume", "workers", "defers")
                begin(application, "A")
            with store.served_by_java():
                finish(application, "A")
                by_java = read_all(application, "readers_of_javas", "A")
                begin(application, "B")
            with store.served_by_us():
                finish(application, "B")
                by_us = read_all(application, "readers_of_ours", "AB")
        finally:
            application.close()
    counts = Counter({key: len(lines) for key, lines in by_us.items()})
    assert {key for key, count in counts.items() if count > 1} <= {
        key
        for key in counts
        if "-half-" in key  # Java may deliver a committed one twice
    }
    assert {key: sorted(by_us[key]) for key in by_java} == {
        key: sorted(lines) for key, lines in by_java.items()
    }
    for folder in ("disk-1", "disk-2"):
        assert len(list((tmp_path / folder).iterdir())) > 1
