"""The runner, with a driver and a server of this test's own: verdicts, skips and evidence."""

from __future__ import annotations

import json
import queue
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from pyritemq.conformance import catalogue
from pyritemq.conformance.drivers.link import Driver, DriverBrokenError, DriverError
from pyritemq.conformance.drivers.registry import CLIENTS
from pyritemq.conformance.results import FAILED, NOT_APPLICABLE, PASSED, SKIPPED
from pyritemq.conformance.runner import Runner
from pyritemq.conformance.servers.nodes import Node, RunningServers
from pyritemq.conformance.setup import PLAIN, Setup

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from pyritemq.conformance.results import Result
    from pyritemq.conformance.trial import Trial


class EchoChannel:
    """A driver in this process: echoes, refuses what it is told to, or goes silent."""

    def __init__(self) -> None:
        self._lines: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self._lines.put(json.dumps({"hello": {"features": ["send"]}}))

    def write(self, line: str) -> None:
        request = json.loads(line)
        reply: dict[str, Any] = {"id": request["id"], "result": request}
        if request["do"] == "refuse":
            error = {"type": "MQBrokerException", "message": "no", "code": 13}
            reply = {"id": request["id"], "error": error}
        if request["do"] == "recall":
            error = {"type": "Unsupported", "message": "recall"}
            reply = {"id": request["id"], "error": error}
        self._lines.put("no protocol at all")
        self._lines.put(None if request["do"] == "die" else json.dumps(reply))

    def lines(self) -> Iterator[str]:
        while (line := self._lines.get()) is not None:
            yield line

    def close(self) -> None:
        self._lines.put(None)

    kill = close

    def log_tail(self) -> str:
        return "the driver's log"


class Place:
    """A launcher of echo drivers."""

    name, host = "here", "127.0.0.1"

    def __init__(self, client: str = "java-5.5.0") -> None:
        self._driver = Driver(client, EchoChannel())

    def driver(self, client: str, *, flags: Sequence[str] = ()) -> Driver:
        return self._driver

    def shared_driver(self, client: str) -> Driver:
        return self._driver

    def programs(self) -> Any:
        raise NotImplementedError

    def servers(self) -> None:
        return None

    def close(self) -> None:
        self._driver.close()


class Nothing:
    """A server that is only an address."""

    kind, ours = "nothing", False

    def lacks(self, setup: Setup) -> str:
        return "needs 2 brokers" if setup.brokers > 1 else ""

    def versions(self) -> dict[str, str]:
        return {}

    @contextmanager
    def started(self, folder: Path, setup: Setup, host: str) -> Iterator[RunningServers]:
        node = Node("broker-a", "127.0.0.1:1", None)
        yield RunningServers(self.kind, setup, [node], [node])


def verdict(body: Callable[[Trial], None], *, client: str = "java-5.5.0", **changes: Any) -> Result:
    made = replace(catalogue.load()[0], run_with="client", features=("send",), setup=PLAIN)
    case = replace(made, since="4.9.8", alone=False, body=body)
    told: list[Result] = []
    place = Place(client)
    try:
        runner = Runner(Nothing(), place, say=told.append)
        (result,) = runner.run([replace(case, **changes)], [client])
    finally:
        place.close()
    assert told == [result]
    return result


def test_a_case_that_checks_out_has_passed() -> None:
    def body(t: Trial) -> None:
        t.equal("echo", t.call("hello", word="x")["word"], "x")

    assert verdict(body).status == PASSED


def test_a_wrong_answer_is_a_failure_with_what_was_expected_and_said() -> None:
    def body(t: Trial) -> None:
        t.equal("the word", t.call("hello", word="x")["word"], "y")

    result = verdict(body)
    assert result.status == FAILED
    assert result.reason == "the word: expected y, got x"
    assert result.evidence is not None
    assert any("hello" in line for line in result.evidence.transcript)
    assert result.evidence.client_log == "the driver's log"


@pytest.mark.parametrize(
    ("do", "words"), [("refuse", "MQBrokerException: no"), ("die", "ended before it could die")]
)
def test_a_client_that_refuses_or_dies_fails_the_case(do: str, words: str) -> None:
    def body(t: Trial) -> None:
        t.call(do)

    result = verdict(body)
    assert result.status == FAILED
    assert words in result.reason


def test_an_expected_refusal_has_its_code_checked() -> None:
    assert verdict(lambda t: void(t.refused("it", lambda: t.call("refuse"), code=13))).status == (
        PASSED
    )
    result = verdict(lambda t: void(t.refused("it", lambda: t.call("refuse"), code=14)))
    assert result.status == FAILED
    result = verdict(lambda t: void(t.refused("it", lambda: t.call("hello"))))
    assert result.status == FAILED


def void(_: object) -> None:
    """A case has no result."""


@pytest.mark.parametrize(
    ("changes", "status", "reason"),
    [
        ({"alone": True}, SKIPPED, "stops or configures servers"),
        ({"setup": Setup(brokers=2)}, SKIPPED, "needs 2 brokers"),
        ({"since": "6.0.0"}, NOT_APPLICABLE, "since client 6.0.0"),
        ({"features": ("pop",)}, NOT_APPLICABLE, "client has no pop"),
    ],
)
def test_what_cannot_run_here_is_shown_with_its_reason(
    changes: dict[str, Any], status: str, reason: str
) -> None:
    result = verdict(lambda t: None, **changes)
    assert (result.status, reason in result.reason) == (status, True)


def test_stopping_a_server_that_is_not_ours_fails_the_case_and_nothing_else() -> None:
    result = verdict(lambda t: t.servers.broker.kill())
    assert result.status == FAILED
    assert "not ours to stop" in result.reason


def test_a_driver_answers_each_request_and_raises_what_the_client_raised() -> None:
    driver = Driver("echo", EchoChannel())
    assert driver.call("hello", word="x")["word"] == "x"
    with pytest.raises(DriverError) as refusal:
        driver.call("refuse")
    assert refusal.value.code == 13
    driver.close()
    with pytest.raises(DriverBrokenError):
        driver.call("hello", seconds=5)


def test_what_the_client_has_no_call_for_is_not_applicable() -> None:
    def body(t: Trial) -> None:
        t.call("recall")

    result = verdict(body)
    assert (result.status, result.reason) == (NOT_APPLICABLE, "client has no recall")


def test_what_another_client_does_not_tell_is_not_applicable_and_a_failure_with_java() -> None:
    def body(t: Trial) -> None:
        t.call("hello")["queueId"]

    assert verdict(body).status == FAILED
    result = verdict(body, client="go-2.1.2")
    assert result.reason == "client has no queueId in what it tells"
    assert result.status == NOT_APPLICABLE


def test_what_a_client_is_known_to_do_wrong_is_skipped_with_the_reason_unless_it_is_tried(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ran: list[str] = []
    case = replace(
        catalogue.load()[0],
        id="SEND-001",
        run_with="client",
        features=("send",),
        setup=PLAIN,
        alone=False,
        body=lambda t: ran.append(t.case.id),
    )
    broken = replace(CLIENTS["java-5.5.0"], broken={"SEND-*": "sends twice"})
    monkeypatch.setitem(CLIENTS, "java-5.5.0", broken)
    place = Place()
    try:
        (skipped,) = Runner(Nothing(), place, say=print).run([case], ["java-5.5.0"])
        assert (skipped.status, skipped.reason, ran) == (SKIPPED, "client: sends twice", [])
        (tried,) = Runner(Nothing(), place, say=print, try_broken=True).run([case], ["java-5.5.0"])
    finally:
        place.close()
    assert (tried.status, ran) == (PASSED, ["SEND-001"])


class MuteChannel(EchoChannel):
    """A driver that ends before it says anything."""

    def __init__(self) -> None:
        super().__init__()
        self.closed = False
        self._lines = queue.SimpleQueue()
        self._lines.put(None)

    def close(self) -> None:
        self.closed = True


def test_a_driver_that_says_no_hello_is_closed_and_its_log_told() -> None:
    channel = MuteChannel()
    with pytest.raises(DriverBrokenError, match="the driver's log"):
        Driver("go-2.1.2", channel)
    assert channel.closed
