"""From a record of the CommitLog to an answer: does this message match?

The tests made here are what `MessageStore.get` asks of each record that a pull with an SQL filter
comes by, on the pull lane.  RocketMQ 5.5.0: ExpressionMessageFilter.isMatchedByCommitLog and
ExpressionForRetryMessageFilter.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from pyritemq.protocol.record import (
    BORNHOST_V6,
    MAGIC_V2,
    STOREHOSTADDRESS_V6,
    decode_properties,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyritemq.server.broker.filters.sql92 import Expression

    RecordTest = Callable[[memoryview], bool]

RETRY_TOPIC = "RETRY_TOPIC"
"""The property of a message in a retry topic that names the topic it was first sent to."""

_MAGIC_AT, _SYS_FLAG_AT = 4, 36
_BODY_SIZE_AT_V4 = 84
_HOST_V6_MORE = 12
_I32 = struct.Struct(">i").unpack_from


def record_properties(record: memoryview) -> dict[str, str]:
    """The properties of a record that the store has checked, without taking the rest apart."""
    (sys_flag,) = _I32(record, _SYS_FLAG_AT)
    at = _BODY_SIZE_AT_V4
    if sys_flag & BORNHOST_V6:
        at += _HOST_V6_MORE
    if sys_flag & STOREHOSTADDRESS_V6:
        at += _HOST_V6_MORE
    at += 4 + _I32(record, at)[0]
    if _I32(record, _MAGIC_AT)[0] == MAGIC_V2:
        at += 2 + (record[at] << 8 | record[at + 1])
    else:
        at += 1 + record[at]
    # after two bytes of their length the properties fill the record to its end
    return decode_properties(record[at + 2 :])


def record_test(expression: Expression) -> RecordTest:
    """Whether a record matches; the empty one is a file that expired under the reader."""
    matches = expression.matches
    return lambda record: bool(record) and matches(record_properties(record))


def retry_record_test(expression_of: Callable[[str], Expression | None]) -> RecordTest:
    """The same in a group's retry topic: each message is asked what its own topic's filter says."""

    def test(record: memoryview) -> bool:
        if not record:
            return False
        properties = record_properties(record)
        expression = expression_of(properties.get(RETRY_TOPIC, ""))
        return expression is None or expression.matches(properties)

    return test
