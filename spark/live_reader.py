"""One task's read of live brokers: ranges of queues, pulled with nothing but protocol/.

Several pulls are under way at a time, so that a broker never waits for us; replies are taken in the
order of offsets. What comes must be the range without a gap: a broker passes over messages that
have expired, and whoever asked for them is told.
"""

import time
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa

from pyritemq.protocol.codes import RequestCode, ResponseCode
from pyritemq.protocol.command import Command
from pyritemq.protocol.errors import RecordError
from pyritemq.spark.cluster import Cluster
from pyritemq.spark.decode import Rows, make_batch
from pyritemq.spark.errors import BrokerError, DataLossError
from pyritemq.spark.gather import Positions
from pyritemq.spark.options import SourceOptions
from pyritemq.spark.partitions import ReadPartition
from pyritemq.spark.queues import LIGHT_QUEUE, QueueKey, QueueRange
from pyritemq.spark.record_heads import BadRowError, read_heads
from pyritemq.spark.wire_client import WireClient
from pyritemq.spark.wire_records import record_positions

TOOLS_GROUP: Final = "TOOLS_CONSUMER"  # Java: MixAll.TOOLS_CONSUMER_GROUP; every broker has it
PULL_COUNT: Final = 32  # what a broker returns at most (maxTransferCountOnMessageInMemory)
PULLS_AHEAD: Final = 16  # ours: requests under way
BATCH_BYTES: Final = 4 << 20
ATTEMPTS: Final = 3  # ours: times that a broker may fail without progress before the task does
PAUSE_SECONDS: Final = 0.2  # ours: before the second attempt; twice that before the third
WITH_SUBSCRIPTION: Final = 4  # sysFlag of a pull (Java: PullSysFlag)
_NOTHING_THERE: Final = (
    ResponseCode.PULL_RETRY_IMMEDIATELY,
    ResponseCode.PULL_OFFSET_MOVED,
    ResponseCode.PULL_NOT_FOUND,
)


def ask_pull(client: WireClient, key: QueueKey, offset: int, count: int) -> int:
    return client.send(
        RequestCode.PULL_MESSAGE,
        {
            "consumerGroup": TOOLS_GROUP,
            "topic": key.topic,
            "queueId": key.queue_id,
            "queueOffset": offset,
            "maxMsgNums": count,
            "sysFlag": WITH_SUBSCRIPTION,
            "commitOffset": 0,
            "suspendTimeoutMillis": 0,
            "subscription": "*",
            "subVersion": 0,
            "expressionType": "TAG",
        },
    )


def read_live(options: SourceOptions, partition: ReadPartition) -> Iterator[pa.RecordBatch]:
    """A task: pulls each of its ranges to the end."""
    assert options.namesrv is not None
    with Cluster(options.namesrv, timeout_ms=options.timeout_ms) as cluster:
        for each in partition.ranges:
            yield from _RangePull(options, cluster, each).batches()


@dataclass(slots=True)
class _Asked:
    """A request under way for [start, end)."""

    opaque: int
    start: int
    end: int


@dataclass(slots=True)
class _Piece:
    """A reply's records: by the broker's word, messages [start, end)."""

    start: int
    end: int
    records: bytes


class _RangePull:
    """Pulls one range."""

    def __init__(self, options: SourceOptions, cluster: Cluster, each: QueueRange) -> None:
        self._options = options
        self._cluster = cluster
        self._range = each
        self._done = each.start

    def batches(self) -> Iterator[pa.RecordBatch]:
        held: list[_Piece] = []
        size = 0
        for piece in self._pieces():
            held.append(piece)
            size += len(piece.records)
            if size >= BATCH_BYTES:
                yield self._decode(held)
                held, size = [], 0
        if held:
            yield self._decode(held)

    # -- the wire -----------------------------------------------------------------------------

    def _pieces(self) -> Iterator[_Piece]:
        """Goes on where it was after a connection broke or a broker was busy."""
        attempts = 0
        while self._done < self._range.end:
            before = self._done
            address = self._cluster.address(self._range.key)
            try:
                yield from self._pull(self._cluster.client(address))
            except BrokerError:
                self._cluster.drop(address)
                attempts = 1 if self._done > before else attempts + 1
                if attempts >= ATTEMPTS:
                    raise
                time.sleep(PAUSE_SECONDS * attempts)
                self._cluster.route(self._range.key.topic)

    def _pull(self, client: WireClient) -> Iterator[_Piece]:
        key, end = self._range.key, self._range.end
        ahead: deque[_Asked] = deque()
        next_offset = self._done
        while self._done < end:
            while len(ahead) < PULLS_AHEAD and next_offset < end:
                stop = min(next_offset + PULL_COUNT, end)
                opaque = ask_pull(client, key, next_offset, stop - next_offset)
                ahead.append(_Asked(opaque, next_offset, stop))
                next_offset = stop
            asked = ahead.popleft()
            reply = client.receive(asked.opaque)
            self._done = self._after(client, asked, reply)
            if reply.code == ResponseCode.SUCCESS:
                yield _Piece(asked.start, self._done, bytes(reply.body))
            if self._done < asked.end:  # the broker returned fewer: ask for the rest, first of all
                opaque = ask_pull(client, key, self._done, asked.end - self._done)
                ahead.appendleft(_Asked(opaque, self._done, asked.end))
            while ahead and ahead[0].end <= self._done:  # a gap was jumped over
                client.receive(ahead.popleft().opaque)
            next_offset = max(next_offset, self._done)

    def _after(self, client: WireClient, asked: _Asked, reply: Command) -> int:
        """The offset behind what this reply covers. Raises DataLossError and BrokerError."""
        if reply.code != ResponseCode.SUCCESS and reply.code not in _NOTHING_THERE:
            raise client.refused(RequestCode.PULL_MESSAGE, reply)
        try:
            following = int(reply.ext_fields["nextBeginOffset"])
        except (KeyError, ValueError):
            raise BrokerError(f"{client.address} does not tell where {asked.start} ends") from None
        if reply.code == ResponseCode.SUCCESS:
            if following <= asked.start:
                raise BrokerError(f"{client.address} does not get on with {self._range.key}")
            return following
        if following <= asked.start:  # not there, and nothing behind it either
            following = self._range.end
        self._lost(asked.start, min(following, self._range.end))
        return following

    def _lost(self, start: int, end: int) -> None:
        if self._options.fail_on_data_loss:
            raise DataLossError(
                f"messages {start} to {end - 1} of {self._range.key} are gone from their broker "
                "(failOnDataLoss=false passes over them)"
            )

    # -- records ------------------------------------------------------------------------------

    def _decode(self, pieces: list[_Piece]) -> pa.RecordBatch:
        key = self._range.key
        try:
            body = b"".join(piece.records for piece in pieces)
            positions, sizes = record_positions(body)
            data = np.frombuffer(body, np.uint8)
            heads = read_heads(data, positions, sizes, None)
            offsets = self._offsets(pieces, heads["queue_offset"])
            topics = pa.repeat(pa.scalar(key.topic, pa.string()), len(positions))
            rows = Rows(data, heads, topics, key.broker, offsets, self._options.inflate)
            batch = make_batch(rows, self._options.columns)
        except (BadRowError, RecordError) as bad:
            reason = bad.reason if isinstance(bad, BadRowError) else str(bad)
            raise BrokerError(f"a message of {key} cannot be read: {reason}") from bad
        inside = (offsets >= self._range.start) & (offsets < self._range.end)
        return batch if inside.all() else batch.filter(pa.array(inside))

    def _offsets(self, pieces: list[_Piece], told: Positions) -> Positions:
        """Each row's offset in the queue; together they are what was asked for, without a gap."""
        expected = np.concatenate([np.arange(piece.start, piece.end) for piece in pieces])
        if self._range.key.topic.startswith(LIGHT_QUEUE):  # records tell another queue's offsets
            if len(expected) != len(told):
                raise BrokerError(f"messages of {self._range.key} are missing in a broker's answer")
            return expected
        missing = np.setdiff1d(expected, told)
        if len(missing):
            self._lost(int(missing[0]), int(missing[-1]) + 1)
        return told
