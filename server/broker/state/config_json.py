"""The tables under store/config as Java's broker writes them: fastjson's pretty form.

Tabs, no blank after the colon, integer keys without quotes, empty objects on one line, null fields
left out.  Byte for byte what fastjson2 writes for the same members in the same order, so that files
of both brokers can be compared.  Pure functions; reading is `compat.fastjson.loads`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import orjson

if TYPE_CHECKING:
    from collections.abc import Iterator


def dumps_pretty(value: Mapping[Any, Any]) -> bytes:
    """A table as the bytes of its file."""
    return b"".join(_write(value, b"\n"))


def _write(value: object, line: bytes) -> Iterator[bytes]:
    """`line` is a line break with the indentation of the value's own level."""
    if isinstance(value, Mapping):
        members = ((key, member) for key, member in value.items() if member is not None)
        yield from _enclose(b"{}", line, (_member(key, item, line) for key, item in members))
    elif isinstance(value, list | tuple | set | frozenset):
        yield from _enclose(b"[]", line, (_write(item, line + b"\t") for item in value))
    else:
        yield orjson.dumps(value)


def _member(key: object, value: object, line: bytes) -> Iterator[bytes]:
    yield orjson.dumps(key)
    yield b":"
    yield from _write(value, line + b"\t")


def _enclose(brackets: bytes, line: bytes, items: Iterable[Iterator[bytes]]) -> Iterator[bytes]:
    separator = brackets[:1]
    for item in items:
        yield separator + line + b"\t"
        yield from item
        separator = b","
    yield brackets if separator == brackets[:1] else line + brackets[1:]
