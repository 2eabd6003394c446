"""What Java's broker says of a selector that it cannot read: JavaCC's words, to the column.

A client shows this text to its user.  Made from the parser's state at the fault: what it holds and
what it would take.  Called at most once for an expression.  RocketMQ 5.5.0: ParseException,
TokenMgrError, SimpleCharStream.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lark import Token

from pyritemq.server.broker.filters.selector_nodes import PARSE, SelectorError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

LEXICAL = "org.apache.rocketmq.filter.parser.TokenMgrError"

IMAGES = {
    "NOT": '"NOT"',
    "AND": '"AND"',
    "OR": '"OR"',
    "BETWEEN": '"BETWEEN"',
    "IN": '"IN"',
    "TRUE": '"TRUE"',
    "FALSE": '"FALSE"',
    "NULL": '"NULL"',
    "IS": '"IS"',
    "CONTAINS": '"CONTAINS"',
    "STARTSWITH": '"STARTSWITH"',
    "ENDSWITH": '"ENDSWITH"',
    "DECIMAL": "<DECIMAL_LITERAL>",
    "FLOATING": "<FLOATING_POINT_LITERAL>",
    "STRING": "<STRING_LITERAL>",
    "ID": "<ID>",
    "EQUAL": '"="',
    "DIFFERENT": '"<>"',
    "GREATER": '">"',
    "GREATER_EQUAL": '">="',
    "LESS": '"<"',
    "LESS_EQUAL": '"<="',
    "OPEN": '"("',
    "COMMA": '","',
    "CLOSE": '")"',
    "MINUS": '"-"',
    "PLUS": '"+"',
}
"""Java's names of the tokens, in the order in which it lists what it was expecting."""

AFTER_NOT = {"BETWEEN", "IN", "CONTAINS", "STARTSWITH", "ENDSWITH"}
OPERAND = {
    "NOT",
    "TRUE",
    "FALSE",
    "NULL",
    "DECIMAL",
    "FLOATING",
    "STRING",
    "ID",
    "OPEN",
    "MINUS",
    "PLUS",
}
INFIX_AFTER_NOT = AFTER_NOT | {"GREATER", "GREATER_EQUAL", "LESS", "LESS_EQUAL"}

TAB_SIZE = 8

ESCAPES = {
    "\b": "\\b",
    "\t": "\\t",
    "\n": "\\n",
    "\f": "\\f",
    "\r": "\\r",
    '"': '\\"',
    "'": "\\'",
    "\\": "\\\\",
}


def syntax_error(
    text: str, held: Sequence[object], stranger: Token | None, expected: Iterable[str]
) -> SelectorError:
    """A token that does not fit where the expression cannot end either (None: the end)."""
    wanted = set(expected)
    plus = _open_plus(held, complete="ID" not in wanted)
    if plus is not None:
        # Java looks ahead over the whole operand of a plus and blames the plus
        stranger, wanted = plus, OPERAND - {"PLUS"}
    elif wanted == AFTER_NOT:
        last = held[-1]
        assert isinstance(last, Token)
        stranger, wanted = last, INFIX_AFTER_NOT
    line, column = _end(text) if stranger is None else _position(text, stranger.start_pos or 0)
    found = "<EOF>" if stranger is None else f' {IMAGES[stranger.type]} "{_escape(stranger)} "'
    names = [image for name, image in IMAGES.items() if name in wanted]
    lines = "".join(f"    {name} ...\n" for name in names)
    one_of = " one of" if len(names) > 1 else ""
    return SelectorError(
        f'{PARSE}: Encountered "{found}" at line {line}, column {column}.\n'
        f"Was expecting{one_of}:\n{lines}    "
    )


def _open_plus(held: Sequence[object], *, complete: bool) -> Token | None:
    """The outermost plus whose operand has not ended."""
    tokens = [item for item in held if isinstance(item, Token)]
    if complete:
        # the innermost operand has ended; those around it end with their closing bracket
        opened = [number for number, token in enumerate(tokens) if token.type == "OPEN"]
        tokens = tokens[: opened[-1]] if opened else []
    return next((token for token in tokens if token.type == "PLUS"), None)


def lexical_error(text: str, start: int) -> SelectorError:
    """A character that begins no token, or a token that never ends."""
    rest = text[start:]
    read = _utf16(rest[: _read_length(rest)])
    if rest[0] not in "'/.":
        read = read[:1]
    last = read[-1]
    line, column = _position(text, start, len(read) - 1)
    at_end = len(read) == len(_utf16(rest))
    image = read if at_end else read[:-1]
    after = "" if len(read) <= 1 else _escape(image)
    if at_end:
        line, column = (line + 1, 0) if last in "\r\n" else (line, column + 1)
    found = "<EOF> " if at_end else f'"{_escape(last)}" ({ord(last)}), '
    return SelectorError(
        f"{LEXICAL}: Lexical error at line {line}, column {column}.  "
        f'Encountered: {found}after : "{after}"'
    )


def _read_length(rest: str) -> int:
    """How many characters Java reads before it knows that this is no token."""
    if rest[0] == "'" or rest.startswith("/*"):
        return len(rest)
    return 2 if rest[0] in "/." else 1


def _position(text: str, index: int, units_on: int = 0) -> tuple[int, int]:
    """Line and column of a character; columns count UTF-16 units, and tabs as Java does."""
    units = _utf16(text)
    target = len(_utf16(text[:index])) + units_on
    line, column, fresh = 1, 0, False
    for number, unit in enumerate(units[: target + 1]):
        column += 1
        if fresh and not (unit == "\n" and units[number - 1] == "\r"):
            line, column = line + 1, 1
        fresh = unit in "\r\n"
        if unit == "\t":
            column -= 1
            column += TAB_SIZE - column % TAB_SIZE
    return line, column


def _end(text: str) -> tuple[int, int]:
    """Java places the end at the last character."""
    return _position(text, len(text) - 1) if text else (0, 0)


def _utf16(text: str) -> str:
    if text.isascii():
        return text
    data = text.encode("utf-16-be", "surrogatepass")
    return "".join(chr(high << 8 | low) for high, low in zip(data[::2], data[1::2], strict=True))


def _escape(text: str) -> str:
    return "".join(ESCAPES.get(unit) or _printable(unit) for unit in _utf16(text))


def _printable(unit: str) -> str:
    if unit == "\0":
        return ""  # Java leaves it out
    return unit if " " <= unit <= "~" else f"\\u{ord(unit):04x}"
