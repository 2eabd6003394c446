"""QUERY_ASSIGNMENT, SET_MESSAGE_REQUEST_MODE and GET_ALL_MESSAGE_REQUEST_MODE, on the admin lane.

A consumer without client rebalance asks its broker which queues it gets, and whether to pull or to
pop them.  Java: QueryAssignmentProcessor (5.5.0).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from pyritemq.compat import fastjson
from pyritemq.protocol.codes import RequestCode, ResponseCode
from pyritemq.protocol.errors import ProtocolError
from pyritemq.server.broker.pop.allocation import (
    STRATEGIES,
    Queue,
    allocate_to_pop,
    allocate_to_pull,
)
from pyritemq.server.broker.pop.request_modes import POP, PULL, RequestMode
from pyritemq.server.broker.state import names
from pyritemq.server.lanes import Lane
from pyritemq.server.registry import RequestRefused, broker_handlers

if TYPE_CHECKING:
    from pyritemq.protocol.command import Command
    from pyritemq.server.broker.broker import Broker
    from pyritemq.server.registry import Request

BROADCASTING = "BROADCASTING"
CLUSTERING = "CLUSTERING"


class _Question(NamedTuple):
    topic: str
    group: str
    client: str
    strategy: str
    model: str


@broker_handlers.handles(RequestCode.QUERY_ASSIGNMENT, None, lane=Lane.ADMIN)
def query_assignment(broker: Broker, request: Request[None]) -> Command:
    """No assignments at all means: keep what you have.  An empty list means: you get nothing."""
    question = _question(request.command.body)
    mode = _mode(broker, question)
    queues = _share(broker, question, mode)
    if queues is None:
        return request.reply(body=b"{}")
    assignments = [
        {
            "messageQueue": {
                "brokerName": queue.broker_name,
                "queueId": queue.queue_id,
                "topic": queue.topic,
            },
            "mode": mode.mode,
        }
        for queue in queues
    ]
    return request.reply(body=fastjson.dumps({"messageQueueAssignments": assignments}))


def _question(body: bytes | memoryview) -> _Question:
    members = _members(body)
    fields = [
        members.get(name)
        for name in ("topic", "consumerGroup", "clientId", "strategyName", "messageModel")
    ]
    if not all(isinstance(field, str) for field in fields):
        raise ProtocolError(
            "topic, consumerGroup, clientId, strategyName, messageModel: all needed"
        )
    return _Question(*map(str, fields))


def _members(body: bytes | memoryview) -> dict[str, Any]:
    try:
        members = fastjson.loads(bytes(body))
    except fastjson.FastjsonError as error:
        raise ProtocolError(f"the body is not JSON: {error}") from None
    if not isinstance(members, dict):
        raise ProtocolError("the body is not a JSON object")
    return members


def _mode(broker: Broker, question: _Question) -> RequestMode:
    found = broker.pop.modes.find(question.topic, question.group)
    if found is not None:
        return found
    config = broker.config
    mode = config.default_message_request_mode
    if question.topic.startswith(names.RETRY_TOPIC_PREFIX):
        mode = PULL
    share = config.default_pop_share_queue_num if mode == POP else 0
    return RequestMode(question.topic, question.group, mode, share)


def _share(broker: Broker, question: _Question, mode: RequestMode) -> list[Queue] | None:
    queues = broker.pop.routes.queues(question.topic)
    if question.model == BROADCASTING or queues is None:
        return queues
    if question.model != CLUSTERING:
        return None
    if not broker.config.server_load_balancer_enable:
        return queues
    consumers = broker.consumers.get(question.group)
    strategy = STRATEGIES.get(question.strategy)
    if consumers is None or strategy is None:
        return None
    clients = sorted(consumers.client_ids)
    if mode.mode == POP:
        return allocate_to_pop(strategy, queues, clients, question.client, mode.pop_share_queue_num)
    return allocate_to_pull(strategy, queues, clients, question.client)


@broker_handlers.handles(RequestCode.SET_MESSAGE_REQUEST_MODE, None, lane=Lane.ADMIN)
def set_message_request_mode(broker: Broker, request: Request[None]) -> Command:
    try:
        mode = RequestMode.from_json(_members(request.command.body))
    except ValueError as error:
        raise ProtocolError(str(error)) from None
    if mode.topic.startswith(names.RETRY_TOPIC_PREFIX):
        raise RequestRefused(ResponseCode.NO_PERMISSION, "retry topic is not allowed to set mode")
    if mode.topic not in broker.topics:
        raise RequestRefused(ResponseCode.TOPIC_NOT_EXIST, f"topic[{mode.topic}] not exist")
    if broker.groups.find(mode.group) is None:
        raise RequestRefused(
            ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST, "subscription group does not exist"
        )
    broker.pop.modes.set(mode)
    return request.reply()


@broker_handlers.handles(RequestCode.GET_ALL_MESSAGE_REQUEST_MODE, None, lane=Lane.ADMIN)
def get_all_message_request_mode(broker: Broker, request: Request[None]) -> Command:
    return request.reply(body=broker.pop.modes.encode())
