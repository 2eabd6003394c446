"""One property out of a message's, without taking all of them apart.

Properties are `name \\x01 value \\x02 …` in UTF-8, as stored and sent.  A key given here ends with
`\\x01`.  Pure functions for the send lane's hot path; what changes several properties at once uses
`protocol.record.decode_properties`.
"""

from __future__ import annotations

SEPARATOR = 2


def property_of(properties: bytes, key: bytes) -> str:
    """The property's text, or nothing."""
    start = properties.find(key)
    while start > 0 and properties[start - 1] != SEPARATOR:
        start = properties.find(key, start + 1)
    if start < 0:
        return ""
    start += len(key)
    end = properties.find(b"\x02", start)
    return properties[start : end if end >= 0 else None].decode()


def without(properties: bytes, key: bytes) -> bytes:
    """All but this property."""
    return b"".join(
        pair + b"\x02" for pair in properties.split(b"\x02") if pair and not pair.startswith(key)
    )
