"""Official consumers that are killed while they work, and what each of them said that it did."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from crash.load import Connection
from integration.wire import send_fields
from pyritemq.conformance.clients import java_flags
from pyritemq.conformance.jars import class_path
from pyritemq.conformance.processes import Child
from pyritemq.protocol.codes import RequestCode, ResponseCode

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyritemq.conformance.servers.cluster import Cluster

WORKERS = Path(__file__).with_name("Workers.java")
STARTED = "started"
START_SECONDS = 60.0
QUICKLY = ("-Drocketmq.client.rebalance.waitInterval=500",)
"""The client looks for a change of its group's members every 20 s unless it is told."""


class Event(NamedTuple):
    """A worker began or ended a message; the body is its number."""

    time_ms: int
    worker: str
    what: str
    queue_id: int
    number: int


class Crew:
    """Workers of one group on one topic."""

    def __init__(self, folder: Path, cluster: Cluster, *, topic: str, mode: str) -> None:
        self._folder = folder
        self._arguments = [cluster.namesrv, f"{mode}_crew", topic, mode]
        self.workers: list[Child] = []

    def hire(self, *, pause_ms: int) -> Child:
        name = f"worker-{len(self.workers)}"
        folder = self._folder / name
        command = ["java", *java_flags(str(folder)), *QUICKLY, "-cp", class_path(), str(WORKERS)]
        worker = Child(name, [*command, *self._arguments, str(pause_ms)], folder=folder)
        self.workers.append(worker)
        return worker

    def close(self) -> None:
        for worker in self.workers:
            worker.kill()
            worker.close()

    def events(self) -> list[Event]:
        """What all of them did, in the order of time."""
        found = [event for worker in self.workers for event in events_of(worker)]
        return sorted(found, key=lambda event: event.time_ms)


def events_of(worker: Child) -> list[Event]:
    """What one said; a line that the kill has cut is none."""
    found = []
    for line in worker.output().splitlines(keepends=True):
        words = line.split()
        if line.endswith("\n") and len(words) == 4 and words[1] in ("begin", "end"):
            found.append(Event(int(words[0]), worker.name, words[1], int(words[2]), int(words[3])))
    return found


def make_topic(cluster: Cluster, topic: str, queues: int) -> Connection:
    """A connection to the broker, which has the topic now."""
    connection = Connection(int(cluster.broker.rpartition(":")[2]))
    fields = {"topic": topic, "defaultTopic": "TBW102", "readQueueNums": queues}
    fields |= {"writeQueueNums": queues, "perm": 6, "topicFilterType": "SINGLE_TAG"}
    fields |= {"topicSysFlag": 0, "order": "false", "attributes": ""}
    reply = connection.call(RequestCode.UPDATE_AND_CREATE_TOPIC, fields)
    assert reply.code == ResponseCode.SUCCESS, reply.remark
    return connection


def send_numbers(connection: Connection, topic: str, queue_id: int, numbers: Iterable[int]) -> None:
    for number in numbers:
        fields = send_fields(topic, queue_id)
        reply = connection.call(RequestCode.SEND_MESSAGE_V2, fields, b"%d" % number)
        assert reply.code == ResponseCode.SUCCESS, reply.remark


def wait_for_count(worker: Child, count: int) -> None:
    """Until a worker has begun so many messages."""
    deadline = time.monotonic() + START_SECONDS
    while sum(event.what == "begin" for event in events_of(worker)) < count:
        assert time.monotonic() < deadline, f"{worker.name} has too little to do"
        time.sleep(0.05)
