"""One store, on which PyriteMQ and the Java broker take turns under an application that goes on.

The application is made of official clients and sends every kind of message. What is not finished
when one broker stops (delays, timers, retries, open transactions) is finished by the other, both
ways; and all that is stored is read back the same, in queues and by key, whoever wrote it and
whoever reads it. The CommitLog lies in two folders and in several files.
"""

from __future__ import annotations

import subprocess
import time
from collections import Counter
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from crash.load import Connection
from pyritemq.compat import fastjson
from pyritemq.conformance.clients import java_flags
from pyritemq.conformance.jars import class_path
from pyritemq.conformance.processes import Child, free_broker_port
from pyritemq.conformance.servers import java
from pyritemq.conformance.servers.cluster import pyrite_namesrv, pyritemq_command
from pyritemq.protocol.codes import RequestCode

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
FOUND_BY_KEY = ["plain-0", "plain-9", "big-5", "zip-0", "order-7"]
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


TABLES = {
    "topics.json": (RequestCode.GET_ALL_TOPIC_CONFIG, "topicConfigTable"),
    "subscriptionGroup.json": (
        RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG,
        "subscriptionGroupTable",
    ),
    "consumerOffset.json": (RequestCode.GET_ALL_CONSUMER_OFFSET, "offsetTable"),
    "delayOffset.json": (RequestCode.GET_ALL_DELAY_OFFSET, "offsetTable"),
}


def tables_of(folder: Path) -> dict[str, Any]:
    """What a broker left behind."""
    texts = {name: (folder / name).read_bytes() for name in TABLES}
    return {name: fastjson.loads(texts[name])[table] for name, (_, table) in TABLES.items()}


def tables_at(port: int) -> dict[str, Any]:
    """What a broker says that it knows."""
    connection = Connection(port)
    try:
        replies = {name: connection.call(code, {}) for name, (code, _) in TABLES.items()}
    finally:
        connection.close()
    return {name: fastjson.loads(replies[name].body)[table] for name, (_, table) in TABLES.items()}


def check_tables(found: dict[str, Any], left: dict[str, Any]) -> None:
    """The next broker knows all that the last one did; its clients are back already."""
    for name in ("topics.json", "subscriptionGroup.json"):
        of_the_test = {key for key in left[name] if key.endswith(("Turns", "workers"))}
        assert of_the_test
        for key in of_the_test:
            assert found[name][key] == left[name][key], key
    (workers,) = (key for key in left["consumerOffset.json"] if key == "Turns@workers")
    for name, key in (("consumerOffset.json", workers), ("delayOffset.json", None)):
        before = left[name][key] if key else left[name]
        after = found[name][key] if key else found[name]
        assert before
        for queue, offset in before.items():
            assert after[queue] >= offset, (name, queue)


class Store:
    """One store folder, one address, and the brokers that take turns on it."""

    def __init__(self, folder: Path, namesrv: str) -> None:
        self._folder = folder
        self._namesrv = namesrv
        self._port = free_broker_port()
        self._left: dict[str, Any] | None = None  # the tables, as the last broker left them
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
            self._take_over()
            yield
            broker.stop(timeout=STOP_SECONDS)
        self._left = tables_of(self._folder / "store" / "config")

    def _take_over(self) -> None:
        if self._left is not None:
            check_tables(tables_at(self._port), self._left)

    @contextmanager
    def served_by_java(self) -> Iterator[None]:
        with java.start_broker(self._folder / "java", properties=self._properties) as broker:
            broker.wait_for_line(java.BROKER_READY, timeout=java.READY_SECONDS)
            self._take_over()
            yield
            broker.stop(timeout=STOP_SECONDS)
        self._left = tables_of(self._folder / "store" / "config")


def keys(a_round: str, *kinds: list[str]) -> set[str]:
    return {f"{a_round}-{name}" for kind in kinds for name in kind}


def place(line: str) -> list[str]:
    """Id, queue and offset, of what was sent and of what was received."""
    words = line.split(" ")
    return words[3:6] if words[0] == "sent" else [words[4], *words[6:8]]


def begin(application: Application, a_round: str) -> dict[str, list[str]]:
    """Send everything, and let what comes at once be consumed; retried is put off.

    Returns the place of what was sent one by one, by key, as the producer was told.
    """
    sent = [line for line in application("send", a_round) if line.startswith(("sent", "batch"))]
    assert len(sent) == len(AT_ONCE) - 8 + 1 + len(RETRIED)
    assert all("SEND_OK" in line for line in sent)
    found = application.received("workers", keys(a_round, AT_ONCE))
    assert not keys(a_round, RETRIED, LATER, COMMITTED) & found.keys(), "too slow to hand it over"
    return {line.split(" ")[1]: place(line) for line in sent if line.startswith("sent")}


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


def check_places(read: dict[str, list[str]], sent: dict[str, list[str]]) -> None:
    """Ids, queues and offsets are those that the producer was told, whoever stored the message."""
    assert sent
    assert {key: place(read[key][0]) for key in sent} == sent


def check_found(application: Application, read: dict[str, list[str]], rounds: str) -> None:
    """By key and by unique id, from the index: what a consumer reads, whoever indexed it."""
    for key in sorted(set().union(*(keys(a_round, FOUND_BY_KEY) for a_round in rounds))):
        assert application("find", key) == [read[key][0]] * 2


def test_the_brokers_finish_what_the_other_began_and_read_what_it_wrote(tmp_path: Path) -> None:
    with pyrite_namesrv(tmp_path / "namesrv", host="127.0.0.1") as namesrv:
        store = Store(tmp_path, namesrv)
        application = Application(tmp_path / "application", namesrv)
        try:
            with store.served_by_us():
                application("consume", "workers", "defers")
                sent = begin(application, "A")
            with store.served_by_java():
                finish(application, "A")
                by_java = read_all(application, "readers_of_javas", "A")
                check_places(by_java, sent)
                check_found(application, by_java, "A")
                sent |= begin(application, "B")
            with store.served_by_us():
                finish(application, "B")
                by_us = read_all(application, "readers_of_ours", "AB")
                check_places(by_us, sent)
                check_found(application, by_us, "AB")
            with store.served_by_java():
                by_java_again = read_all(application, "readers_once_more", "AB")
                check_found(application, by_java_again, "AB")
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
    assert {key: sorted(lines) for key, lines in by_java_again.items()} == {
        key: sorted(lines) for key, lines in by_us.items()
    }
    for folder in ("disk-1", "disk-2"):
        assert len(list((tmp_path / folder).iterdir())) > 1
