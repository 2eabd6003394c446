"""Either server on a store folder that is already there: started, asked, stopped or killed.

Unlike conformance's clusters, the store outlives the server and the two may take turns on it, and
the time to ready is the broker's alone: RocketMQ's name server runs beside it all the time.
"""

from __future__ import annotations

import time
from contextlib import ExitStack
from typing import TYPE_CHECKING

from bench.progress import BrokerProbe
from bench.store_fill import QUEUES, TOPIC
from bench.summary import OURS
from pyritemq.conformance.processes import Child, ChildError, free_broker_port, free_port
from pyritemq.conformance.servers import java
from pyritemq.conformance.servers.cluster import java_broker_settings, pyritemq_command
from pyritemq.protocol.codes import RequestCode

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path
    from types import TracebackType

READY_SECONDS = 300.0
STOP_SECONDS = 120.0


class StoreServer:
    """One server on one store folder; start() as often as you like. Leaving it ends all."""

    def __init__(self, name: str, folder: Path, store: Path) -> None:
        self.name = name
        self._folder, self._store = folder, store
        self._namesrv_port, self._port = free_port(), free_broker_port()
        self._stack = ExitStack()
        self._broker: Child | None = None
        if name != OURS:
            child = java.start_namesrv(folder / "namesrv", port=self._namesrv_port)
            self._stack.enter_context(child).wait_for_line(
                java.NAMESRV_READY, timeout=java.READY_SECONDS
            )

    @property
    def namesrv(self) -> str:
        return f"127.0.0.1:{self._namesrv_port}"

    @property
    def broker(self) -> Child:
        if self._broker is None:
            raise ChildError(f"{self.name} was not started")
        return self._broker

    def start(self, properties: Mapping[str, object] | None = None) -> float:
        """Start the broker; the seconds until its ready line."""
        starter = self._start_ours if self.name == OURS else self._start_java
        self._broker = starter(dict(properties or {}))
        self._stack.callback(self._broker.stop)
        self._broker.wait_for_line(java.BROKER_READY, timeout=READY_SECONDS)
        return self._broker.age()

    def _start_ours(self, properties: dict[str, object]) -> Child:
        command = [*pyritemq_command(), "serve", "--store", str(self._store)]
        command += ["--namesrv-port", str(self._namesrv_port), "--broker-port", str(self._port)]
        command += ["--advertise", f"127.0.0.1:{self._port}"]
        if properties:
            config = java.write_properties(self._folder / "ours.conf", properties)
            command += ["--config", str(config)]
        return Child("pyritemq", command, folder=self._folder)

    def _start_java(self, properties: dict[str, object]) -> Child:
        settings = java_broker_settings(self.namesrv, "127.0.0.1", self._port)
        settings |= {"storePathRootDir": self._store, **properties}
        return java.start_broker(self._folder / "broker", properties=settings)

    def stored(self, topic: str = TOPIC, queues: int = QUEUES) -> int:
        with self.probe() as probe:
            return sum(probe.max_offset(topic, queue) for queue in range(queues))

    def create_topic(self, topic: str, queues: int) -> None:
        """As `mqadmin updateTopic` does; the broker tells its name server."""
        with self.probe() as probe:
            probe.ask(
                RequestCode.UPDATE_AND_CREATE_TOPIC,
                {
                    "topic": topic,
                    "defaultTopic": "TBW102",
                    "readQueueNums": str(queues),
                    "writeQueueNums": str(queues),
                    "perm": "6",
                    "topicFilterType": "SINGLE_TAG",
                    "topicSysFlag": "0",
                    "order": "false",
                },
            )

    def probe(self) -> BrokerProbe:
        return BrokerProbe(f"127.0.0.1:{self._port}")

    def stop(self) -> float:
        begin = time.monotonic()
        self.broker.stop(timeout=STOP_SECONDS)
        return time.monotonic() - begin

    def kill(self) -> None:
        self.broker.kill()

    def __enter__(self) -> StoreServer:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._stack.close()
