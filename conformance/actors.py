"""Producers and consumers of the client under test, as a case sees them."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any, Self

from pyritemq.conformance.drivers.link import Driver, DriverBrokenError, DriverError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyritemq.conformance.trial import Trial

Json = dict[str, Any]

RECEIVE_SECONDS = 30.0
QUIET_SECONDS = 1.5
"""How long a case listens for what must not come."""

FROM_FIRST = "CONSUME_FROM_FIRST_OFFSET"
FROM_LAST = "CONSUME_FROM_LAST_OFFSET"
BY_TIME = "CONSUME_FROM_TIMESTAMP"


def message(topic: str, body: str = "", **fields: Any) -> Json:  # noqa: ANN401
    """A message for the driver: tags, keys, flag, delayLevel, properties, bodySize."""
    return {"topic": topic, **({} if "bodySize" in fields else {"body": body}), **fields}


def queue(topic: str, queue_id: int, broker: str = "broker-a") -> Json:
    return {"topic": topic, "brokerName": broker, "queueId": queue_id}


class Actor:
    """One client object in the driver."""

    PREFIX = ""
    ROLE = ""

    def __init__(self, trial: Trial, name: str, via: Driver | None) -> None:
        self.name = name
        self._trial = trial
        self._via = via

    @classmethod
    def _started(cls, trial: Trial, arguments: Json, via: Driver | None) -> Self:
        actor = cls(trial, trial.name(cls.ROLE[0]), via)
        actor.call("start", namesrv=arguments.pop("namesrv", trial.namesrv), **arguments)
        trial.at_end(actor._end)
        return actor

    def call(self, do: str, **arguments: Any) -> Any:  # noqa: ANN401
        named = {self.ROLE: self.name}
        return self._trial.call(f"{self.PREFIX}.{do}", via=self._via, **named, **arguments)

    def shutdown(self) -> None:
        self.call("shutdown")

    def _end(self) -> None:
        # A client that cannot say goodbye must not hide what the case found.
        with contextlib.suppress(DriverError, DriverBrokenError):
            self.shutdown()


class Producer(Actor):
    """A producer; `options` are the client's own properties by name."""

    PREFIX = ROLE = "producer"

    @classmethod
    def start(
        cls,
        trial: Trial,
        *,
        group: str = "",
        via: Driver | None = None,
        options: Json | None = None,
        **more: Any,  # noqa: ANN401 - namesrv, transactional, trace, traceTopic
    ) -> Producer:
        arguments = {"group": group or trial.name("P"), "options": options or {}, **more}
        return cls._started(trial, arguments, via)

    def send(self, topic: str, body: str = "", *, how: Json | None = None, **fields: Any) -> Json:  # noqa: ANN401
        """Send one message and return the client's result; None of it for one-way."""
        sent = self.call("send", message=message(topic, body, **fields), **(how or {}))
        return sent or {}

    def send_many(self, messages: Sequence[Json], **how: Any) -> list[Json]:  # noqa: ANN401
        sent: list[Json] = self.call("sendMany", messages=list(messages), **how)
        return sent

    def send_batch(self, messages: Sequence[Json], **how: Any) -> Json:  # noqa: ANN401
        sent: Json = self.call("sendBatch", messages=list(messages), **how)
        return sent

    def send_in_transaction(self, topic: str, body: str, **properties: str) -> Json:
        """`local` and `check` are commit, rollback or unknown; `check` may list one for each."""
        sent: Json = self.call(
            "sendTransaction", message=message(topic, body, properties=properties)
        )
        return sent

    def checks(self, at_least: int, *, within: float = RECEIVE_SECONDS) -> list[Json]:
        found: list[Json] = self.call(
            "checks",
            **{
                "from": 0,
                "atLeast": at_least,
                "withinMs": int(within * 1000 * self._trial.patience),
            },
        )
        return found

    def view(self, topic: str, msg_id: str) -> Json:
        found: Json = self.call("view", topic=topic, msgId=msg_id)
        return found

    def query(
        self, topic: str, key: str, *, count: int = 32, begin: int = 0, end: int = 2**62
    ) -> list[Json]:
        found: list[Json] = self.call(
            "query", topic=topic, key=key, count=count, begin=begin, end=end
        )
        return found

    def offset(self, which: str, of: Json, **more: Any) -> int:  # noqa: ANN401
        return int(self.call("offset", which=which, queue=of, **more))


class Consumer(Actor):
    """A push consumer, which keeps what it received."""

    PREFIX = ROLE = "consumer"

    @classmethod
    def start(
        cls,
        trial: Trial,
        topic: str,
        expression: str = "*",
        *,
        group: str = "",
        start: str = FROM_FIRST,
        sql: str = "",
        topics: Sequence[Json] = (),
        via: Driver | None = None,
        options: Json | None = None,
        **more: Any,  # noqa: ANN401 - namesrv, mode, trace, traceTopic, replyWith
    ) -> Consumer:
        one: Json = {"topic": topic, **({"sql": sql} if sql else {"expression": expression})}
        arguments: Json = {"group": group or trial.name("G"), "topics": list(topics) or [one]}
        given = {"consumeFromWhere": start, **(options or {})}
        made = cls._started(trial, {**arguments, "options": given, **more}, via)
        made.group = arguments["group"]
        return made

    group = ""

    def received(self, at_least: int, *, within: float = RECEIVE_SECONDS) -> list[Json]:
        """All that came so far, once there is enough of it or the time is over."""
        found: list[Json] = self.call(
            "received",
            **{
                "from": 0,
                "atLeast": at_least,
                "withinMs": int(within * 1000 * self._trial.patience),
            },
        )
        return found

    def quiet(self, count: int, *, within: float = QUIET_SECONDS) -> list[Json]:
        """All that came, after listening for one more than `count`."""
        return self.received(count + 1, within=within)

    def queues(self) -> list[tuple[str, int]]:
        """The queues that it holds, retry topics left out."""
        held = self.call("queues")
        return sorted(
            (one["brokerName"], one["queueId"]) for one in held if "%RETRY%" not in one["topic"]
        )


class LiteConsumer(Actor):
    """A lite pull consumer."""

    PREFIX, ROLE = "lite", "consumer"

    @classmethod
    def start(
        cls,
        trial: Trial,
        topic: str = "",
        expression: str = "*",
        *,
        group: str = "",
        sql: str = "",
        via: Driver | None = None,
        options: Json | None = None,
        **more: Any,  # noqa: ANN401
    ) -> LiteConsumer:
        one: Json = {"topic": topic, **({"sql": sql} if sql else {"expression": expression})}
        given = {"consumeFromWhere": FROM_FIRST, **(options or {})}
        arguments: Json = {"group": group or trial.name("G"), "options": given, **more}
        made = cls._started(trial, {**arguments, "topics": [one] if topic else []}, via)
        made.group = arguments["group"]
        return made

    group = ""

    def poll(self, at_least: int, *, within: float = RECEIVE_SECONDS) -> list[Json]:
        found: list[Json] = self.call(
            "poll", atLeast=at_least, withinMs=int(within * 1000 * self._trial.patience)
        )
        return found

    def queues(self, topic: str) -> list[Json]:
        found: list[Json] = self.call("queues", topic=topic)
        return sorted(found, key=lambda one: (one["brokerName"], one["queueId"]))


class PullConsumer(Actor):
    """The plain pull consumer, which shows each answer of the broker."""

    PREFIX, ROLE = "pull", "consumer"

    @classmethod
    def start(
        cls,
        trial: Trial,
        *,
        group: str = "",
        via: Driver | None = None,
        options: Json | None = None,
        **more: Any,  # noqa: ANN401
    ) -> PullConsumer:
        arguments = {"group": group or trial.name("G"), "options": options or {}, **more}
        made = cls._started(trial, dict(arguments), via)
        made.group = arguments["group"]
        return made

    group = ""

    def pull(
        self,
        of: Json,
        offset: int,
        *,
        expression: str = "*",
        count: int = 32,
        **more: Any,  # noqa: ANN401
    ) -> Json:
        found: Json = self.call(
            "pull", queue=of, offset=offset, expression=expression, count=count, **more
        )
        return found

    def offset(self, which: str, of: Json, **more: Any) -> int:  # noqa: ANN401
        return int(self.call("offset", which=which, queue=of, **more))


def ids(messages: Sequence[Json]) -> list[str]:
    return [one["msgId"] for one in messages]
