"""Bit maps of messages: which groups' SQL filters a message matches, told before it is read.

Made on the send lane for each message while enableConsumeQueueExt and enableCalcFilterBitMap are
on (they are off by default); looked at on the pull lane.  A bit that is set may be another group's,
so the filter still looks at the record; a bit that is not set spares it that.  RocketMQ 5.5.0:
CommitLogDispatcherCalcBitMap, ExpressionMessageFilter.isMatchedByConsumeQueue.

No message may be taken for one that a filter was asked about when it was not.  A message counts as
asked if it was stored later than the filter was born, and:
  1. send lane:   takes the batch's store time, then asks for the topic's filters, under the lock;
  2. client lane: takes a filter's time of birth and puts the filter in place, under the same lock.
So a send lane that misses the filter has taken its time before the filter took its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyritemq.protocol.record import decode_properties

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pyritemq.server.broker.filters.table import ConsumerFilterData
    from pyritemq.storage.consume_queue_ext import AcceptsExt, BitMapOf, ExtUnit


def bit_maps(
    filters_of: Callable[[str], Sequence[ConsumerFilterData]],
    *,
    bit_num: int,
    is_on: Callable[[], bool],
) -> BitMapOf:
    """What the store asks for a message's bit map; an empty one says nothing about any group."""

    def bit_map_of(topic: bytes, properties: bytes) -> bytes:
        filters = filters_of(topic.decode()) if is_on() else ()
        if not filters:
            return b""
        decoded = decode_properties(properties)
        bits = 0
        for data in filters:
            if (
                data.compiled is not None
                and data.bloom_filter_data is not None
                and data.compiled.matches(decoded)
            ):
                bits |= data.bloom_filter_data.mask
        return bits.to_bytes(bit_num // 8, "little")

    return bit_map_of


def bit_map_test(data: ConsumerFilterData, *, bit_num: int) -> AcceptsExt | None:
    """Whether a message can match a group's filter; None if bit maps cannot tell."""
    bloom = data.bloom_filter_data
    if bloom is None or bloom.bit_num != bit_num or data.compiled is None:
        return None
    mask, born_time = bloom.mask, data.born_time

    def test(unit: ExtUnit) -> bool:
        if unit.store_timestamp <= born_time or len(unit.bit_map) * 8 != bit_num:
            return True
        return int.from_bytes(unit.bit_map, "little") & mask == mask

    return test
