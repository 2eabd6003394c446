"""The body of BATCH_ACK_MESSAGE (Java: BatchAckMessageRequestBody).  Pure functions."""

from __future__ import annotations

import base64
import binascii
from typing import TYPE_CHECKING, Any, NamedTuple

from pyritemq.compat import fastjson
from pyritemq.protocol.errors import ProtocolError
from pyritemq.server.broker.pop.retry_topics import topic_of_kind

if TYPE_CHECKING:
    from collections.abc import Sequence

BITS_BYTES_MAX = 4096
"""Ours: a pop hands out 32 messages, so with filters in between the last is not far away."""


class BatchAck(NamedTuple):
    """Messages of one pop; `topic` is the retry topic if they came from there."""

    topic: str
    group: str
    queue_id: int
    start_offset: int
    revive_queue_id: int
    pop_time: int
    invisible_time: int
    offsets: Sequence[int]


def decode_batch_acks(body: bytes | memoryview) -> tuple[str, list[BatchAck]]:
    """The broker's name and the acks.  Raises ProtocolError."""
    if not body:
        return "", []
    try:
        members = fastjson.loads(bytes(body))
        if not isinstance(members, dict):
            raise ValueError("not a JSON object")
        acks = [_decode(item) for item in members.get("acks") or ()]
        return str(members.get("brokerName") or ""), acks
    except (ValueError, TypeError, KeyError, AttributeError, binascii.Error) as error:
        raise ProtocolError(f"not a batch of acks: {error}") from None


def _decode(item: dict[str, Any]) -> BatchAck:
    group = str(_member(item, "c", "consumerGroup"))
    start_offset = int(_member(item, "so", "startOffset"))
    kind = str(_member(item, "r", "retry"))
    bits = base64.b64decode(str(_member(item, "b", "bitSet")), validate=True)
    if len(bits) > BITS_BYTES_MAX:
        raise ValueError("too many bits")
    return BatchAck(
        topic_of_kind(kind, str(_member(item, "t", "topic")), group),
        group,
        int(_member(item, "q", "queueId")),
        start_offset,
        int(_member(item, "rq", "reviveQueueId")),
        int(_member(item, "pt", "popTime")),
        int(_member(item, "it", "invisibleTime")),
        [
            start_offset + index
            for index in range(len(bits) * 8)
            if bits[index // 8] >> (index % 8) & 1
        ],
    )


def _member(item: dict[str, Any], *names: str) -> Any:  # noqa: ANN401 - JSON holds anything
    for name in names:
        if name in item:
            return item[name]
    raise KeyError(names[0])
