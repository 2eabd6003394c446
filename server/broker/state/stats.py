"""What passes through the broker, counted (Java: BrokerStatsManager, StoreStatsService).

The send lane counts a drain with one addition for each topic in it, the pull lanes count a pull
with one; nothing is counted by message.  `tick` is called every second by a background thread: it
keeps the samples that rates are computed from.  Readers (the admin lane, the metrics) take numbers
at any time.

Puts are written by the send lane alone and need no lock.  `_lock` guards what the pull lanes' and
other threads count, for a few additions at a time; nothing is taken while it is held.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from typing import TYPE_CHECKING, NamedTuple

from pyritemq.server.histogram import Histogram

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pyritemq.storage.messages import GetResult, MessageToStore, PutResult

TOPIC_PUT_NUMS = "TOPIC_PUT_NUMS"
TOPIC_PUT_SIZE = "TOPIC_PUT_SIZE"
GROUP_GET_NUMS = "GROUP_GET_NUMS"
GROUP_GET_SIZE = "GROUP_GET_SIZE"
SNDBCK_PUT_NUMS = "SNDBCK_PUT_NUMS"
DLQ_PUT_NUMS = "DLQ_PUT_NUMS"
BROKER_PUT_NUMS = "BROKER_PUT_NUMS"
BROKER_GET_NUMS = "BROKER_GET_NUMS"
BROKER_PUT_NUMS_WITHOUT_SYSTEM_TOPIC = "BROKER_PUT_NUMS_WITHOUT_SYSTEM_TOPIC"
BROKER_GET_NUMS_WITHOUT_SYSTEM_TOPIC = "BROKER_GET_NUMS_WITHOUT_SYSTEM_TOPIC"

# Java's StatsItem: a sample every 10 s, 10 min and hour; so many are kept of each.
MINUTE_STEP_MS, MINUTE_SAMPLES = 10_000, 7
HOUR_STEP_MS, HOUR_SAMPLES = 600_000, 7
DAY_STEP_MS, DAY_SAMPLES = 3_600_000, 25

SECOND_SAMPLES = 601
"""One more than StoreStatsService.MAX_RECORDS_OF_SAMPLING: rates over 10, 60 and 600 seconds."""

PUT_TIME_BOUNDS_MS = (0, 10, 50, 100, 200, 500, 1000, 2000, 3000, 4000, 5000, 10000)
"""Upper bounds of Java's putMessageDistributeTime, before the last, open one."""


SIZE_BOUNDS = (1 << 10, 4 << 10, 512 << 10, 1 << 20, 2 << 20, 4 << 20)
"""Of message sizes, as BrokerMetricsManager has them."""


class Own(NamedTuple):
    """Which messages of a drain the broker put itself: no client sent them just now."""

    first: int
    end: int
    is_delayed: bool = False  # they come out of a delay level


class Received(NamedTuple):
    """Messages that came for a topic, from clients or out of a delay level."""

    topic: str
    is_system: bool
    is_delayed: bool
    nums: int
    size: int
    sizes: Histogram


class Given(NamedTuple):
    """Messages that a group has got from a topic."""

    topic: str
    group: str
    nums: int
    size: int


class _Sample(NamedTuple):
    timestamp: int
    times: int
    nums: int
    size: int


class Rate(NamedTuple):
    """One window of one statistic, as VIEW_BROKER_STATS_DATA shows it."""

    sum: int = 0
    tps: float = 0.0
    avgpt: float = 0.0


class Rates(NamedTuple):
    """A statistic's last minute, hour and day."""

    minute: Rate
    hour: Rate
    day: Rate


class Tally:
    """Messages, bytes and how often they were counted, with the samples of three windows."""

    __slots__ = ("day", "hour", "is_system", "minute", "nums", "size", "times")

    def __init__(self, *, is_system: bool = False) -> None:
        self.is_system = is_system
        self.nums = self.size = self.times = 0
        self.minute: deque[_Sample] = deque(maxlen=MINUTE_SAMPLES)
        self.hour: deque[_Sample] = deque(maxlen=HOUR_SAMPLES)
        self.day: deque[_Sample] = deque(maxlen=DAY_SAMPLES)

    def add(self, nums: int, size: int = 0, times: int = 1) -> None:
        self.nums += nums
        self.size += size
        self.times += times

    def sample(self, window: deque[_Sample], now_ms: int, step_ms: int) -> None:
        if not window:
            window.append(_Sample(now_ms - step_ms, 0, 0, 0))
        window.append(_Sample(now_ms, self.times, self.nums, self.size))

    def rates(self, *, of_size: bool = False) -> Rates:
        return Rates(*(_rate(list(w), of_size=of_size) for w in (self.minute, self.hour, self.day)))


def _rate(window: Sequence[_Sample], *, of_size: bool) -> Rate:
    if not window:
        return Rate()
    first, last = window[0], window[-1]
    total = last.size - first.size if of_size else last.nums - first.nums
    elapsed_ms, times = last.timestamp - first.timestamp, last.times - first.times
    tps = total * 1000.0 / elapsed_ms if elapsed_ms > 0 else 0.0
    return Rate(total, tps, total / times if times > 0 else 0.0)


class _OwnPuts:
    """Messages that the broker put itself."""

    __slots__ = ("nums", "size", "sizes")

    def __init__(self) -> None:
        self.nums = self.size = 0
        self.sizes = Histogram(SIZE_BOUNDS)

    def add(self, size: int) -> None:
        self.nums += 1
        self.size += size
        self.sizes.observe(size)


class Totals(NamedTuple):
    """The whole store at one moment; times are pulls, transferred and puts are messages."""

    timestamp: int
    puts: int
    found_times: int
    miss_times: int
    transferred: int


class Morning(NamedTuple):
    """User messages put and got until a midnight."""

    puts: int = 0
    gets: int = 0


class BrokerStats:
    """All counters of one broker."""

    def __init__(
        self, *, cluster: str, is_system_topic: Callable[[str], bool], now_ms: Callable[[], int]
    ) -> None:
        self._cluster = cluster
        self._is_system_topic = is_system_topic
        self._now_ms = now_ms
        self.boot_timestamp = now_ms()
        self._lock = threading.Lock()
        self._puts: dict[bytes, Tally] = {}
        self._put_sizes: dict[bytes, Histogram] = {}
        self._own: dict[bytes, _OwnPuts] = {}
        self._delayed: dict[bytes, _OwnPuts] = {}
        self._gets: dict[tuple[str, str], Tally] = {}
        self._others: dict[tuple[str, str], Tally] = {}
        self._broker_puts, self._broker_gets = Tally(), Tally()
        self._user_puts, self._user_gets = Tally(), Tally()
        self._found_times = self._miss_times = 0
        self.put_failed_times = 0
        self.put_time_max_ms = 0
        self.put_time_total_ns = 0
        self.put_times = [0] * (len(PUT_TIME_BOUNDS_MS) + 1)
        self._seconds: deque[Totals] = deque([self.totals()], maxlen=SECOND_SAMPLES)
        self._due = {MINUTE_STEP_MS: 0, HOUR_STEP_MS: 0, DAY_STEP_MS: 0}
        self._day = _day_of(self.boot_timestamp)
        self.this_morning = self.yesterday_morning = Morning()

    # -- counting ---------------------------------------------------------------------------------

    def count_puts(
        self,
        messages: Sequence[MessageToStore],
        results: Sequence[PutResult],
        elapsed_ns: int,
        own: Sequence[Own] = (),
    ) -> None:
        """One drain's messages, all put within `elapsed_ns`; on the send lane."""
        if not messages:
            return
        self.put_time_total_ns += elapsed_ns * len(messages)
        self._time_puts(len(messages), elapsed_ns // 1_000_000)
        if not own:
            self._count_topics(messages, results)
            return
        with self._lock:  # `received` subtracts one from the other and must see both
            self._count_topics(messages, results)
            for some in own:
                self._count_own(some, messages, results)

    def _count_topics(
        self, messages: Sequence[MessageToStore], results: Sequence[PutResult]
    ) -> None:
        topics = {message.topic for message in messages}
        if len(topics) == 1:
            self._count_topic(topics.pop(), [result.size for result in results])
            return
        sizes: dict[bytes, list[int]] = {topic: [] for topic in topics}
        for message, result in zip(messages, results, strict=True):
            sizes[message.topic].append(result.size)
        for topic, its_sizes in sizes.items():
            self._count_topic(topic, its_sizes)

    def _count_topic(self, topic: bytes, sizes: list[int]) -> None:
        """A message that was not stored has no size."""
        failed = sizes.count(0)
        self.put_failed_times += failed
        nums = len(sizes) - failed
        if not nums:
            return
        tally = self._puts.get(topic)
        if tally is None:
            is_system = self._is_system_topic(topic.decode())
            tally = self._puts[topic] = Tally(is_system=is_system)
            self._put_sizes[topic] = Histogram(SIZE_BOUNDS)
        size = sum(sizes)
        tally.add(nums, size, nums)
        if max(sizes) <= SIZE_BOUNDS[0]:  # as nearly always: no look at each message
            slots = self._put_sizes[topic].slots
            slots[0] += nums
        else:
            for one in filter(None, sizes):
                self._put_sizes[topic].observe(one)
        self._broker_puts.add(nums)
        if not tally.is_system:
            self._user_puts.add(nums)

    def _count_own(
        self, own: Own, messages: Sequence[MessageToStore], results: Sequence[PutResult]
    ) -> None:
        for index in range(own.first, own.end):
            if results[index].size:
                topic = messages[index].topic
                self._own.setdefault(topic, _OwnPuts()).add(results[index].size)
                if own.is_delayed:
                    self._delayed.setdefault(topic, _OwnPuts()).add(results[index].size)

    def _time_puts(self, count: int, elapsed_ms: int) -> None:
        if elapsed_ms > self.put_time_max_ms:
            self.put_time_max_ms = elapsed_ms
        slot = 0
        while slot < len(PUT_TIME_BOUNDS_MS) and elapsed_ms > PUT_TIME_BOUNDS_MS[slot]:
            slot += 1
        self.put_times[slot] += count

    def count_get(self, group: str, topic: str, result: GetResult) -> None:
        """One pull; on the pull lanes."""
        nums = result.count
        with self._lock:
            if not nums:
                self._miss_times += 1
                return
            self._found_times += 1
            tally = self._gets.get((topic, group))
            if tally is None:
                is_system = self._is_system_topic(topic)
                tally = self._gets[topic, group] = Tally(is_system=is_system)
            tally.add(nums, result.bytes_total)
            self._broker_gets.add(nums)
            if not tally.is_system:
                self._user_gets.add(nums)

    def add(self, name: str, key: str, nums: int = 1) -> None:
        """Any other of Java's statistics, such as SNDBCK_PUT_NUMS by topic@group; any thread."""
        with self._lock:
            tally = self._others.get((name, key))
            if tally is None:
                tally = self._others[name, key] = Tally()
            tally.add(nums)

    def forget_topic(self, topic: str) -> None:
        """A topic was deleted."""
        with self._lock:
            for puts in (self._puts, self._put_sizes, self._own, self._delayed):
                puts.pop(topic.encode(), None)
            for key in [key for key in self._gets if key[0] == topic]:
                del self._gets[key]

    def forget_group(self, group: str) -> None:
        """A group was deleted."""
        with self._lock:
            for key in [key for key in self._gets if key[1] == group]:
                del self._gets[key]

    # -- sampling ---------------------------------------------------------------------------------

    def tick(self) -> None:
        """Take the samples that are due; every second, on one background thread."""
        now_ms = self._now_ms()
        self._seconds.append(self.totals())
        for step_ms, due_ms in self._due.items():
            if now_ms >= due_ms:
                self._due[step_ms] = now_ms + step_ms
                self._sample(step_ms, now_ms)
        today = _day_of(now_ms)
        if today != self._day:
            self._day = today
            self.yesterday_morning = self.this_morning
            self.this_morning = self.now()

    def _sample(self, step_ms: int, now_ms: int) -> None:
        with self._lock:
            tallies = [*self._puts.values(), *self._gets.values(), *self._others.values()]
            tallies += (self._broker_puts, self._broker_gets, self._user_puts, self._user_gets)
        for tally in tallies:
            windows = {
                MINUTE_STEP_MS: tally.minute,
                HOUR_STEP_MS: tally.hour,
                DAY_STEP_MS: tally.day,
            }
            tally.sample(windows[step_ms], now_ms, step_ms)

    # -- reading ----------------------------------------------------------------------------------

    def totals(self) -> Totals:
        """Everything since start."""
        return Totals(
            self._now_ms(),
            self._broker_puts.nums,
            self._found_times,
            self._miss_times,
            self._broker_gets.nums,
        )

    def now(self) -> Morning:
        """User messages since start."""
        return Morning(self._user_puts.nums, self._user_gets.nums)

    def received(self) -> list[Received]:
        """What clients sent and delay levels gave out, by topic."""
        with self._lock:
            found = [self._from_clients(topic, tally) for topic, tally in list(self._puts.items())]
            for topic, own in self._delayed.items():
                is_system = self._puts[topic].is_system
                sizes = own.sizes.copy()
                found.append(Received(topic.decode(), is_system, True, own.nums, own.size, sizes))
        return [one for one in found if one.nums > 0]

    def _from_clients(self, topic: bytes, tally: Tally) -> Received:
        """All puts but our own; the send lane may go on meanwhile, with clients' messages."""
        own = self._own.get(topic) or _OwnPuts()
        sizes = self._put_sizes[topic].copy()
        sizes.slots = [all_ - ours for all_, ours in zip(sizes.slots, own.sizes.slots, strict=True)]
        nums, size = sum(sizes.slots), tally.size - own.size
        sizes.sum = size
        return Received(topic.decode(), tally.is_system, False, nums, size, sizes)

    def given(self) -> list[Given]:
        """What consumers have got, by topic and group."""
        with self._lock:
            gets = list(self._gets.items())
        return [Given(topic, group, one.nums, one.size) for (topic, group), one in gets]

    @property
    def put_size_total(self) -> int:
        return sum(tally.size for tally in list(self._puts.values()))

    def put_time_percentile(self, part: float) -> float:
        """Milliseconds within which this part of the puts was done, by the bounds of the slots."""
        wanted, passed, low = int(sum(self.put_times) * part), 0, 0
        for high, count in zip(PUT_TIME_BOUNDS_MS, self.put_times, strict=False):
            if wanted <= passed + count:
                return low + (high - low) * (wanted - passed) / count if count else float(low)
            passed, low = passed + count, high
        return float(low)

    def before(self, seconds: int) -> tuple[Totals, Totals] | None:
        """The samples of `seconds` ago and of now; None while the broker is younger than that."""
        samples = self._seconds
        return (samples[-seconds - 1], samples[-1]) if len(samples) > seconds else None

    def view(self, name: str, key: str) -> Rates | None:
        """One statistic under Java's name and key; None if nothing was ever counted for it."""
        tally = self._find(name, key)
        return None if tally is None else tally.rates(of_size=name.endswith("_SIZE"))

    def tps_topic_put(self, topic: str) -> float:
        tally = self._puts.get(topic.encode())
        return 0.0 if tally is None else tally.rates().minute.tps

    def tps_group_get(self, group: str, topic: str) -> float:
        tally = self._gets.get((topic, group))
        return 0.0 if tally is None else tally.rates().minute.tps

    def _find(self, name: str, key: str) -> Tally | None:
        if name in (TOPIC_PUT_NUMS, TOPIC_PUT_SIZE):
            return self._puts.get(key.encode())
        if name in (GROUP_GET_NUMS, GROUP_GET_SIZE):
            topic, _, group = key.partition("@")
            return self._gets.get((topic, group))
        whole = self._whole_broker.get(name)
        if whole is not None:
            return whole if key == self._cluster and whole.nums else None
        return self._others.get((name, key))

    @property
    def _whole_broker(self) -> Mapping[str, Tally]:
        return {
            BROKER_PUT_NUMS: self._broker_puts,
            BROKER_GET_NUMS: self._broker_gets,
            BROKER_PUT_NUMS_WITHOUT_SYSTEM_TOPIC: self._user_puts,
            BROKER_GET_NUMS_WITHOUT_SYSTEM_TOPIC: self._user_gets,
        }


def _day_of(now_ms: int) -> tuple[int, int]:
    """The local date: Java's records turn over at local midnight."""
    local = time.localtime(now_ms / 1000)
    return local.tm_year, local.tm_yday
