"""PyriteMQ behind proxies: to record what is said to it, or to break it in one way."""

from __future__ import annotations

import shutil
from contextlib import contextmanager
from typing import TYPE_CHECKING

from pyritemq.conformance.mutations import Mutant, Mutation
from pyritemq.conformance.processes import Child, free_broker_port, free_port
from pyritemq.conformance.proxy import Proxy
from pyritemq.conformance.servers import java
from pyritemq.conformance.servers.cluster import pyritemq_command
from pyritemq.conformance.servers.nodes import Node, PyriteServer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from pyritemq.conformance.proxy import Judge
    from pyritemq.conformance.servers.java import ServerProcess
    from pyritemq.conformance.servers.nodes import RunningServers
    from pyritemq.conformance.setup import Setup

LOCAL = "127.0.0.1"


class ProxiedServer(PyriteServer):
    """Clients meet proxies; brokers meet their name server without one."""

    vip = True
    wipes = False
    """Whether a broker that starts again has lost its store."""

    def __init__(self, kind: str, judge: Callable[[str], Judge]) -> None:
        self.kind = kind
        self.addresses: dict[str, str] = {}
        """Of the nodes that were started, by name, as clients see them."""
        self._judge = judge
        self._proxies: list[Proxy] = []
        self._direct: list[str] = []

    def namesrv(self, folder: Path, host: str) -> Node:
        inner, outer = free_port(), free_port()
        command = [*pyritemq_command(), "namesrv", "--port", str(inner)]
        self._direct.append(f"{host}:{inner}")
        self._proxy("namesrv", outer, inner)
        self.addresses["namesrv"] = f"{host}:{outer}"
        return Node(
            "namesrv",
            f"{host}:{outer}",
            lambda: Child("namesrv", command, folder=folder),
            java.NAMESRV_READY,
        )

    def broker(self, folder: Path, name: str, namesrv: str, host: str, setup: Setup) -> Node:
        inner, outer = free_broker_port(), free_broker_port()
        conf = java.write_properties(folder / "broker.conf", setup.settings())
        command = [*pyritemq_command(), "broker", "--namesrv", ";".join(self._direct)]
        command += ["--port", str(inner), "--advertise", f"{host}:{outer}", "--name", name]
        command += ["--store", str(folder / "store"), "--config", str(conf)]
        self._proxy(name, outer, inner)
        self.addresses[name] = f"{host}:{outer}"
        if self.vip:
            self._proxy(name, outer - 2, inner - 2)

        def launch() -> ServerProcess:
            if self.wipes:
                shutil.rmtree(folder / "store", ignore_errors=True)
            return Child(name, command, folder=folder)

        return Node(name, f"{host}:{outer}", launch, java.BROKER_READY)

    @contextmanager
    def started(self, folder: Path, setup: Setup, host: str) -> Iterator[RunningServers]:
        try:
            with super().started(folder, setup, host) as running:
                yield running
        finally:
            for proxy in self._proxies:
                proxy.close()

    def _proxy(self, name: str, outer: int, inner: int) -> None:
        self._proxies.append(Proxy(outer, (LOCAL, inner), self._judge(name)))


class MutantServer(ProxiedServer):
    """Broken in one way."""

    def __init__(self, mutation: Mutation) -> None:
        super().__init__(f"mutant-{mutation.family}", lambda name: Mutant(mutation))
        self.vip = not mutation.no_vip
        self.wipes = mutation.wipes
