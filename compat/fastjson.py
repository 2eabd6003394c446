"""JSON as fastjson writes and reads it: RocketMQ's bodies are this, and only nearly JSON.

fastjson leaves integer map keys unquoted ({0:"addr"}), writes objects as map keys
({{"topic":"T"}:1}), drops null fields, and reads single quotes, bare keys, comments and stray
commas. `loads` takes the strict fast path first and the tolerant reader only when that refuses;
`dumps` writes the spelling that an old Java peer expects, `dumps_standard` the one that every JSON
reader takes. Pure functions, called from any lane; bad input is a FastjsonError.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

import orjson

from pyritemq.compat.utf16 import join_surrogates

# fastjson2 gives up at 2048 levels, RocketMQ's deepest body has 6. Kept well under Python's
# recursion limit.
DEPTH_MAX = 64

_SKIP = re.compile(r"(?:\s+|//[^\n]*\n?|/\*.*?\*/)*", re.DOTALL)
_SKIP_WITH_COMMAS = re.compile(r"(?:[\s,]+|//[^\n]*\n?|/\*.*?\*/)*", re.DOTALL)
_NUMBER = re.compile(r"[-+]?(?:\d+(\.\d*)?|\.\d+)([eE][-+]?\d+)?[LlBbSsFfDd]?")
_BARE = re.compile(r"[^\s:,{}\[\]\"'/]+")
_CHUNK = {'"': re.compile(r'[^"\\]*'), "'": re.compile(r"[^'\\]*")}
_ESCAPES = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v", "0": "\0"}
_WORDS: dict[str, bool | None] = {"true": True, "false": False, "null": None, "undefined": None}


class FastjsonError(ValueError):
    """The text is not JSON, even as fastjson takes it."""


class ObjectKey(Mapping[str, Any]):
    """An object used as a map key, as fastjson writes a MessageQueue.

    Hashable, compared by its fields.
    """

    __slots__ = ("_fields", "_hash")

    def __init__(self, fields: Mapping[str, Any]) -> None:
        self._fields = dict(fields)
        self._hash = hash(frozenset((name, repr(value)) for name, value in self._fields.items()))

    def __getitem__(self, name: str) -> Any:  # noqa: ANN401  (JSON holds anything)
        return self._fields[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._fields)

    def __len__(self) -> int:
        return len(self._fields)

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        return f"ObjectKey({self._fields!r})"


def loads(data: bytes | bytearray | memoryview | str) -> Any:  # noqa: ANN401  (JSON holds anything)
    """Read one value.

    Unquoted integer keys come out as int, object keys as ObjectKey, all others as str.
    """
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError:
        text = data if isinstance(data, str) else bytes(data).decode("utf-8", "replace")
        return _Reader(text).read_document()


def dumps(value: Any) -> bytes:  # noqa: ANN401  (JSON holds anything)
    """Write as fastjson does by default.

    Null fields left out, integer keys bare, object keys as objects.
    """
    parts: list[bytes] = []
    _write(value, parts)
    return b"".join(parts)


def dumps_standard(value: Any) -> bytes:  # noqa: ANN401  (JSON holds anything)
    """Write real JSON: integer keys are quoted. The caller leaves null fields out."""
    return orjson.dumps(value, option=orjson.OPT_NON_STR_KEYS)


def _write(value: Any, parts: list[bytes]) -> None:  # noqa: ANN401
    if isinstance(value, Mapping):
        _write_object(value, parts)
    elif isinstance(value, list | tuple | set | frozenset):
        _write_array(value, parts)
    else:
        parts.append(orjson.dumps(value))


def _write_object(fields: Mapping[Any, Any], parts: list[bytes]) -> None:
    separator = b"{"
    for key, value in fields.items():
        if value is None:
            continue
        parts.append(separator)
        _write(key, parts)
        parts.append(b":")
        _write(value, parts)
        separator = b","
    parts.append(b"{}" if separator == b"{" else b"}")


def _write_array(
    items: list[Any] | tuple[Any, ...] | set[Any] | frozenset[Any], parts: list[bytes]
) -> None:
    separator = b"["
    for item in items:
        parts.append(separator)
        _write(item, parts)
        separator = b","
    parts.append(b"[]" if separator == b"[" else b"]")


class _Reader:
    """A recursive-descent reader over one text; `_at` is the index of the next character."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0

    def read_document(self) -> Any:  # noqa: ANN401
        value = self._read_value(DEPTH_MAX)
        self._skip(_SKIP)
        if self._at != len(self._text):
            raise self._error("text after the end")
        return value

    def _read_value(self, depth_left: int) -> Any:  # noqa: ANN401
        if depth_left == 0:
            raise self._error("nested too deeply")
        self._skip(_SKIP)
        first = self._peek()
        if first == "{":
            return self._read_object(depth_left - 1)
        if first == "[":
            return self._read_array(depth_left - 1)
        if first in ("'", '"'):
            return self._read_string(first)
        return self._read_scalar()

    def _read_object(self, depth_left: int) -> dict[Any, Any]:
        self._at += 1
        fields: dict[Any, Any] = {}
        while not self._closes("}"):
            key = self._read_key(depth_left)
            self._skip(_SKIP)
            self._expect(":")
            fields[key] = self._read_value(depth_left)
        return fields

    def _read_array(self, depth_left: int) -> list[Any]:
        self._at += 1
        items: list[Any] = []
        while not self._closes("]"):
            items.append(self._read_value(depth_left))
        return items

    def _closes(self, bracket: str) -> bool:
        """Pass separators, stray commas included, then the closing bracket if it is next."""
        self._skip(_SKIP_WITH_COMMAS)
        if self._peek() != bracket:
            return False
        self._at += 1
        return True

    def _read_key(self, depth_left: int) -> Any:  # noqa: ANN401
        first = self._peek()
        if first in ("'", '"'):
            return self._read_string(first)
        if first == "{":
            return ObjectKey(self._read_value(depth_left))
        word = self._match(_BARE, "a key")
        return int(word) if re.fullmatch(r"-?[0-9]{1,20}", word) else word

    def _read_scalar(self) -> int | float | bool | None:
        match = _NUMBER.match(self._text, self._at)
        if match:
            self._at = match.end()
            number = match[0].rstrip("LlBbSsFfDd")
            fractional = (
                match[1] is not None or match[2] is not None or number.lstrip("+-")[:1] == "."
            )
            return float(number) if fractional else self._to_int(number)
        word = self._match(_BARE, "a value")
        if word not in _WORDS:
            raise self._error(f"unknown word {word[:20]!r}")
        return _WORDS[word]

    def _to_int(self, digits: str) -> int | float:
        """A number past 64 bits becomes a float, as on the fast path: orjson could not write it."""
        if len(digits) > 40:  # no Java number is longer, and int() of a long text is quadratic
            raise self._error("a number of too many digits")
        value = int(digits)
        return value if -(1 << 63) <= value < 1 << 64 else float(value)

    def _read_string(self, quote: str) -> str:
        self._at += 1
        parts: list[str] = []
        while True:
            chunk = _CHUNK[quote].match(self._text, self._at)
            assert chunk is not None
            parts.append(chunk[0])
            self._at = chunk.end()
            if self._peek() == quote:
                self._at += 1
                return join_surrogates("".join(parts))
            parts.append(self._read_escape())

    def _read_escape(self) -> str:
        """The reader stands on a backslash."""
        kind = self._text[self._at + 1 : self._at + 2]
        length = {"u": 4, "x": 2}.get(kind, 0)
        digits = self._text[self._at + 2 : self._at + 2 + length]
        self._at += 2 + length
        if not kind or len(digits) != length:
            raise self._error("unfinished escape")
        if length:
            try:
                return chr(int(digits, 16))
            except ValueError:
                raise self._error("bad escape") from None
        return _ESCAPES.get(kind, kind)

    def _skip(self, pattern: re.Pattern[str]) -> None:
        match = pattern.match(self._text, self._at)
        assert match is not None
        self._at = match.end()

    def _peek(self) -> str:
        if self._at >= len(self._text):
            raise self._error("text ends early")
        return self._text[self._at]

    def _expect(self, character: str) -> None:
        if self._peek() != character:
            raise self._error(f"expected {character!r}")
        self._at += 1

    def _match(self, pattern: re.Pattern[str], what: str) -> str:
        match = pattern.match(self._text, self._at)
        if match is None:
            raise self._error(f"expected {what}")
        self._at = match.end()
        return match[0]

    def _error(self, what: str) -> FastjsonError:
        return FastjsonError(f"not JSON at character {self._at}: {what}")
