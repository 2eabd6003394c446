"""What only a consumer itself knows: asked of it over its own connection.  Lane ADMIN.

Each of these holds a thread of the lane until the client answers, at most for `CALL_SECONDS`.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from pyritemq.compat import fastjson
from pyritemq.compat.message_id import parse_message_id
from pyritemq.compat.versions import version_name, version_ordinal
from pyritemq.protocol.codes import RequestCode, ResponseCode
from pyritemq.protocol.command import Command
from pyritemq.protocol.headers.admin import (
    ConsumeMessageDirectlyHeader,
    GetConsumerRunningInfoHeader,
    GetConsumerStatusHeader,
)
from pyritemq.server.connection import PeerGone
from pyritemq.server.lanes import Lane
from pyritemq.server.registry import Request, RequestRefused, broker_handlers

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyritemq.server.broker.broker import Broker
    from pyritemq.server.broker.state.channels import Client

logger = logging.getLogger(__name__)

CALL_SECONDS = 10.0
STATUS_SECONDS = 5.0
"""Java's Broker2Client: callClient and getConsumeStatus."""

V3_0_7_SNAPSHOT = version_ordinal("V3_0_7_SNAPSHOT")
V3_1_8_SNAPSHOT = version_ordinal("V3_1_8_SNAPSHOT")


@broker_handlers.handles(
    RequestCode.GET_CONSUMER_RUNNING_INFO, GetConsumerRunningInfoHeader, lane=Lane.ADMIN
)
def get_consumer_running_info(
    broker: Broker, request: Request[GetConsumerRunningInfoHeader]
) -> Command:
    client = _client(broker, request.header.consumer_group, request.header.client_id)
    question = Command(request.command.code, ext_fields=dict(request.command.ext_fields))
    return _forward(request, question, client, request.header.consumer_group)


@broker_handlers.handles(
    RequestCode.CONSUME_MESSAGE_DIRECTLY, ConsumeMessageDirectlyHeader, lane=Lane.ADMIN
)
def consume_message_directly(
    broker: Broker, request: Request[ConsumeMessageDirectlyHeader]
) -> Command:
    """Have one consumer process one message of the store now."""
    asked = request.header
    client = _client(broker, asked.consumer_group, asked.client_id or "")
    question = Command(
        request.command.code,
        ext_fields={**request.command.ext_fields, **_flags(broker, asked)},
        body=_record(broker, asked.msg_id or ""),
    )
    return _forward(request, question, client, asked.consumer_group)


def _flags(broker: Broker, asked: ConsumeMessageDirectlyHeader) -> dict[str, str]:
    flags = {"brokerName": broker.config.broker_name}
    topic = broker.topics.get(asked.topic or "")
    if topic is not None:
        flags["topicSysFlag"] = str(topic.topic_sys_flag)
    group = broker.groups.find(asked.consumer_group)
    if group is not None:
        flags["groupSysFlag"] = str(group.group_sys_flag)
    return flags


def _record(broker: Broker, message_id: str) -> bytes:
    try:
        offset = parse_message_id(message_id).phy_offset
    except ValueError:
        raise RequestRefused(
            ResponseCode.SYSTEM_ERROR, f"the message id {message_id[:80]} cannot be read"
        ) from None
    record = broker.store.record_at(offset)
    if record is None:
        raise RequestRefused(
            ResponseCode.SYSTEM_ERROR, f"can not find message by the offset, {offset}"
        )
    return bytes(record)


@broker_handlers.handles(
    RequestCode.INVOKE_BROKER_TO_GET_CONSUMER_STATUS, GetConsumerStatusHeader, lane=Lane.ADMIN
)
def invoke_broker_to_get_consumer_status(
    broker: Broker, request: Request[GetConsumerStatusHeader]
) -> Command:
    """Where each consumer of a group is in a topic, by its own account."""
    asked = request.header
    group = broker.consumers.get(asked.group)
    if group is None:
        raise RequestRefused(
            ResponseCode.SYSTEM_ERROR,
            f"No Any Consumer online in the consumer group: [{asked.group}]",
        )
    table: dict[str, Any] = {}
    for client in group.clients.values():
        if client.version < V3_0_7_SNAPSHOT:
            raise RequestRefused(
                ResponseCode.SYSTEM_ERROR,
                f"the client does not support this feature. version={version_name(client.version)}",
            )
        if not (asked.client_addr or "").strip() or asked.client_addr == client.client_id:
            status = _status(client, asked)
            if status is not None:
                table[client.client_id] = status
    body = {"consumerTable": table, "messageQueueTable": {}}
    return request.reply(body=fastjson.dumps(body))


def _status(client: Client, asked: GetConsumerStatusHeader) -> Mapping[Any, int] | None:
    """One client's offsets; one that does not answer is left out, as in Java."""
    header = GetConsumerStatusHeader(topic=asked.topic, group=asked.group)
    question = Command(RequestCode.GET_CONSUMER_STATUS_FROM_CLIENT, ext_fields=header.encode())
    try:
        answer = client.channel.call(question, timeout_s=STATUS_SECONDS)
        body = fastjson.loads(answer.body) if answer.body else {}
    except (PeerGone, TimeoutError, ValueError) as error:
        logger.warning("no consumer status client=%s reason=%r", client.client_id, error)
        return None
    if answer.code != ResponseCode.SUCCESS or not isinstance(body, dict):
        return None
    return body.get("messageQueueTable") or {}


def _client(broker: Broker, group: str, client_id: str) -> Client:
    found = broker.consumers.get(group)
    clients = () if found is None else found.clients.values()
    for client in clients:
        if client.client_id == client_id:
            break
    else:
        raise RequestRefused(
            ResponseCode.SYSTEM_ERROR, f"The Consumer <{group}> <{client_id}> not online"
        )
    if client.version < V3_1_8_SNAPSHOT:
        raise RequestRefused(
            ResponseCode.SYSTEM_ERROR,
            f"The Consumer <{client_id}> Version <{version_name(client.version)}> too low to "
            "finish, please upgrade it to V3_1_8_SNAPSHOT",
        )
    return client


def _forward(request: Request[Any], question: Command, client: Client, group: str) -> Command:
    """The client's answer as our own."""
    try:
        answer = client.channel.call(question, timeout_s=CALL_SECONDS)
    except TimeoutError:
        raise RequestRefused(
            ResponseCode.CONSUME_MSG_TIMEOUT,
            f"consumer <{group}> <{client.client_id}> Timeout: RemotingTimeoutException, wait "
            f"response on the channel <{client.channel.remote_address}> timeout, "
            f"{CALL_SECONDS * 1000:.0f}(ms)",
        ) from None
    except PeerGone:
        raise RequestRefused(
            ResponseCode.SYSTEM_ERROR,
            f"invoke consumer <{group}> <{client.client_id}> Exception: "
            f"RemotingSendRequestException, send request to <{client.channel.remote_address}> "
            "failed",
        ) from None
    return request.command.make_reply(
        answer.code, answer.remark, dict(answer.ext_fields), bytes(answer.body)
    )
