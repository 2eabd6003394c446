"""Kills a server under load again and again, and holds each restart to what was acknowledged.

A few rounds are part of the test command; the long run is

    python -m pytest -n 0 tests/crash -m "slow or java" -s --rounds 100

Each round: start `pyritemq serve` on the store, check it, load it, kill it with SIGKILL at a random
moment. The seed is printed, so that a failure can be run again with --seed.
"""

from __future__ import annotations

import random
import re
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

from crash.load import (
    GROUP,
    QUEUES,
    TOPIC,
    Acked,
    Committer,
    Connection,
    Producer,
    offset_fields,
)
from integration.wire import pull_fields
from pyritemq.compat import fastjson
from pyritemq.protocol.codes import RequestCode, ResponseCode
from pyritemq.protocol.record import decode_records
from pyritemq.server.store_tools import StoreCheck, guess_sizes, locked
from pyritemq.storage.config import StoreConfig

if TYPE_CHECKING:
    from pathlib import Path

    from pyritemq.server.store_tools import CheckReport

CONNECTIONS = 2
LOAD_SECONDS_MAX = 1.0
BOOT = re.compile(r"The broker\[.*:(\d+)\] boot success")


class ServerProcess:
    """`pyritemq serve` in a process of its own, on these ports or on free ones."""

    def __init__(self, folder: Path, flush: str, ports: tuple[int, int] = (0, 0)) -> None:
        conf = folder / "broker.conf"
        conf.write_text(
            f"flushDiskType={flush}\n"
            "mappedFileSizeCommitLog=4194304\n"
            "mappedFileSizeConsumeQueue=200000\n"
            "flushConsumeQueueThoroughInterval=700\n"
            "flushIntervalConsumeQueue=100\n"
            "flushIntervalCommitLog=100\n"
            "flushConsumerOffsetInterval=100\n"
        )
        command = [sys.executable, "-m", "pyritemq.server", "serve", "-c", str(conf)]
        command += ["--store", str(folder / "store"), "--listen", "127.0.0.1"]
        command += ["--namesrv-port", str(ports[0]), "--broker-port", str(ports[1])]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        self.port = self._wait_until_ready()

    def _wait_until_ready(self) -> int:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            found = BOOT.search(line)
            if found:
                return int(found[1])
        raise AssertionError(f"the server ended with {self._process.wait()} before it was ready")

    def kill(self) -> None:
        self.end(signal.SIGKILL)

    def end(self, signal_number: int) -> None:
        self._process.send_signal(signal_number)
        self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()


class KillRounds:
    """What has been acknowledged over all rounds, and the rounds."""

    def __init__(self, folder: Path, flush: str, seed: int) -> None:
        self._folder = folder
        self._flush = flush
        self._random = random.Random(seed)
        self.acked: dict[tuple[int, int], bytes] = {}
        self._committed = 0
        self.persisted_rounds = 0
        self._persisted: dict[int, int] = {}
        self._checked = dict.fromkeys(range(QUEUES), 0)  # seen again after a restart, up to here

    def run(self, rounds: int) -> None:
        for number in range(rounds):
            server = ServerProcess(self._folder, self._flush)
            try:
                self.check_served(server.port)
                self._load(server, number)
            finally:
                server.kill()
        self.check_all()

    def check_all(self) -> None:
        """Start once more, read everything, stop cleanly."""
        self._checked = dict.fromkeys(range(QUEUES), 0)
        server = ServerProcess(self._folder, self._flush)
        try:
            self.check_served(server.port)
        finally:
            server.end(signal.SIGTERM)

    def _load(self, server: ServerProcess, number: int) -> None:
        """Load the server, kill it while it works, take over what it acknowledged."""
        producers = [Producer(server.port, f"r{number}p{index}") for index in range(CONNECTIONS)]
        for producer in producers:
            producer.start()
        for producer in producers:
            assert producer.busy.wait(20), "no send was answered"
        committer = Committer(server.port, self._committed)
        committer.start()
        # the first round is long enough for offsets to be saved
        shortest = 0 if number else LOAD_SECONDS_MAX / 2
        producers[0].join(self._random.uniform(shortest, LOAD_SECONDS_MAX))
        server.kill()
        for producer in producers:
            producer.join(20)
            assert not producer.refused, producer.refused[:3]
            for acked in producer.acked:
                self._add(acked)
        committer.join(20)
        self._committed = committer.committed
        self._persisted = self._read_offsets()
        self.persisted_rounds += bool(self._persisted)

    def _read_offsets(self) -> dict[int, int]:
        """What the server had saved when it died."""
        path = self._folder / "store" / "config" / "consumerOffset.json"
        table = fastjson.loads(path.read_bytes())["offsetTable"] if path.exists() else {}
        saved = table.get(f"{TOPIC}@{GROUP}", {})
        return {int(queue_id): offset for queue_id, offset in saved.items()}

    def _add(self, acked: Acked) -> None:
        place = (acked.queue_id, acked.queue_offset)
        assert place not in self.acked, f"the offset {place} was given out twice"
        self.acked[place] = acked.body

    def check_served(self, port: int) -> None:
        """Every message that was acknowledged is served, at its offset; the last run reads all."""
        connection = Connection(port)
        try:
            for queue_id, start in self._checked.items():
                served = self._read_queue(connection, queue_id, start)
                for (acked_queue, offset), body in self.acked.items():
                    if acked_queue == queue_id and offset >= start:
                        assert served.get(offset) == body, f"queue {queue_id}, offset {offset}"
                self._checked[queue_id] = start + len(served)
                self._check_offset(connection, queue_id)
        finally:
            connection.close()

    def _check_offset(self, connection: Connection, queue_id: int) -> None:
        """A committed offset is what was saved, or newer, but nothing that nobody committed."""
        if queue_id in self._persisted:
            fields = offset_fields(queue_id)
            reply = connection.call(RequestCode.QUERY_CONSUMER_OFFSET, fields)
            assert reply.code == ResponseCode.SUCCESS, reply.remark
            found = int(reply.ext_fields["offset"])
            assert self._persisted[queue_id] <= found <= self._committed

    def _read_queue(self, connection: Connection, queue_id: int, offset: int) -> dict[int, bytes]:
        bodies: dict[int, bytes] = {}
        while True:
            reply = connection.call(RequestCode.PULL_MESSAGE, pull_fields(TOPIC, queue_id, offset))
            if reply.code != ResponseCode.SUCCESS:
                return bodies
            for record in decode_records(reply.body):
                assert record.queue_offset == offset, f"a gap in queue {queue_id} at {offset}"
                bodies[offset] = record.body
                offset += 1

    def check_store(self) -> CheckReport:
        """ConsumeQueue equals CommitLog; for a store that was stopped."""
        config = StoreConfig(root=self._folder / "store")
        guess_sizes(config)
        with locked(config.root) as disk:
            return StoreCheck(disk, config).run(lambda _: None)
