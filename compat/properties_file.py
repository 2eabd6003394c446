"""java.util.Properties text: what broker.conf and namesrv.conf are written in.

Pure functions from text to a dict and back. The bytes of a file are ISO 8859-1 with `\\uXXXX`
escapes, as Properties.load(InputStream) reads them; a UTF-8 value therefore reads as it does in
Java.
"""

import re
from collections.abc import Iterator, Mapping

from pyritemq.compat.utf16 import join_surrogates, utf16_units

_BLANKS = " \t\f"
_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.|$)", re.DOTALL)
_KEY = re.compile(r"(?:[^\\=: \t\f]|\\.)*", re.DOTALL)
_SEPARATOR = re.compile(r"[ \t\f]*[=:]?[ \t\f]*")
_LINE_BREAK = re.compile(r"\r\n|\r|\n")
_TO_ESCAPE = re.compile(r"[\\\t\n\r\f=:#!]|[^\x20-\x7e]")
_ESCAPED = {value: "\\" + key for key, value in _ESCAPES.items()}


class PropertiesError(ValueError):
    """A `\\u` escape without four hex digits: the one thing that Java refuses too."""


def parse_properties(source: str | bytes) -> dict[str, str]:
    """Read properties in the order of the text; the last of several equal keys wins."""
    text = source if isinstance(source, str) else source.decode("iso-8859-1")
    properties: dict[str, str] = {}
    for line in _logical_lines(text):
        key_end = _match_end(_KEY, line, 0)
        value_start = _match_end(_SEPARATOR, line, key_end)
        properties[_unescape(line[:key_end])] = _unescape(line[value_start:])
    return properties


def format_properties(properties: Mapping[str, str]) -> str:
    """Text that parse_properties reads back to the same dict: escaped, one `key=value` a line."""
    lines = (f"{_escape_key(key)}={_escape_value(value)}\n" for key, value in properties.items())
    return "".join(lines)


def print_properties(properties: Mapping[str, str]) -> str:
    """The plain `key=value` lines of MixAll.properties2String, sorted, unescaped.

    For people and mqadmin.
    """
    return "".join(f"{key}={properties[key]}\n" for key in sorted(properties))


def _logical_lines(text: str) -> Iterator[str]:
    """Lines without comments and blanks, each joined with those it continues on."""
    pending: str | None = None
    for natural in _LINE_BREAK.split(text):
        line = natural.lstrip(_BLANKS)
        if pending is None:
            if not line or line[0] in "#!":
                continue
            pending = ""
        pending += line
        if _ends_with_odd_backslashes(line):
            pending = pending[:-1]
            continue
        yield pending
        pending = None
    if pending is not None:
        yield pending


def _ends_with_odd_backslashes(line: str) -> bool:
    return (len(line) - len(line.rstrip("\\"))) % 2 == 1


def _match_end(pattern: re.Pattern[str], line: str, start: int) -> int:
    match = pattern.match(line, start)
    return match.end() if match else start


def _unescape(text: str) -> str:
    return join_surrogates(_ESCAPE.sub(_unescape_one, text)) if "\\" in text else text


def _unescape_one(match: re.Match[str]) -> str:
    escape = match[1]
    if escape[:1] == "u":
        if len(escape) != 5:
            raise PropertiesError("malformed \\uxxxx encoding")
        return chr(int(escape[1:], 16))
    return _ESCAPES.get(escape, escape)


def _escape_value(text: str) -> str:
    escaped = _TO_ESCAPE.sub(_escape_one, text)
    return "\\" + escaped if escaped.startswith(" ") else escaped


def _escape_key(text: str) -> str:
    return _TO_ESCAPE.sub(_escape_one, text).replace(" ", "\\ ")


def _escape_one(match: re.Match[str]) -> str:
    character = match[0]
    if character in _ESCAPED:
        return _ESCAPED[character]
    if character in "\\=:#!":
        return "\\" + character
    return "".join(f"\\u{unit:04X}" for unit in utf16_units(character))
