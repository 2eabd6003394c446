"""QUERY_MESSAGE and VIEW_MESSAGE_BY_ID: messages by key, by unique id, and by where they lie.

Both on lane QUERY, whose threads may wait for a disk or search the part of the CommitLog that the
index has not come to. Replies are those of Java's QueryMessageProcessor (5.5.0).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyritemq.protocol.codes import RequestCode, ResponseCode
from pyritemq.protocol.headers.message import (
    QueryMessageHeader,
    QueryMessageReplyHeader,
    ViewMessageHeader,
)
from pyritemq.server.lanes import Lane
from pyritemq.server.registry import RequestRefused, broker_handlers
from pyritemq.storage.messages import QueryResult

if TYPE_CHECKING:
    from pyritemq.protocol.command import Command
    from pyritemq.server.broker.broker import Broker
    from pyritemq.server.registry import Request

UNIQUE_KEY_FLAG = "_UNIQUE_KEY_QUERY"
"""An ext field besides the header: the key is a message's unique id (MixAll)."""


@broker_handlers.handles(RequestCode.QUERY_MESSAGE, QueryMessageHeader, lane=Lane.QUERY)
def query_message(broker: Broker, request: Request[QueryMessageHeader]) -> Command:
    """The records with a key, one after the other in the body; the client looks at them again."""
    found = _find(broker, request)
    header = QueryMessageReplyHeader(
        index_last_update_timestamp=found.index_last_update_timestamp,
        index_last_update_phyoffset=found.index_last_update_phy_offset,
    )
    if found.records:
        return request.reply(header=header, body=b"".join(found.records))
    return request.reply(
        ResponseCode.QUERY_NOT_FOUND,
        "can not find message, maybe time range not correct",
        header=header,
    )


def _find(broker: Broker, request: Request[QueryMessageHeader]) -> QueryResult:
    if not broker.config.index_file_read_enable:
        return QueryResult([], 0, 0)
    asked = request.header
    count_max = asked.max_num
    index_type = asked.index_type
    if request.command.ext_fields.get(UNIQUE_KEY_FLAG, "").lower() == "true":
        count_max = broker.config.default_query_max_num
        index_type = None
    return broker.store.query(
        asked.topic,
        asked.key,
        count_max,
        begin=asked.begin_timestamp,
        end=asked.end_timestamp,
        index_type=index_type,
    )


@broker_handlers.handles(RequestCode.VIEW_MESSAGE_BY_ID, ViewMessageHeader, lane=Lane.QUERY)
def view_message_by_id(broker: Broker, request: Request[ViewMessageHeader]) -> Command:
    """The record that an offset message id names; the client has taken the id apart."""
    offset = request.header.offset
    record = broker.store.record_at(offset)
    if record is None:
        raise RequestRefused(
            ResponseCode.SYSTEM_ERROR, f"can not find message by the offset, {offset}"
        )
    return request.reply(body=bytes(record))
