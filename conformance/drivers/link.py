"""The driver protocol: a JSON object a line, on the driver's stdin and stdout.

A driver says hello first, with the features it has. A request is {"id", "do", …}; its reply has the
same id and either "result" or "error". Requests run side by side, so that one driver process serves
many cases at once; replies may come in any order.
"""

from __future__ import annotations

import itertools
import json
import queue
import threading
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable

HELLO_SECONDS = 60.0
"""A JVM in a container on a busy machine has needed 10."""

UNSUPPORTED = "Unsupported"
"""The type of error by which a driver says that its client has no such call or option."""

CALL_SECONDS = 150.0
"""More than any case lets a client wait."""


class DriverError(Exception):
    """The client under test raised: its exception, with the server's code where it had one."""

    def __init__(self, kind: str, message: str, code: int | None) -> None:
        super().__init__(f"{kind}: {message}")
        self.kind = kind
        self.message = message
        self.code = code


class UnsupportedError(Exception):
    """The client has no such call or option: the case is none for it."""


class DriverBrokenError(Exception):
    """The driver itself ended, did not answer in time, or said something that is not protocol."""


class Channel(Protocol):
    """Lines to and from a driver, wherever it runs."""

    def write(self, line: str) -> None: ...
    def lines(self) -> Any: ...  # noqa: ANN401 - an iterator of str; Protocols cannot be generators
    def close(self) -> None: ...
    def kill(self) -> None: ...
    def log_tail(self) -> str: ...


class Driver:
    """One running driver. Thread-safe: cases on several threads share it."""

    def __init__(self, name: str, channel: Channel) -> None:
        self.name = name
        self._channel = channel
        self._ids = itertools.count(1)
        self._lock = threading.Lock()
        self._waiting: dict[int, queue.SimpleQueue[dict[str, Any] | None]] = {}
        self._hello: queue.SimpleQueue[dict[str, Any] | None] = queue.SimpleQueue()
        self._ended = False
        threading.Thread(target=self._read, name=f"driver {name}", daemon=True).start()
        try:
            # A driver that is quicker than we attach to its container has said it to nobody.
            channel.write(json.dumps({"id": 0, "do": "hello"}))
            hello = self._take(self._hello, HELLO_SECONDS, "say hello")
        except (DriverBrokenError, OSError) as error:
            channel.close()
            raise DriverBrokenError(str(error)) from error
        self.features = frozenset(str(feature) for feature in hello.get("features", ()))

    def call(self, do: str, *, seconds: float = CALL_SECONDS, **arguments: object) -> Any:  # noqa: ANN401
        """Run one command. Raises DriverError for the client's own refusals."""
        number = next(self._ids)
        box: queue.SimpleQueue[dict[str, Any] | None] = queue.SimpleQueue()
        with self._lock:
            if self._ended:
                raise DriverBrokenError(f"{self.name} has ended:\n{self._channel.log_tail()}")
            self._waiting[number] = box
            self._channel.write(json.dumps({"id": number, "do": do, **arguments}))
        try:
            reply = self._take(box, seconds, do)
        finally:
            with self._lock:
                self._waiting.pop(number, None)
        error = reply.get("error")
        if error is not None and error.get("type") == UNSUPPORTED:
            raise UnsupportedError(error.get("message", ""))
        if error is not None:
            raise DriverError(error.get("type", "?"), error.get("message", ""), error.get("code"))
        return reply.get("result")

    @property
    def ended(self) -> bool:
        """Whether its process is gone: nothing can be asked of it any more."""
        with self._lock:
            return self._ended

    def close(self) -> None:
        self._channel.close()

    def kill(self) -> None:
        """SIGKILL: the clients in it say no goodbye to any server."""
        self._channel.kill()

    def log_tail(self) -> str:
        return self._channel.log_tail()

    def _take(
        self, box: queue.SimpleQueue[dict[str, Any] | None], seconds: float, what: str
    ) -> dict[str, Any]:
        try:
            reply = box.get(timeout=seconds)
        except queue.Empty:
            raise DriverBrokenError(f"{self.name} did not {what} within {seconds:g} s") from None
        if reply is None:
            story = self._channel.log_tail()
            raise DriverBrokenError(f"{self.name} ended before it could {what}:\n{story}")
        return reply

    def _read(self) -> None:
        try:
            for line in self._channel.lines():
                self._deliver(line)
        finally:
            with self._lock:
                self._ended = True
                boxes = [self._hello, *self._waiting.values()]
            for box in boxes:
                box.put(None)

    def _deliver(self, line: str) -> None:
        try:
            message = json.loads(line)
        except ValueError:
            return  # a library that prints to stdout in spite of the driver; its log has it
        if "hello" in message:
            self._hello.put(message["hello"])
            return
        with self._lock:
            box = self._waiting.get(message.get("id"))
        if box is not None:
            box.put(message)


def counted(prefix: str) -> Callable[[], str]:
    """Names that no other client of this run has."""
    numbers = itertools.count(1)
    return lambda: f"{prefix}{next(numbers)}"
