"""The server in a container, for testcontainers-python.

A container learns only after its start under which address and port the world reaches it; the
broker is told then, with the request that `mqadmin updateBrokerConfig` makes.
"""

from __future__ import annotations

import http.client
import re
from typing import Any, Self

from testcontainers.core.container import DockerContainer
from testcontainers.core.wait_strategies import LogMessageWaitStrategy

from pyritemq.protocol.codes import RequestCode
from pyritemq.server.testing.calls import call

IMAGE = "pyritemq/pyritemq:latest"
NAMESRV_PORT, BROKER_PORT, OPERATIONS_PORT = 9876, 10911, 5557
START_SECONDS = 60
RESET_SECONDS = 30.0


class RocketMQContainer(DockerContainer):
    """`with RocketMQContainer() as rocketmq: client.set_namesrv_addr(rocketmq.namesrv)`."""

    def __init__(self, image: str = IMAGE, **kwargs: Any) -> None:  # noqa: ANN401 - passed on
        super().__init__(image, **kwargs)
        self.with_exposed_ports(NAMESRV_PORT, BROKER_PORT, OPERATIONS_PORT)
        command = ["pyritemq", "serve", "--metrics-port", str(OPERATIONS_PORT), "--allow-reset"]
        self.with_command(command)
        ready = LogMessageWaitStrategy(re.compile(r"The broker\[.+\] boot success"))
        self.waiting_for(ready.with_startup_timeout(START_SECONDS))

    @property
    def namesrv(self) -> str:
        """The name server's address, as this machine reaches it."""
        return self._address(NAMESRV_PORT)

    @property
    def broker(self) -> str:
        """The broker's address, as this machine reaches it and as clients are told it."""
        return self._address(BROKER_PORT)

    def start(self) -> Self:
        """Start, and return when clients of this machine can use it."""
        super().start()
        host, _, port = self.broker.rpartition(":")
        change = f"brokerIP1={host}\nlistenPort={port}\n"
        call(self.broker, RequestCode.UPDATE_BROKER_CONFIG, {}, change.encode())
        return self

    def reset(self) -> None:
        """Drop all topics, groups, offsets and messages."""
        host, _, port = self._address(OPERATIONS_PORT).rpartition(":")
        connection = http.client.HTTPConnection(host, int(port), timeout=RESET_SECONDS)
        try:
            connection.request("POST", "/reset")
            reply = connection.getresponse()
            said = reply.read().decode("utf-8", "replace").strip()
        finally:
            connection.close()
        if reply.status >= http.client.BAD_REQUEST:
            raise RuntimeError(f"the server was not reset: {said}")

    def _address(self, port: int) -> str:
        return f"{self.get_container_host_ip()}:{self.get_exposed_port(port)}"
