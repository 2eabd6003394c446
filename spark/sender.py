"""Sends messages of one task: gathered into batches by topic and queue, several under way.

At least once: a batch whose answer did not come is sent again, to another queue where it may, and
both may have been stored. See idempotencyKey in docs/spark.md.
"""

import time
from collections import deque
from dataclasses import dataclass, field
from typing import Final

from pyritemq.compat.java_hash import java_string_hash
from pyritemq.protocol.codes import RequestCode, ResponseCode
from pyritemq.protocol.record import BatchEntry, encode_batch
from pyritemq.spark.cluster import DEFAULT_TOPIC, Cluster
from pyritemq.spark.errors import BrokerError, SparkSourceError
from pyritemq.spark.outgoing import OutMessage, now_ms
from pyritemq.spark.queues import QueueKey
from pyritemq.spark.wire_client import RefusedError, WireClient

BATCH_MESSAGES: Final = 256  # ours
BATCH_BYTES: Final = 512 << 10  # ours: a broker takes 4 MiB (maxMessageSize)
UNDER_WAY: Final = 8  # ours: batches sent to a broker and not yet answered
ATTEMPTS: Final = 3  # as Java's retryTimesWhenSendFailed: once, and twice more
BUSY_SECONDS: Final = 0.1
PRODUCER_GROUP: Final = "pyritemq_spark"
DEFAULT_QUEUES: Final = 4  # Java: defaultTopicQueueNums

_STORED: Final = {
    ResponseCode.SUCCESS,
    ResponseCode.FLUSH_DISK_TIMEOUT,  # stored, only not yet as safe as was asked for
    ResponseCode.FLUSH_SLAVE_TIMEOUT,
    ResponseCode.SLAVE_NOT_AVAILABLE,
}
_TRY_AGAIN: Final = {
    ResponseCode.SYSTEM_BUSY,
    ResponseCode.SERVICE_NOT_AVAILABLE,
    ResponseCode.TOPIC_NOT_EXIST,  # a broker that has not made it yet
}


@dataclass(slots=True)
class _Batch:
    key: QueueKey
    fixed: bool  # the queue was chosen by the row: it is kept when sending again
    messages: list[OutMessage] = field(default_factory=list)
    size: int = 0
    attempts: int = 0
    busy_since: float | None = None


class Sender:
    """Sends for one task; `flush` returns when everything is stored."""

    def __init__(self, namesrv: str, *, timeout_ms: int) -> None:
        self._cluster = Cluster(namesrv, timeout_ms=timeout_ms)
        self._timeout_seconds = timeout_ms / 1000
        self._queues: dict[str, list[QueueKey]] = {}
        self._turn = 0
        self._filling: dict[tuple[QueueKey, bool], _Batch] = {}
        self._spread: dict[str, _Batch] = {}  # by topic: rows that may go to any queue
        self._sent: deque[tuple[WireClient, int, _Batch]] = deque()
        self.stored = 0

    def close(self) -> None:
        self._cluster.close()

    def send(self, message: OutMessage) -> None:
        batch = self._batch_for(message)
        batch.messages.append(message)
        batch.size += len(message.body) + len(message.properties)
        if message.alone or len(batch.messages) >= BATCH_MESSAGES or batch.size >= BATCH_BYTES:
            self._forget(batch)
            self._post(batch)

    def flush(self) -> None:
        for batch in [*self._filling.values(), *self._spread.values()]:
            self._post(batch)
        self._filling.clear()
        self._spread.clear()
        while self._sent:
            self._settle()

    # -- which queue --------------------------------------------------------------------------

    def _batch_for(self, message: OutMessage) -> _Batch:
        topic = message.topic
        free = message.queue_id is None and message.sharding_key is None
        if message.alone:
            return _Batch(self._next(topic) if free else self._chosen(message), not free)
        if free:
            if topic not in self._spread:
                self._spread[topic] = _Batch(self._next(topic), fixed=False)
            return self._spread[topic]
        key = self._chosen(message)
        return self._filling.setdefault((key, True), _Batch(key, fixed=True))

    def _forget(self, batch: _Batch) -> None:
        if self._spread.get(batch.key.topic) is batch:
            del self._spread[batch.key.topic]
        elif self._filling.get((batch.key, True)) is batch:
            del self._filling[batch.key, True]

    def _all(self, topic: str) -> list[QueueKey]:
        if topic not in self._queues:
            route = self._cluster.route(topic)
            if route:
                counts = [(each.broker, each.write_queues) for each in route]
            else:  # the first message makes the topic, where brokers allow it
                route = self._cluster.route(DEFAULT_TOPIC)
                counts = [(each.broker, min(each.write_queues, DEFAULT_QUEUES)) for each in route]
            queues = [
                QueueKey(topic, broker, queue_id)
                for broker, count in sorted(counts)
                for queue_id in range(count)
            ]
            if not queues:
                raise BrokerError(f"topic '{topic}' does not exist, or cannot be written to")
            self._queues[topic] = queues
        return self._queues[topic]

    def _next(self, topic: str) -> QueueKey:
        queues = self._all(topic)
        self._turn += 1
        return queues[self._turn % len(queues)]

    def _chosen(self, message: OutMessage) -> QueueKey:
        queues = self._all(message.topic)
        if message.sharding_key is not None:  # as Java's SelectMessageQueueByHash
            return queues[abs(java_string_hash(message.sharding_key)) % len(queues)]
        found = [key for key in queues if key.queue_id == message.queue_id]
        if not found:
            raise SparkSourceError(f"topic '{message.topic}' has no queue {message.queue_id}")
        return found[0]

    # -- the wire -----------------------------------------------------------------------------

    def _post(self, batch: _Batch) -> None:
        while len(self._sent) >= UNDER_WAY:
            self._settle()
        client: WireClient | None = None
        try:
            client = self._cluster.client(self._cluster.address(batch.key))
            self._sent.append((client, _send(client, batch), batch))
        except RefusedError:
            raise
        except BrokerError as error:
            self._again(batch, error, client)

    def _settle(self) -> None:
        """Take the answer to the oldest batch under way."""
        client, opaque, batch = self._sent.popleft()
        try:
            reply = client.receive(opaque)
        except BrokerError as error:
            self._again(batch, error, client)
            return
        if reply.code in _STORED:
            self.stored += len(batch.messages)
            return
        refused = client.refused(RequestCode.SEND_MESSAGE_V2, reply)
        if reply.code not in _TRY_AGAIN:
            raise refused
        self._wait_out(batch, refused)

    def _wait_out(self, batch: _Batch, refused: RefusedError) -> None:
        """A busy broker has stored nothing: the batch is offered again until the time is up."""
        now = time.monotonic()
        if batch.busy_since is None:
            batch.busy_since = now
        if now - batch.busy_since > self._timeout_seconds:
            raise refused
        time.sleep(BUSY_SECONDS)
        self._post(batch)

    def _again(self, batch: _Batch, error: BrokerError, broken: WireClient | None) -> None:
        """The connection broke: the batch may have been stored, or not."""
        batch.attempts += 1
        if batch.attempts >= ATTEMPTS:
            raise error
        if broken is not None:
            self._cluster.drop(broken.address, broken)
        self._queues.pop(batch.key.topic, None)
        time.sleep(BUSY_SECONDS)
        if not batch.fixed:
            batch.key = self._next(batch.key.topic)
        self._post(batch)


def _send(client: WireClient, batch: _Batch) -> int:
    messages = batch.messages
    many = len(messages) > 1
    fields: dict[str, object] = {
        "a": PRODUCER_GROUP,
        "b": batch.key.topic,
        "c": DEFAULT_TOPIC,
        "d": DEFAULT_QUEUES,
        "e": batch.key.queue_id,
        "f": 0,
        "g": now_ms(),
        "h": 0,
        "i": "UNIQ_KEY\x01" + _uniq(messages[0]) + "\x02" if many else messages[0].properties,
        "j": 0,
        "k": False,
        "m": many,
        "n": batch.key.broker,
    }
    if not many:
        return client.send(RequestCode.SEND_MESSAGE_V2, fields, messages[0].body)
    entries = [BatchEntry(0, each.body, each.properties.encode()) for each in messages]
    return client.send(RequestCode.SEND_BATCH_MESSAGE, fields, encode_batch(entries))


def _uniq(message: OutMessage) -> str:
    return message.properties.partition("UNIQ_KEY\x01")[2].partition("\x02")[0]
