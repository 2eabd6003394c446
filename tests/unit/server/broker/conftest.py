"""A broker put together by hand: real tables and handlers, a clock and connections for tests."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from pyritemq.compat.broker_conf import BrokerConfig
from pyritemq.compat.conf.settings import HostFacts
from pyritemq.server.broker import processors
from pyritemq.server.broker.filters.table import ConsumerFilterTable
from pyritemq.server.broker.live_config import LiveConfig
from pyritemq.server.broker.state.channels import (
    ConsumerTable,
    ProducerTable,
    notify_consumer_ids_changed,
)
from pyritemq.server.broker.state.events import Events
from pyritemq.server.broker.state.groups import SubscriptionGroupTable
from pyritemq.server.broker.state.offsets import ConsumerOffsetTable
from pyritemq.server.broker.state.queue_locks import QueueLocks
from pyritemq.server.broker.state.queue_mappings import QueueMappingTable
from pyritemq.server.broker.state.stats import BrokerStats
from pyritemq.server.broker.state.topics import TopicTable
from pyritemq.server.broker.timers.service import TimersOff
from pyritemq.server.failures import reply_to_failure
from pyritemq.server.registry import Request, broker_handlers
from pyritemq.storage.config import StoreConfig
from pyritemq.storage.messages import GetResult, GetStatus
from pyritemq.storage.tables import JsonTable

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyritemq.protocol.command import Command

assert processors  # importing the package declares the handlers


class FakeClock:
    """Stands still until told to go on."""

    def __init__(self) -> None:
        self.ms = 1_795_000_000_000

    def now_ms(self) -> int:
        return self.ms

    def monotonic_ns(self) -> int:
        return self.ms * 1_000_000

    def advance(self, seconds: float) -> None:
        self.ms += int(seconds * 1000)


class FakeChannel:
    """Keeps what is posted to it."""

    def __init__(self, remote_address: str = "127.0.0.1:50000") -> None:
        self.remote_address = remote_address
        self.closed = False
        self.posted: list[Command] = []

    def post(self, *commands: Command) -> None:
        self.posted.extend(commands)

    def close(self) -> None:
        self.closed = True


@dataclass
class FakeStore:
    """Queues as lists of store times; (topic, queue_id) -> times."""

    queues: dict[tuple[str, int], list[int]] = field(default_factory=dict)
    min_offsets: dict[tuple[str, int], int] = field(default_factory=dict)
    first_is_old: bool = False
    config: StoreConfig = field(default_factory=lambda: StoreConfig(root=Path("store")))

    def delete_topics(self, topics: Iterable[str]) -> int:
        names = set(topics)
        gone = [key for key in self.queues if key[0] in names]
        for key in gone:
            del self.queues[key]
        return len({topic for topic, _ in gone})

    def min_offset(self, topic: str, queue_id: int) -> int:
        return self.min_offsets.get((topic, queue_id), 0)

    def max_offset(self, topic: str, queue_id: int) -> int:
        return len(self.queues.get((topic, queue_id), ()))

    def get(self, topic: str, queue_id: int, offset: int, *, count_max: int) -> GetResult:
        end = self.max_offset(topic, queue_id)
        status = GetStatus.FOUND if offset < end else GetStatus.NO_MESSAGE_IN_QUEUE
        return GetResult(status, offset + count_max, 0, end, [], count_max, 0, self.first_is_old)

    def offset_by_time(self, topic: str, queue_id: int, timestamp: int, boundary: str) -> int:
        times = self.queues.get((topic, queue_id), [])
        found = [i for i, time in enumerate(times) if time >= timestamp]
        if boundary == "UPPER":
            found = [i for i, time in enumerate(times) if time <= timestamp][-1:]
        return found[0] if found else len(times)

    def earliest_store_time(self, topic: str, queue_id: int) -> int:
        times = self.queues.get((topic, queue_id))
        return times[0] if times else -1

    def store_time_at(self, topic: str, queue_id: int, offset: int) -> int:
        return self.queues[topic, queue_id][offset]


class FakeRegistration:
    """Notes what it was told and how often somebody waited for it."""

    def __init__(self) -> None:
        self.told: list[str] = []
        self.renewed: list[str | None] = []
        self.settled_after: list[int] = []

    def topics_changed(self, topics: list[Any]) -> None:
        self.told.extend(topic.topic_name for topic in topics)

    def renew(self, *, advertised_address: str | None = None) -> None:
        self.renewed.append(advertised_address)

    def settle(self) -> bool:
        self.settled_after.append(len(self.told))
        return True


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def config(tmp_path) -> BrokerConfig:
    properties = {"brokerName": "broker-a", "storePathRootDir": str(tmp_path)}
    host = HostFacts(address="192.0.2.1")
    return BrokerConfig.from_properties(properties, host=host)[0]


@pytest.fixture
def broker(config, clock, tmp_path) -> SimpleNamespace:
    folder = tmp_path / "config"
    registration = FakeRegistration()
    topics = TopicTable(config, JsonTable(folder / "topics.json"), now_ms=clock.now_ms)
    topics.on_change = registration.topics_changed
    return SimpleNamespace(
        config=config,
        clock=clock,
        store=FakeStore(),
        topics=topics,
        groups=SubscriptionGroupTable(
            config, JsonTable(folder / "subscriptionGroup.json"), now_ms=clock.now_ms
        ),
        offsets=ConsumerOffsetTable(JsonTable(folder / "consumerOffset.json"), now_ms=clock.now_ms),
        filters=ConsumerFilterTable(
            config, JsonTable(folder / "consumerFilter.json"), now_ms=clock.now_ms
        ),
        queue_mappings=QueueMappingTable(
            JsonTable(folder / "topicQueueMapping.json"), "broker-a", now_ms=clock.now_ms
        ),
        producers=ProducerTable(clock),
        consumers=ConsumerTable(clock, on_change=notify_consumer_ids_changed),
        queue_locks=QueueLocks(clock),
        registration=registration,
        events=Events(),
        stats=BrokerStats(
            cluster="DefaultCluster", is_system_topic=topics.is_system_topic, now_ms=clock.now_ms
        ),
        live_config=LiveConfig(config, now_ms=clock.now_ms),
        advertised_address="192.0.2.1:10911",
        lanes={},
        cold_data_limits={},
        timers=TimersOff(),
        configured=lambda: None,
    )


@pytest.fixture
def channel() -> FakeChannel:
    return FakeChannel()


@pytest.fixture
def new_channel():
    return FakeChannel


@pytest.fixture
def call(broker, channel):
    """Run a request through its declared header and handler, as a lane does."""
    handlers = broker_handlers.table()

    def run(command: Command, on: FakeChannel = channel) -> Command:
        handler = handlers[command.code]
        request: Request[Any] = Request(command, on, handler, 0)
        try:
            request.header = handler.header and handler.header.decode(command.ext_fields)
            reply = handler.single(broker, request)
        except Exception as error:  # noqa: BLE001 - as the lane does
            reply = reply_to_failure(request, error)
        assert reply is not None
        assert (reply.opaque, reply.is_response) == (command.opaque, True)
        return reply

    return run
