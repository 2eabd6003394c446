"""What `pyritemq top` knows: offsets and queues of a cluster, looked at again and again.

Rates come from how far offsets have moved between two looks, so any server will do, ours or Java's,
and none has to count for it.  `look` runs on a trio loop; `compare` is pure.
"""

from __future__ import annotations

import re
from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

import trio

from pyritemq.server.client import ClientError
from pyritemq.server.client_cli import user_groups, user_topics

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Mapping

    from pyritemq.server.client import Client

LOOKED_AT_MAX = 200
"""Topics and groups in one look: each costs a request, and nobody reads more lines than that."""

AT_ONCE = 8
_QUEUE_SIZE = re.compile(r"(\w+?)(?:ThreadPool)?QueueSize")


class Topic(NamedTuple):
    queues: int
    kept: int
    end: int  # sum of the queues' ends: how many messages ever came


class Group(NamedTuple):
    members: int
    lag: int
    consumed: Mapping[str, int]  # by topic, the sum of the queues' offsets


class LaneDepth(NamedTuple):
    queued: int
    capacity: int


class Look(NamedTuple):
    """A cluster at one moment; `seconds` is a clock's."""

    seconds: float
    topics: Mapping[str, Topic]
    groups: Mapping[str, Group]
    lanes: Mapping[tuple[str, str], LaneDepth]  # by broker and thread pool
    left_out: int = 0


class TopicLine(NamedTuple):
    name: str
    queues: int
    kept: int
    in_tps: float
    out_tps: float


class GroupLine(NamedTuple):
    name: str
    members: int
    lag: int
    tps: float


class LaneLine(NamedTuple):
    broker: str
    lane: str
    queued: int
    capacity: int


class View(NamedTuple):
    """What is shown, busiest first."""

    topics: list[TopicLine]
    groups: list[GroupLine]
    lanes: list[LaneLine]
    left_out: int


def compare(before: Look, now: Look) -> View:
    """Rates between two looks; what is new, or was reset, has none yet."""
    seconds = max(now.seconds - before.seconds, 0.001)
    out: dict[str, float] = defaultdict(float)
    groups = []
    for name, group in now.groups.items():
        old = before.groups[name].consumed if name in before.groups else {}
        rates = {
            topic: max(0, end - old.get(topic, end)) / seconds
            for topic, end in group.consumed.items()
        }
        for topic, rate in rates.items():
            out[topic] += rate
        groups.append(GroupLine(name, group.members, group.lag, sum(rates.values())))
    topics = []
    for name, (queues, kept, end) in now.topics.items():
        old_end = before.topics[name].end if name in before.topics else end
        in_tps = max(0, end - old_end) / seconds
        topics.append(TopicLine(name, queues, kept, in_tps, out[name]))
    topics.sort(key=lambda line: (-line.in_tps - line.out_tps, -line.kept, line.name))
    groups.sort(key=lambda line: (-line.tps, -line.lag, line.name))
    lanes = [LaneLine(broker, lane, *depth) for (broker, lane), depth in now.lanes.items()]
    lanes.sort(key=lambda line: (-line.queued, line.broker, line.lane))
    return View(topics, groups, lanes, now.left_out)


async def look(client: Client) -> Look:
    """Ask all brokers.  Raises ClientError if the name server or a broker does not answer."""
    brokers = await client.brokers()
    topics = sorted(await user_topics(client, await client.topics()))
    groups = sorted(user_groups(await client.groups()))
    left_out = max(0, len(topics) - LOOKED_AT_MAX) + max(0, len(groups) - LOOKED_AT_MAX)
    found: dict[str, Topic] = {}
    progress: dict[str, Group] = {}
    lanes: dict[tuple[str, str], LaneDepth] = {}

    async def see_topic(name: str) -> None:
        found[name] = await _topic(client, name)

    async def see_group(name: str) -> None:
        progress[name] = await _group(client, name)

    async def see_broker(name: str) -> None:
        for lane, depth in _lanes(await client.runtime(brokers[name])):
            lanes[name, lane] = depth

    await _for_all(topics[:LOOKED_AT_MAX], see_topic)
    await _for_all(groups[:LOOKED_AT_MAX], see_group)
    await _for_all(list(brokers), see_broker)
    return Look(trio.current_time(), found, progress, lanes, left_out)


async def _for_all(names: Iterable[str], work: Callable[[str], Awaitable[None]]) -> None:
    """A few at once; what was deleted meanwhile is left out."""
    limit = trio.CapacityLimiter(AT_ONCE)

    async def one(name: str) -> None:
        async with limit:
            try:
                await work(name)
            except ClientError as error:
                if error.code is None:
                    raise

    async with trio.open_nursery() as nursery:
        for name in names:
            nursery.start_soon(one, name)


async def _topic(client: Client, name: str) -> Topic:
    stats = (await client.topic_stats(name)).values()
    end = sum(one["maxOffset"] for one in stats)
    return Topic(len(stats), end - sum(one["minOffset"] for one in stats), end)


async def _group(client: Client, name: str) -> Group:
    consumed: dict[str, int] = defaultdict(int)
    lag = 0
    for queue, one in (await client.progress(name)).items():
        consumed[queue.topic] += one["consumerOffset"]
        lag += max(0, one["brokerOffset"] - one["consumerOffset"])
    return Group(len(await client.members(name)), lag, dict(consumed))


def _lanes(runtime: Mapping[str, str]) -> Iterable[tuple[str, LaneDepth]]:
    """Thread pools by the names that the runtime information has for them."""
    for key, text in runtime.items():
        named = _QUEUE_SIZE.fullmatch(key)
        if named is not None and text.isdigit():
            capacity = runtime.get(f"{named[1]}ThreadPoolQueueCapacity", "0")
            yield named[1], LaneDepth(int(text), int(capacity) if capacity.isdigit() else 0)
