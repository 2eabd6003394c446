"""Servers that are broken on purpose: for each family one way, to show that its cases can fail.

A mutation sits in a proxy before PyriteMQ, never in the product. Each names the case that must
fail under it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyritemq.protocol.codes import RequestCode
from pyritemq.protocol.command import Command

if TYPE_CHECKING:
    from collections.abc import Callable

SENDS = (RequestCode.SEND_MESSAGE, RequestCode.SEND_MESSAGE_V2, RequestCode.SEND_BATCH_MESSAGE)
PULLS = (RequestCode.PULL_MESSAGE, RequestCode.LITE_PULL_MESSAGE)
SYSTEM_ERROR, NOT_FOUND, QUERY_NOT_FOUND = 1, 19, 22
COMMIT, ROLLBACK = "8", "12"
RESPONSE = 1


@dataclass(frozen=True)
class Mutation:
    """One way to be wrong. Hooks may change what they are given; giving None drops it."""

    family: str
    what: str
    case: str
    """The case that must fail."""
    request: Callable[[Command], Command | None] | None = None
    reply: Callable[[Command, Command], Command | None] | None = None
    push: Callable[[Command], Command | None] | None = None
    wipes: bool = False
    """A restarted broker has lost its store."""
    no_vip: bool = False


class Mutant:
    """A mutation as the judge of a proxy."""

    def __init__(self, mutation: Mutation) -> None:
        self._mutation = mutation

    def request(self, command: Command) -> Command | None:
        hook = self._mutation.request
        return command if hook is None else hook(command)

    def reply(self, request: Command, reply: Command) -> Command | None:
        hook = self._mutation.reply
        return reply if hook is None else hook(request, reply)

    def push(self, command: Command) -> Command | None:
        hook = self._mutation.push
        return command if hook is None else hook(command)


def _on(
    codes: tuple[int, ...], change: Callable[[Command], Command | None]
) -> Callable[[Command, Command], Command | None]:
    """A reply hook for requests with one of the codes."""
    return lambda request, reply: change(reply) if request.code in codes else reply


def _asking(
    codes: tuple[int, ...], change: Callable[[Command], Command | None]
) -> Callable[[Command], Command | None]:
    return lambda command: change(command) if command.code in codes else command


def _added(field: str, more: int) -> Callable[[Command], Command]:
    def change(command: Command) -> Command:
        if field in command.ext_fields:
            command.ext_fields[field] = str(int(command.ext_fields[field]) + more)
        return command

    return change


def _set(field: str, value: str) -> Callable[[Command], Command]:
    def change(command: Command) -> Command:
        if field in command.ext_fields:
            command.ext_fields[field] = value
        return command

    return change


def _as(code: int) -> Callable[[Command], Command]:
    def change(reply: Command) -> Command:
        reply.code, reply.body = code, b""
        return reply

    return change


def _body(pattern: bytes, by: bytes) -> Callable[[Command], Command]:
    def change(reply: Command) -> Command:
        reply.body = re.sub(pattern, by, bytes(reply.body))
        return reply

    return change


def _accepted(command: Command) -> Command:
    """Answered with success, and not done."""
    return Command(0, opaque=command.opaque, flag=RESPONSE, serialize_type=command.serialize_type)


def _dropped(_: Command) -> None:
    return None


def _without(prefix: str) -> Callable[[Command], Command]:
    """Sends lose the properties whose names begin so."""

    def change(command: Command) -> Command:
        for field in ("i", "properties"):
            text = command.ext_fields.get(field)
            if text is not None:
                kept = [pair for pair in text.split("\x02") if not pair.startswith(prefix)]
                command.ext_fields[field] = "\x02".join(kept)
        return command

    return change


def _swapped(command: Command) -> Command:
    state = command.ext_fields.get("commitOrRollback")
    if state in (COMMIT, ROLLBACK):
        command.ext_fields["commitOrRollback"] = ROLLBACK if state == COMMIT else COMMIT
    return command


def _no_namespace(command: Command) -> Command | None:
    topic = command.ext_fields.get("topic", "")
    if "%" in topic and not topic.startswith("%"):
        command.ext_fields["topic"] = topic.partition("%")[2]
    return command


def _no_trace(command: Command) -> Command | None:
    return None if command.ext_fields.get("b") == "RMQ_SYS_TRACE_TOPIC" else command


def _first_only(command: Command) -> Command:
    """Each message of a batch begins with its length."""
    body = bytes(command.body)
    command.body = body[: int.from_bytes(body[:4], "big")]
    return command


R = RequestCode
MUTATIONS = (
    Mutation(
        "ROUTE",
        "routes with nine queues",
        "ROUTE-001",
        reply=_on(
            (R.GET_ROUTEINFO_BY_TOPIC,), _body(rb'"writeQueueNums":\d+', b'"writeQueueNums":9')
        ),
    ),
    Mutation(
        "REG",
        "who unregisters stays",
        "REG-004",
        request=_asking((R.UNREGISTER_BROKER,), _accepted),
    ),
    Mutation(
        "SEND",
        "offsets that are one too high",
        "SEND-001",
        reply=_on(SENDS, _added("queueOffset", 1)),
    ),
    Mutation(
        "BATCH",
        "of a batch the first message only",
        "BATCH-001",
        request=_asking((R.SEND_BATCH_MESSAGE,), _first_only),
    ),
    Mutation("LIMIT", "refusals turned into success", "LIMIT-002", reply=_on(SENDS, _as(0))),
    Mutation(
        "PULL",
        "the next offset is one too high",
        "PULL-001",
        reply=_on(PULLS, _added("nextBeginOffset", 1)),
    ),
    Mutation(
        "PUSH",
        "nobody is a member of a group",
        "PUSH-001",
        reply=_on((R.GET_CONSUMER_LIST_BY_GROUP,), _as(SYSTEM_ERROR)),
    ),
    Mutation(
        "OFFSET",
        "every group stands at 0",
        "OFFSET-009",
        reply=_on((R.QUERY_CONSUMER_OFFSET,), _set("offset", "0")),
    ),
    Mutation(
        "BACK",
        "times lead one too far",
        "BACK-001",
        reply=_on((R.SEARCH_OFFSET_BY_TIMESTAMP,), _added("offset", 1)),
    ),
    Mutation(
        "LITE",
        "commits are forgotten",
        "LITE-004",
        request=_asking((R.UPDATE_CONSUMER_OFFSET,), _accepted),
    ),
    Mutation("TAG", "a pull finds nothing", "TAG-001", reply=_on(PULLS, _as(NOT_FOUND))),
    Mutation("SQL", "a pull finds nothing", "SQL-001", reply=_on(PULLS, _as(NOT_FOUND))),
    Mutation(
        "ORDER",
        "no queue can be locked",
        "ORDER-001",
        reply=_on((R.LOCK_BATCH_MQ,), _body(rb"\[.*\]", b"[]")),
    ),
    Mutation(
        "DELAY",
        "delay levels are forgotten",
        "DELAY-001",
        request=_asking(SENDS, _without("DELAY")),
    ),
    Mutation(
        "TIMER", "timers are forgotten", "TIMER-002", request=_asking(SENDS, _without("TIMER_"))
    ),
    Mutation(
        "TXN",
        "commit and rollback swapped",
        "TXN-012",
        request=_asking((R.END_TRANSACTION,), _swapped),
    ),
    Mutation(
        "RETRY",
        "what is sent back is lost",
        "RETRY-010",
        request=_asking((R.CONSUMER_SEND_MSG_BACK,), _accepted),
    ),
    Mutation(
        "DLQ",
        "what is sent back is lost",
        "DLQ-003",
        request=_asking((R.CONSUMER_SEND_MSG_BACK,), _accepted),
    ),
    Mutation("POP", "acks are forgotten", "POP-005", request=_asking((R.ACK_MESSAGE,), _accepted)),
    Mutation(
        "RPC",
        "replies are not passed on",
        "RPC-001",
        push=_asking((R.PUSH_REPLY_MESSAGE_TO_CLIENT,), _dropped),
    ),
    Mutation(
        "QUERY", "no key is found", "QUERY-008", reply=_on((R.QUERY_MESSAGE,), _as(QUERY_NOT_FOUND))
    ),
    Mutation("TRACE", "traces are lost", "TRACE-001", request=_asking(SENDS, _no_trace)),
    Mutation(
        "NS",
        "namespaces are cut off",
        "NS-001",
        request=_asking((R.UPDATE_AND_CREATE_TOPIC,), _no_namespace),
    ),
    Mutation(
        "ADMIN",
        "a deleted key is still there",
        "ADMIN-016",
        request=_asking((R.DELETE_KV_CONFIG,), _accepted),
    ),
    Mutation(
        "NAMESRV",
        "the broker goes by another name",
        "NAMESRV-001",
        reply=_on((R.GET_BROKER_CLUSTER_INFO,), _body(rb"broker-a", b"broker-x")),
    ),
    Mutation(
        "CLUSTER",
        "the second broker goes by another name",
        "CLUSTER-003",
        reply=_on((R.GET_ROUTEINFO_BY_TOPIC,), _body(rb"broker-b", b"broker-z")),
    ),
    Mutation("CRASH", "a restart loses the store", "CRASH-003", wipes=True),
    Mutation("SLOW", "a pull finds nothing", "SLOW-004", reply=_on(PULLS, _as(NOT_FOUND))),
    Mutation("FRAME", "unknown requests succeed", "FRAME-004", reply=_on((29999,), _as(0))),
    Mutation(
        "SER",
        "offsets that are one too high",
        "SER-001",
        reply=_on((R.GET_MAX_OFFSET,), _added("offset", 1)),
    ),
    Mutation("VIP", "nobody listens on the VIP port", "VIP-003", no_vip=True),
    Mutation(
        "EXAMPLE",
        "sends are refused",
        "EXAMPLE-006",
        reply=_on(SENDS, _as(SYSTEM_ERROR)),
    ),
    Mutation(
        "BENCH",
        "every topic is empty",
        "BENCH-001",
        reply=_on((R.GET_MAX_OFFSET,), _set("offset", "0")),
    ),
)
