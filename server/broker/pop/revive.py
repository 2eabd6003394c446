"""Brings back what was popped and not acked in time (Java: PopReviveService).

The timers deliver check points and acks into the queues of the revive topic, a check point a second
before its messages become visible, their acks at that moment.  For each queue:

    1. thread: reads on; check points are kept in memory, acks mark their messages.
    2. thread: a check point is ripe when records with a time of delivery two seconds behind its own
       have been read: then its acks have been read too.  When nothing new comes and the timers are
       not behind, the clock stands in for such records.  After a start nothing is ripe until the
       timers have caught up: what was due meanwhile comes in no order.  (Java does not wait, and
       then delivers again what was acked.)
    3. send lane: what is not acked is appended to the retry topic.
    4. loop: the queue's offset, under REVIVE_GROUP in the consumer offsets, moves behind the ripe
       check points; a restart reads on from there.

A message whose retry cannot be stored gets a check point of its own, for a later time.
"""

from __future__ import annotations

import contextlib
import logging
from typing import TYPE_CHECKING, NamedTuple

import trio

from pyritemq.protocol.errors import RecordError
from pyritemq.protocol.fields import parse_long
from pyritemq.protocol.record import decode_properties, decode_records
from pyritemq.server.broker.delays.rewriting import delay
from pyritemq.server.broker.pop.retry_records import retry_message
from pyritemq.server.broker.pop.retry_topics import normal_topic, pop_retry_topic
from pyritemq.server.broker.pop.revive_records import (
    ACK_TAG,
    BATCH_ACK_TAG,
    CK_TAG,
    REVIVE_GROUP,
    ReviveRecordError,
    check_point,
    decode_ack,
    decode_check_point,
)
from pyritemq.server.broker.state import names
from pyritemq.server.registry import RequestRefused
from pyritemq.storage.errors import StorageError
from pyritemq.storage.messages import STORED, GetStatus

if TYPE_CHECKING:
    from pyritemq.protocol.record import Record
    from pyritemq.server.broker.broker import Broker
    from pyritemq.server.broker.pop.revive_records import Ack, CheckPoint, PopKey
    from pyritemq.storage.messages import MessageToStore, PutResult

logger = logging.getLogger(__name__)

RIPE_MS = 2000
"""Java's ackTimeInterval and a second more."""

QUIET_MS = 3000
"""Java: after so long without news the clock counts."""

READ_COUNT = 32
POINTS_MAX = 100_000
"""Ours: check points of one queue in memory; more are read when these have gone."""

EARLY_ACKS_MAX = 10_000
"""Ours: pops of one queue whose acks wait for them; most are acks that came too late to count."""

BATCH_COUNT_MAX = 256
BATCH_BYTES_MAX = 1 << 20
"""Ours: what one append of retries may hold, so that clients' sends do not wait long behind it."""

RETRY_QUEUE_NUMS = 1
RE_PUT_SECONDS = (10, 20, 30, 60, 120, 180, 240, 300, 360, 420, 480, 540, 600, 1200, 1800, 3600)
RE_PUT_LAST_SECONDS = 7200
"""Java's ckRewriteIntervalsInSeconds: how much later a check point's next attempt is."""

FAILURE_SECONDS = 5


class Retry(NamedTuple):
    """One message on its way to the retry topic."""

    point: CheckPoint
    offset: int
    message: MessageToStore


class Ripe(NamedTuple):
    """What one look at a queue found: retries, and the offset behind which it is done."""

    retries: list[Retry]
    done_offset: int | None


class ReviveQueue:
    """One queue of the revive topic; used by one thread at a time."""

    def __init__(self, broker: Broker, queue_id: int) -> None:
        self._broker = broker
        self._topic = broker.pop.revive_topic
        self.queue_id = queue_id
        self._points: dict[PopKey, CheckPoint] = {}
        self._early_acks: dict[PopKey, list[int]] = {}
        self._end_ms = 0
        self._next_offset: int | None = None
        self._is_in_order = False

    @property
    def point_count(self) -> int:
        return len(self._points)

    def look(self) -> Ripe:
        """Read what is new and take out the first ripe check points, at most a batch."""
        # Asked before reading: what the timers deliver in between is read, or counts as behind.
        now_ms = self._broker.clock.now_ms()
        is_behind = self._broker.timers.is_behind()
        news = self._read()
        if not news and self._end_ms and now_ms - self._end_ms > QUIET_MS and not is_behind:
            self._end_ms = now_ms
        self._is_in_order = self._is_in_order or not is_behind
        return self._take_ripe() if self._is_in_order else Ripe([], None)

    def _read(self) -> bool:
        store = self._broker.store
        if self._next_offset is None:
            self._next_offset = self._first_offset()
        news = False
        while len(self._points) < POINTS_MAX:
            found = store.get(self._topic, self.queue_id, self._next_offset, count_max=READ_COUNT)
            if found.status is GetStatus.FOUND:
                for view in found.slices:
                    self._read_records(view)
                news = True
            elif found.status is GetStatus.OFFSET_TOO_SMALL:
                logger.error("revive log expired unread queue=%d", self.queue_id)
            elif found.status is not GetStatus.MESSAGE_WAS_REMOVING:
                return news
            self._next_offset = found.next_begin_offset
        return True

    def _first_offset(self) -> int:
        """Java commits the offset of the last check point that is done, not the next one."""
        done = self._broker.offsets.query(REVIVE_GROUP, self._topic, self.queue_id)
        queue_min = self._broker.store.min_offset(self._topic, self.queue_id)
        return max(done + 1, queue_min)

    def _read_records(self, view: memoryview) -> None:
        for record in decode_records(view):
            properties = decode_properties(record.properties)
            try:
                self._read_record(record, properties.get("TAGS"))
            except (ReviveRecordError, RecordError) as error:
                logger.error("revive record passed over reason=%s", error)
            with contextlib.suppress(ValueError):
                deliver_ms = parse_long(properties.get("TIMER_DELIVER_MS", ""))
                self._end_ms = max(self._end_ms, deliver_ms)

    def _read_record(self, record: Record, tag: str | None) -> None:
        if tag == CK_TAG:
            point = decode_check_point(record.body)
            point.revive_offset = record.queue_offset
            self._points[point.key] = point
            for offset in self._early_acks.pop(point.key, ()):
                point.ack(offset)
        elif tag in (ACK_TAG, BATCH_ACK_TAG):
            ack = decode_ack(record.body, own_broker=self._broker.config.broker_name)
            self._read_ack(ack)

    def _read_ack(self, ack: Ack) -> None:
        """Timers that catch up after a pause may bring an ack before its check point: it waits."""
        point = self._points.get(ack.key)
        if point is None:
            self._early_acks.setdefault(ack.key, []).extend(ack.offsets)
            while len(self._early_acks) > EARLY_ACKS_MAX:
                del self._early_acks[next(iter(self._early_acks))]
            return
        for offset in ack.offsets:
            if not point.ack(offset):
                logger.error("ack of what was not popped topic=%s offset=%d", ack.topic, offset)

    def _take_ripe(self) -> Ripe:
        retries: list[Retry] = []
        size = 0
        done_offset = None
        for key, point in list(self._points.items()):
            if self._end_ms - point.revive_time <= RIPE_MS:
                break
            if len(retries) >= BATCH_COUNT_MAX or size >= BATCH_BYTES_MAX:
                break
            for retry in self._retries(point):
                retries.append(retry)
                size += len(retry.message.body)
            done_offset = point.revive_offset
            del self._points[key]
        return Ripe(retries, done_offset)

    def _retries(self, point: CheckPoint) -> list[Retry]:
        broker = self._broker
        unacked = point.unacked
        if not unacked:
            return []
        topic = normal_topic(point.topic, point.group)
        if broker.topics.get(topic) is None or broker.groups.find(point.group) is None:
            logger.warning("not revived topic=%s group=%s: deleted", topic, point.group)
            return []
        retry_topic = self._open_retry_topic(point, topic)
        retries: list[Retry] = []
        for offset in unacked:
            record = self._record(point, offset)
            if record is not None:
                queue_id = self._retry_queue_id(retry_topic, record)
                message = retry_message(
                    record,
                    point,
                    retry_topic=retry_topic,
                    queue_id=queue_id,
                    host=broker.store_host,
                )
                with contextlib.suppress(ValueError):
                    # As in Java, whose store looks at each message: a level counts once more.
                    delay(message, level_max=broker.delays.level_max)
                retries.append(Retry(point, offset, message))
        return retries

    def _record(self, point: CheckPoint, offset: int) -> Record | None:
        """None for a message that has expired meanwhile."""
        found = self._broker.store.get(point.topic, point.queue_id, offset, count_max=1)
        if found.status is not GetStatus.FOUND:
            logger.warning(
                "not revived topic=%s queue=%d offset=%d: %s",
                point.topic,
                point.queue_id,
                offset,
                found.status.name,
            )
            return None
        return decode_records(found.slices[0])[0]

    def _open_retry_topic(self, point: CheckPoint, topic: str) -> str:
        broker = self._broker
        retry_topic = point.topic
        if not retry_topic.startswith(names.RETRY_TOPIC_PREFIX):
            v2 = broker.config.enable_retry_topic_v2
            retry_topic = pop_retry_topic(point.topic, point.group, v2=v2)
        if broker.topics.get(retry_topic) is None:
            queue_nums = RETRY_QUEUE_NUMS
            normal = broker.topics.get(topic)
            if broker.config.use_separate_retry_queue and normal is not None:
                queue_nums = normal.write_queue_nums
            broker.topics.create_on_send_back(retry_topic, queue_nums=queue_nums)
            for queue_id in range(queue_nums):
                if broker.offsets.query(point.group, retry_topic, queue_id) < 0:
                    broker.offsets.commit(point.group, retry_topic, queue_id, 0)
        return retry_topic

    def _retry_queue_id(self, retry_topic: str, record: Record) -> int:
        topic = self._broker.topics.get(retry_topic)
        if not self._broker.config.use_separate_retry_queue or topic is None:
            return 0
        return record.queue_id if record.queue_id < topic.write_queue_nums else 0


class Reviver:
    """The job for all queues of the revive topic."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self.queues = [
            ReviveQueue(broker, queue_id) for queue_id in range(broker.config.revive_queue_num)
        ]

    async def run(self) -> None:
        """Revive until cancelled."""
        while True:
            await trio.sleep(self._broker.config.revive_interval / 1000)
            for queue in self.queues:
                try:
                    while await self.revive(queue):
                        pass  # a full batch: there may be more
                except (OSError, StorageError):
                    logger.exception("revive held up queue=%d", queue.queue_id)
                    await trio.sleep(FAILURE_SECONDS)

    async def revive(self, queue: ReviveQueue) -> bool:
        """One look at a queue; whether there may be more at once."""
        retries, done_offset = await trio.to_thread.run_sync(queue.look)
        if retries:
            await self._put(queue, retries)
        if done_offset is not None:
            broker = self._broker
            broker.offsets.commit(
                REVIVE_GROUP, broker.pop.revive_topic, queue.queue_id, done_offset
            )
        return len(retries) >= BATCH_COUNT_MAX

    async def _put(self, queue: ReviveQueue, retries: list[Retry]) -> None:
        results = await self._stored([retry.message for retry in retries])
        failed = [
            retry
            for retry, result in zip(retries, results, strict=True)
            if result.status not in STORED
        ]
        if not failed:
            return
        points = [point for retry in failed if (point := self._later(retry)) is not None]
        while not await self._put_points(queue, points):
            # Nothing can be stored at all: the offset must not move before something can.
            logger.error("check points not stored count=%d", len(points))
            await trio.sleep(FAILURE_SECONDS)

    async def _put_points(self, queue: ReviveQueue, points: list[CheckPoint]) -> bool:
        pop = self._broker.pop
        try:
            messages = [pop.point_message(point, queue.queue_id) for point in points]
        except RequestRefused:
            return False
        return all(result.status in STORED for result in await self._stored(messages))

    def _later(self, retry: Retry) -> CheckPoint | None:
        """A check point for one message whose retry could not be stored."""
        old = retry.point
        times = old.re_put_times
        if times > len(RE_PUT_SECONDS) and self._broker.config.skip_when_ck_re_put_reach_max_times:
            logger.error("retry given up topic=%s offset=%d", old.topic, retry.offset)
            return None
        seconds = RE_PUT_SECONDS[times] if times < len(RE_PUT_SECONDS) else RE_PUT_LAST_SECONDS
        return check_point(
            topic=old.topic,
            group=old.group,
            queue_id=old.queue_id,
            start_offset=retry.offset,
            offsets=[retry.offset],
            pop_time=old.pop_time,
            invisible_time=old.invisible_time + seconds * 1000,
            broker_name=old.broker_name,
            re_put_times=times + 1,
            suspend=old.suspend,
        )

    async def _stored(self, messages: list[MessageToStore]) -> list[PutResult]:
        """Have messages appended and wait for it."""
        done = trio.Event()
        outcome: list[PutResult] = []
        token = trio.lowlevel.current_trio_token()

        def settle(results: list[PutResult]) -> None:  # on the send lane
            outcome.extend(results)
            with contextlib.suppress(trio.RunFinishedError):
                token.run_sync_soon(done.set)

        if not self._broker.internal_sends.put(messages, settle):
            await trio.sleep_forever()  # the server is stopping, and will cancel this
        await done.wait()
        return outcome
