"""Trial: what the body of a case is given, one for each run of a case.

It makes clients with names that nobody else has, checks and says what was expected, keeps a
transcript as evidence, and shuts everything down again. Used by one thread.
"""

from __future__ import annotations

import json
import threading
import time
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING, Any

from pyritemq.conformance import wire as wires
from pyritemq.conformance.actors import Consumer, LiteConsumer, Producer, PullConsumer
from pyritemq.conformance.drivers.build import DriverBuildError
from pyritemq.conformance.drivers.java_build import (
    SPRING,
    SPRING_MAIN,
    SPRING_SET,
    spring_classes,
)
from pyritemq.conformance.drivers.link import Driver, DriverError, UnsupportedError, counted
from pyritemq.conformance.jars import JarsMissingError
from pyritemq.conformance.wire import Wire
from pyritemq.protocol.codes import RequestCode

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from pyritemq.conformance.catalogue import Case
    from pyritemq.conformance.launchers import Launcher
    from pyritemq.conformance.servers.nodes import RunningServers

WITHIN = 30.0
"""How long a thing that should happen may take; a loaded machine is slow, and nothing waits longer
than it must."""

POLL_SECONDS = 0.05
TRANSCRIPT_MAX = 80
SHOWN_MAX = 1500

_next_name = counted("")


class CheckFailedError(Exception):
    """A case found something other than it asserts."""

    def __init__(self, what: str, expected: object, got: object) -> None:
        super().__init__(f"{what}: expected {shown(expected)}, got {shown(got)}")
        self.what, self.expected, self.got = what, shown(expected), shown(got)


class SkipCase(Exception):  # noqa: N818 - not an error
    """The case cannot be run here; the message says why."""


def shown(value: object) -> str:
    text = value if isinstance(value, str) else repr(value)
    return text if len(text) <= SHOWN_MAX else f"{text[:SHOWN_MAX]}… ({len(text)} characters)"


class Trial:
    """One run of one case with one client on one set of servers."""

    def __init__(
        self,
        case: Case,
        *,
        driver: Driver | None,
        servers: RunningServers,
        launcher: Launcher,
        folder: Path,
        patience: float = 1.0,
    ) -> None:
        self.case = case
        self.patience = patience
        """Of each wait, how much is waited: less where a failure is what is looked for."""
        self.servers = servers
        self.namesrv = servers.namesrv
        self.folder = folder
        self.transcript: list[str] = []
        self._driver = driver
        self._launcher = launcher
        self._stack = ExitStack()
        self._label = f"{case.id}-{_next_name()}".replace("-", "_")
        self._began = time.monotonic()
        self._lock = threading.Lock()

    # Names and servers

    def name(self, kind: str = "n") -> str:
        """A name for a topic or a group that no other run has."""
        return f"{kind}_{self._label}_{_next_name()}"

    def topic(self, queues: int = 4, *, perm: int = 6, broker: int | None = None) -> str:
        """A new topic on every broker (or on one), with its route known to every name server."""
        topic = self.name("T")
        nodes = self.servers.brokers if broker is None else [self.servers.brokers[broker]]
        for node in nodes:
            self.create_topic(node.address, topic, queues, perm=perm)
        wanted = len(nodes)
        for address in self.namesrv.split(";"):
            look = partial(self._queues, address, topic)
            self.eventually(f"the route of {topic}", look, wanted)
        return topic

    def create_topic(
        self, address: str, topic: str, queues: int, *, perm: int = 6, attributes: str = ""
    ) -> None:
        fields = {"topic": topic, "defaultTopic": "TBW102", "readQueueNums": queues}
        fields |= {"writeQueueNums": queues, "perm": perm, "topicFilterType": "SINGLE_TAG"}
        fields |= {"topicSysFlag": 0, "order": "false", "attributes": attributes}
        with Wire(address) as wire:
            reply = wire.call(RequestCode.UPDATE_AND_CREATE_TOPIC, fields)
        self.equal(f"creating topic {topic}", reply.code, 0)

    def _queues(self, namesrv: str, topic: str) -> int:
        with Wire(namesrv) as wire:
            reply = wire.call(RequestCode.GET_ROUTEINFO_BY_TOPIC, {"topic": topic})
        return len(wires.java_json(reply.body)["queueDatas"]) if reply.code == 0 else 0

    def group(self, **settings: object) -> str:
        """A new consumer group on every broker; settings are SubscriptionGroupConfig's."""
        group = self.name("G")
        for node in self.servers.brokers:
            body = json.dumps({"groupName": group, **settings}).encode()
            with Wire(node.address) as wire:
                reply = wire.call(RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, body=body)
            self.equal(f"creating group {group}", reply.code, 0)
        return group

    def wire(self, address: str = "", *, binary: bool = False) -> Wire:
        """Frames to the broker, or to the address."""
        broker = self.servers.broker
        wire = self._stack.enter_context(Wire(address or broker.address, binary=binary))
        wire.broker = broker.name
        return wire

    def namesrv_wire(self, *, binary: bool = False) -> Wire:
        return self.wire(self.namesrv.split(";")[0], binary=binary)

    # Clients

    def producer(self, **how: Any) -> Producer:  # noqa: ANN401
        """A started producer; `how` are the arguments of Producer.start."""
        return Producer.start(self, **how)

    def consumer(self, topic: str = "", expression: str = "*", **how: Any) -> Consumer:  # noqa: ANN401
        """A started push consumer."""
        return Consumer.start(self, topic, expression, **how)

    def lite(self, topic: str = "", expression: str = "*", **how: Any) -> LiteConsumer:  # noqa: ANN401
        return LiteConsumer.start(self, topic, expression, **how)

    def puller(self, **how: Any) -> PullConsumer:  # noqa: ANN401
        return PullConsumer.start(self, **how)

    def call(self, do: str, *, via: Driver | None = None, **arguments: Any) -> Any:  # noqa: ANN401
        """One command to the driver, noted in the transcript."""
        driver = via or self._driver
        if driver is None:
            raise SkipCase("this case has no client")
        self.say(f"→ {do} {json.dumps(arguments, ensure_ascii=False)}")
        try:
            result = driver.call(do, **arguments)
        except DriverError as error:
            self.say(f"← {error.kind} code={error.code} {error.message}")
            raise
        self.say(f"← {json.dumps(result, ensure_ascii=False)}")
        return result if driver.name.startswith("java-") else _as_told(result)

    def another_driver(self, *flags: str) -> Driver:
        """A driver process of this case alone, with more JVM flags."""
        if flags and not self._client_name().startswith("java-"):
            raise UnsupportedError(f"flag {flags[0]}")
        driver = self._launcher.driver(self._client_name(), flags=flags)
        self._stack.callback(driver.close)
        return driver

    def mqadmin(self, *arguments: str) -> str:
        """What one mqadmin command prints; -n is added."""
        driver = self._launcher.shared_driver("java-5.5.0")
        words = [*arguments, "-n", self.namesrv]
        return str(self.call("mqadmin", via=driver, arguments=words))

    def program(self, name: str, *arguments: str, loopback: bool = False) -> Any:  # noqa: ANN401
        """An official class as a program of its own, unmodified. `loopback`: it looks for its name
        server at 127.0.0.1:9876, whatever it is told."""
        programs = self._launcher.programs()
        if loopback and not programs.own_loopback:
            raise SkipCase(f"{name} wants 127.0.0.1:9876 for itself: only in containers")
        running = programs.start(name, namesrv=self.namesrv, arguments=arguments, loopback=loopback)
        self.say(f"program {name} {' '.join(arguments)}")
        return self._stack.enter_context(running)

    def spring_sample(self) -> Any:  # noqa: ANN401
        """Our application on rocketmq-spring-boot-starter; skips where nobody fetched its jars."""
        try:
            classes = spring_classes()
        except (JarsMissingError, DriverBuildError) as error:
            raise SkipCase(f"{error} {SPRING_SET}") from error
        name_server = f"--rocketmq.name-server={self.namesrv}"
        running = self._launcher.programs().start(
            SPRING_MAIN,
            namesrv=self.namesrv,
            client_version=SPRING,
            arguments=[name_server, "--rocketmq.producer.group=spring-producer"],
            classes=classes,
        )
        return self._stack.enter_context(running)

    def _client_name(self) -> str:
        assert self._driver is not None
        return self._driver.name

    # Checks

    def equal(self, what: str, got: object, expected: object) -> None:
        self.say(f"check {what}: {shown(got)}")
        if got != expected:
            raise CheckFailedError(what, expected, got)

    def true(self, what: str, condition: bool, got: object = "") -> None:
        self.say(f"check {what}: {condition}")
        if not condition:
            raise CheckFailedError(what, "that it holds", got or "it does not")

    def refused(
        self, what: str, action: Callable[[], object], *, code: int | None = None, kind: str = ""
    ) -> DriverError:
        """The client must raise, with this code or kind of exception."""
        try:
            got = action()
        except DriverError as error:
            if code is not None:
                self.equal(f"{what}: the code of the refusal", error.code, code)
            if kind and self._client_name().startswith("java-"):  # kinds are Java's classes
                self.equal(f"{what}: the kind of the refusal", error.kind, kind)
            return error
        raise CheckFailedError(what, f"a refusal {code or kind}", got)

    def eventually(
        self, what: str, look: Callable[[], object], expected: object, *, within: float = WITHIN
    ) -> None:
        """Look again and again until it is as expected; what the client refuses may yet come."""
        within *= self.patience
        deadline = time.monotonic() + within
        while (got := _look(look)) != expected:
            if time.monotonic() > deadline:
                raise CheckFailedError(f"{what} within {within:g} s", expected, got)
            time.sleep(POLL_SECONDS)
        self.say(f"check {what}: {shown(got)}")

    def attempt(self, action: Callable[[], object]) -> bool:
        """Whether the client did it; its refusals are no failure of the case."""
        try:
            action()
        except DriverError:
            return False
        return True

    def say(self, line: str) -> None:
        with self._lock:
            stamp = f"{time.monotonic() - self._began:7.3f} "
            self.transcript.append(stamp + shown(line))
            if len(self.transcript) > TRANSCRIPT_MAX:
                del self.transcript[TRANSCRIPT_MAX // 4]  # the beginning tells more than the middle

    def at_end(self, action: Callable[[], object]) -> None:
        self._stack.callback(action)

    def close(self) -> None:
        """Shut the clients down, newest first. Raises what the first failing one raised."""
        self._stack.close()


class _Told(dict[str, Any]):
    """What a client told of one thing; what it does not tell makes the case none for it."""

    def __missing__(self, field: str) -> Any:  # noqa: ANN401
        raise UnsupportedError(f"{field} in what it tells")


def _as_told(result: Any) -> Any:  # noqa: ANN401
    if isinstance(result, list):
        return [_as_told(one) for one in result]
    return _Told(result) if isinstance(result, dict) else result


def _look(look: Callable[[], object]) -> object:
    try:
        return look()
    except DriverError as error:
        return str(error)


def bodies(messages: Iterable[dict[str, Any]]) -> list[str]:
    return [message["body"] for message in messages]
