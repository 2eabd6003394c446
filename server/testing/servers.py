"""A name server and a broker for tests: in a thread of this process, or as a child process.

Both listen on free ports of 127.0.0.1, keep their messages in a folder of their own and delete it
at the end.  `reset` empties them in milliseconds; clients stay connected.  All calls block and may
be made from any thread, also from one in which an event loop runs.
"""

from __future__ import annotations

import abc
import concurrent.futures
import contextlib
import http.client
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal, Self

import trio

from pyritemq.compat.broker_conf import BrokerConfig
from pyritemq.compat.namesrv_conf import NamesrvConfig
from pyritemq.protocol.codes import RequestCode
from pyritemq.server.lanes import Lane
from pyritemq.server.lifecycle import RunningBroker, RunningNamesrv
from pyritemq.server.testing.calls import call

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator, Mapping
    from types import TracebackType

    Mode = Literal["thread", "process"]

HOST = "127.0.0.1"
START_SECONDS = 30.0
"""A start takes a fraction of a second; a machine under load gets more before we give up."""
STOP_SECONDS = 30.0
RESET_SECONDS = 30.0
POLL_SECONDS = 0.005

NOTHING: Mapping[str, object] = MappingProxyType({})

TEST_PROPERTIES: Mapping[str, str] = MappingProxyType(
    {
        "brokerName": "broker-a",
        # A test writes a few messages, not gigabytes.
        "mappedFileSizeCommitLog": str(16 << 20),
        "mappedFileSizeConsumeQueue": str(20 * 10_000),
        # Java refuses sends that waited for 200 ms: a busy machine would fail tests at random.
        "waitTimeMillsInSendQueue": "60000",
        # A developer's disk is often nearly full, and a few megabytes do no harm.
        "diskSpaceWarningLevelRatio": "99",
        "diskSpaceCleanForciblyRatio": "99",
        "diskMaxUsedSpaceRatio": "95",
    }
)
"""How a broker for tests differs from one that serves; a caller's properties come on top."""

LOCAL = {"listenPort": "0", "bindAddress": HOST}

PERM_READ_WRITE = 6


class TestingError(Exception):
    """The server did not start, stop or reset; the text says why."""

    __test__ = False  # not a test class, whatever its name begins with


class RocketMQ(abc.ABC):
    """A running server.  A context manager: leaving it stops the server and deletes its store."""

    namesrv: str
    """The name server's address: all that a client needs."""
    broker: str
    """The broker's address, for tools that ask for one."""
    folder: Path
    """Where its files are: gone when it has stopped, but for a store that the caller named."""

    @abc.abstractmethod
    def reset(self) -> None:
        """Drop all topics, groups, offsets and messages.  Raises TestingError."""

    @abc.abstractmethod
    def stop(self) -> None:
        """Stop in order and delete the store; a second call does nothing."""

    def create_topic(self, name: str, *, queues: int = 4, order: bool = False) -> None:
        """Make a topic, or change it.  Raises CallRefused."""
        fields = {
            "topic": name,
            "defaultTopic": "TBW102",
            "readQueueNums": queues,
            "writeQueueNums": queues,
            "perm": PERM_READ_WRITE,
            "topicFilterType": "SINGLE_TAG",
            "topicSysFlag": 0,
            "order": order,
        }
        call(self.broker, RequestCode.UPDATE_AND_CREATE_TOPIC, fields)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()


@contextlib.contextmanager
def rocketmq_server(
    mode: Mode = "thread",
    *,
    properties: Mapping[str, object] = NOTHING,
    store: Path | str | None = None,
) -> Iterator[RocketMQ]:
    """A server for the time of the block.

    `properties` are the broker's, by the names of broker.conf.  `store` names a folder to keep;
    without it there is one for the time of the block.  Raises TestingError.
    """
    make = {"thread": ThreadServer, "process": ChildServer}[mode]
    with make(properties=properties, store=store) as server:
        yield server


class _Folder:
    """Where a server keeps its files: a temporary folder, or one that belongs to the caller."""

    def __init__(self, store: Path | str | None) -> None:
        self._temporary = Path(tempfile.mkdtemp(prefix="pyritemq-testing-"))
        self.store = Path(store) if store is not None else self._temporary / "store"
        self.path = self._temporary

    def delete(self) -> None:
        shutil.rmtree(self._temporary, ignore_errors=True)


class ThreadServer(RocketMQ):
    """A server in a thread of this process: the quickest to start."""

    def __init__(
        self, *, properties: Mapping[str, object] = NOTHING, store: Path | str | None = None
    ) -> None:
        self._folder = _Folder(store)
        self.folder = self._folder.path
        self._properties = {name: str(value) for name, value in properties.items()}
        self._ready: concurrent.futures.Future[None] = concurrent.futures.Future()
        self._stopping = False
        self._token: trio.lowlevel.TrioToken
        self._asked_to_stop: trio.Event
        self._nursery: trio.Nursery
        self._thread = threading.Thread(target=self._run, name="pyritemq-testing", daemon=True)
        self._thread.start()
        try:
            self._ready.result(START_SECONDS)
        except BaseException as error:
            self.stop()
            if isinstance(error, Exception):
                raise TestingError(f"the server did not start: {_reason(error)}") from error
            raise

    def reset(self) -> None:
        try:
            self._in_loop(self._reset).result(RESET_SECONDS)
        except Exception as error:
            raise TestingError(f"the server was not reset: {_reason(error)}") from error

    def stop(self) -> None:
        if self._stopping:
            return
        self._stopping = True
        with contextlib.suppress(trio.RunFinishedError, AttributeError):  # ended, or never began
            self._token.run_sync_soon(self._asked_to_stop.set)
        self._thread.join(STOP_SECONDS)
        if self._thread.is_alive():
            raise TestingError(f"the server did not stop within {STOP_SECONDS:.0f} s")
        self._folder.delete()

    def _run(self) -> None:
        try:
            trio.run(self._serve)
        except BaseException as error:  # noqa: BLE001 - told to whoever waits for the start
            if not self._ready.done():
                self._ready.set_exception(error)

    async def _serve(self) -> None:
        self._token, self._asked_to_stop = trio.lowlevel.current_trio_token(), trio.Event()
        async with trio.open_nursery() as self._nursery:
            # One after the other: a broker that cannot be made takes a running name server down.
            namesrv = RunningNamesrv(self._namesrv_config())
            await self._nursery.start(namesrv.run)
            broker = RunningBroker(self._broker_config(namesrv.address), advertise=None)
            self._servers = namesrv, broker
            self.namesrv, self.broker = namesrv.address, broker.broker.advertised_address
            await self._nursery.start(broker.run)
            self._ready.set_result(None)
            await self._asked_to_stop.wait()
            await broker.stop()
            await broker.closed.wait()
            namesrv.server.stop()
            await namesrv.server.stopped.wait()
            self._nursery.cancel_scope.cancel()

    def _namesrv_config(self) -> NamesrvConfig:
        files = {
            "kvConfigPath": str(self.folder / "kvConfig.json"),
            "configStorePath": str(self.folder / "namesrv.properties"),
        }
        return NamesrvConfig.from_properties(LOCAL | files)[0]

    def _broker_config(self, namesrv: str) -> BrokerConfig:
        settings = {"brokerIP1": HOST, "namesrvAddr": namesrv}
        settings |= {"storePathRootDir": str(self._folder.store)}
        wanted = {**LOCAL, **TEST_PROPERTIES, **settings, **self._properties}
        return BrokerConfig.from_properties(wanted, source="properties")[0]

    async def _reset(self) -> None:
        namesrv, broker = self._servers
        await broker.reset(look_ups=namesrv.server.lanes[Lane.CLIENT])

    def _in_loop(self, work: Callable[[], Awaitable[None]]) -> concurrent.futures.Future[None]:
        """Start `work` on the server's loop; not `trio.from_thread`, which a loop may not call."""
        done: concurrent.futures.Future[None] = concurrent.futures.Future()

        async def run() -> None:
            try:
                await work()
            except Exception as error:  # noqa: BLE001 - raised where it is waited for
                done.set_exception(error)
            else:
                done.set_result(None)

        self._token.run_sync_soon(self._nursery.start_soon, run)
        return done


class ChildServer(RocketMQ):
    """A server as a child process: shares neither memory nor interpreter with the tests."""

    def __init__(
        self, *, properties: Mapping[str, object] = NOTHING, store: Path | str | None = None
    ) -> None:
        self._folder = _Folder(store)
        self.folder = self._folder.path
        self._log = self.folder / "server.log"
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(  # noqa: S603 - our own command
                self._command({**TEST_PROPERTIES, **properties}),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # a Ctrl-C ends the tests, and they end the server
            )
        try:
            self._operations = self._wait_for(r"The operations port is (\S+:\d+)")
            self.namesrv = self._wait_for(r"Name Server boot success.*address (\S+:\d+)")
            self.broker = self._wait_for(r"The broker\[.+, (\S+:\d+)\] boot success")
        except BaseException:
            self.stop()
            raise

    def reset(self) -> None:
        connection = http.client.HTTPConnection(self._operations, timeout=RESET_SECONDS)
        try:
            connection.request("POST", "/reset")
            reply = connection.getresponse()
            said = reply.read().decode("utf-8", "replace").strip()
        except OSError as error:
            raise TestingError(f"the server was not reset: {error}") from error
        finally:
            connection.close()
        if reply.status >= http.client.BAD_REQUEST:
            raise TestingError(f"the server was not reset: {said}")

    def stop(self) -> None:
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
            try:
                self._process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        self._folder.delete()

    def _command(self, properties: Mapping[str, object]) -> list[str]:
        config = self.folder / "broker.conf"
        lines = "".join(f"{name}={value}\n" for name, value in properties.items())
        config.write_text(lines, encoding="utf-8")
        command = [sys.executable, "-m", "pyritemq.server", "serve", "--listen", HOST]
        command += ["--namesrv-port", "0", "--broker-port", "0", "--store", str(self._folder.store)]
        command += ["--metrics-port", "0", "--allow-reset"]
        return [*command, "--config", str(config)]

    def _wait_for(self, pattern: str) -> str:
        deadline, said = time.monotonic() + START_SECONDS, ""
        while time.monotonic() < deadline:
            ended = self._process.poll() is not None  # before reading, so that the last lines count
            said = self._log.read_text(encoding="utf-8", errors="replace")
            if found := re.search(pattern, said):
                return found[1]
            if ended:
                raise TestingError(f"the server did not start: {said.strip()}")
            time.sleep(POLL_SECONDS)
        raise TestingError(f"the server did not start within {START_SECONDS:.0f} s: {said}")


def _reason(error: BaseException) -> str:
    while isinstance(error, BaseExceptionGroup):  # a nursery's wrapping
        error = error.exceptions[0]
    return str(error) or type(error).__name__  # a time-out has no words
