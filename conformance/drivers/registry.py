"""The clients that cases are run with: what each is, what builds it, what it lacks or does wrong.

Declared here, next to the drivers, and rendered into docs/conformance.md and the matrix: a feature
that a client has not, and a case that a client fails with the real broker as well, each with the
reason. The driver's hello says which features it has; a test holds both equal.
"""

from __future__ import annotations

import fnmatch
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True)
class Client:
    """One client library in one version."""

    name: str
    library: str
    language: str
    tools: tuple[str, ...]
    """What must be on the path to build or to run its driver."""
    patience: float = 1.0
    """How much longer than Java's its timers are, which nobody can set."""
    lacks: Mapping[str, str] = field(default_factory=dict)
    """Features by name, with the reason."""
    broken: Mapping[str, str] = field(default_factory=dict)
    """Cases (ids or globs) that it fails with the real broker as well, with what it does."""
    unusable: str = ""
    """Why it cannot be run at all: nothing of it is built, every case is skipped with this."""

    def reason_against(self, case_id: str) -> str:
        """Why a case is not run with this client; empty when nothing is known against it."""
        if self.unusable:
            return self.unusable
        for pattern, reason in self.broken.items():
            if fnmatch.fnmatchcase(case_id, pattern):
                return reason
        return ""


NAMESPACED = "shows topics with their namespace before them"
COMPRESSES = "compresses first, and has no limit of its own for what was given"
SILENT_FILTER = "starts, though the broker refused its filter"
NO_CODE = "keeps the code of a refusal to itself"
NO_LITE = "has no lite pull consumer"
NO_QUERY = "cannot look messages up, by key or by id"

CLIENTS = {
    client.name: client
    for client in (
        Client(
            "java-5.5.0", "org.apache.rocketmq:rocketmq-client 5.5.0", "Java", ("java", "javac")
        ),
        Client(
            "java-4.9.8",
            "org.apache.rocketmq:rocketmq-client 4.9.8",
            "Java",
            ("java", "javac"),
            lacks={
                "recall": "came with client 5.4",
                "pop": "came with client 5.0",
                "mqadmin": "is run with 5.5.0",
            },
        ),
        Client(
            "go-2.1.2",
            "github.com/apache/rocketmq-client-go/v2 v2.1.2",
            "Go",
            ("go",),
            patience=2.0,
            lacks={
                "lite": NO_LITE,
                "pull": "its pull consumer takes queues by rebalance and hides the broker's answer",
                "query": NO_QUERY,
                "recall": "has no recall",
                "mqadmin": "is a tool of Java",
                "pop": "has no POP consumer",
            },
            broken={
                "ADMIN-018": "answers a direct consumption with a number where Java has a name",
                "BATCH-001": "tells an empty msgId of a batch; offsetMsgId has one for each",
                "BATCH-005": "puts a delay level into a batch",
                "DLQ-002": "tries an ordered message once more than maxReconsumeTimes says",
                "LIMIT-001": COMPRESSES,
                "LIMIT-015": COMPRESSES,
                "NS-00[13]": NAMESPACED,
                "SEND-016": "leaves an empty body to the broker, which has another code for it",
                "SQL-00[78]": SILENT_FILTER,
                "TAG-007": "has another hash than Java for a tag beyond ASCII, and never matches",
                "TXN-008": "a producer that sent nothing yet knows no broker, so none asks it",
                "TXN-011": "leaves the delay level in the half message, and the broker obeys it",
            },
        ),
        Client(
            "node-3.12.0",
            "npm ali-ons 3.12.0",
            "Node",
            ("node", "npm"),
            patience=2.0,
            lacks={
                "async": "has one way to send: a promise",
                "oneway": "has one way to send: a promise",
                "selector": "takes a sharding key, but no queue that the caller chose",
                "batch": "sends one message at a time",
                "order": "has no listener that holds queues with a lock",
                "transaction": "has no transactional producer",
                "request": "has no request-reply",
                "trace": "writes no trace",
                "vip": "does not know the VIP channel",
                "lite": NO_LITE,
                "pull": "has a push consumer only",
                "query": NO_QUERY,
                "recall": "has no recall",
                "mqadmin": "is a tool of Java",
                "pop": "has no POP consumer",
            },
            broken={
                "ADMIN-01[78]": "does not answer what a broker asks of a consumer",
                "LIMIT-001": COMPRESSES,
                "LIMIT-015": COMPRESSES,
                "NS-00[13]": NAMESPACED,
                "RETRY-003": "takes the place of each copy for the message's id",
                "ROUTE-004": "gives up where a topic has no route, and asks not for the default's",
                "SEND-016": "keeps the broker's code to itself",
                "SQL-00[78]": SILENT_FILTER,
            },
        ),
        Client(
            "python-0.4.4",
            "pip rocketmq 0.4.4, with the C++ client in its wheel",
            "Python",
            (),
            patience=2.0,
            lacks={
                "sql": "subscribes with tags only",
                "transaction": "has no transactional producer",
                "request": "has no request-reply",
                "trace": "writes no trace",
                "namespace": "has no call for a namespace",
                "vip": "has no call for the VIP channel",
                "lite": NO_LITE,
                "pull": "its pull consumer keeps the broker's answer to itself",
                "query": NO_QUERY,
                "recall": "has no recall",
                "mqadmin": "is a tool of Java",
                "pop": "has no POP consumer",
            },
            broken={
                "BATCH-00[13]": "says batch=1, which is not Java's true: one message is stored",
                "BATCH-004": NO_CODE,
                "DELAY-004": "tells a property only to who knows its name",
                "LIMIT-001": NO_CODE,
                "LIMIT-015": NO_CODE,
                "ORDER-003": "takes an ordered listener's failure for success, or ends its process",
                "PUSH-006": "hands over one message at a time, whatever the batch size",
                "RETRY-003": "tells a property only to who knows its name",
                "ROUTE-009": "sends to a topic that may not be written to",
                "SEND-008": "tells a property only to who knows its name",
                "SEND-016": NO_CODE,
                "TIMER-005": NO_CODE,
            },
        ),
    )
}

JAVA_CLIENTS = ("java-5.5.0", "java-4.9.8")
"""The clients that carry the whole catalogue, and the default of a run."""


class UnknownClientError(Exception):
    """There is no driver for a client of that name."""


def client_named(name: str) -> Client:
    """Raises UnknownClientError."""
    try:
        return CLIENTS[name]
    except KeyError:
        known = ", ".join(CLIENTS)
        raise UnknownClientError(f"no driver for client {name!r}; there are {known}") from None


def named(words: str) -> list[str]:
    """Names of clients from a command line; `all` is each of them. Raises UnknownClientError."""
    names = [name.strip() for name in words.split(",") if name.strip()]
    if names == ["all"]:
        return list(CLIENTS)
    return [client_named(name).name for name in names]
