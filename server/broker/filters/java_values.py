"""Java's values in a selector: numbers of three kinds, text, and how one is compared with another.

A property is always text.  A constant is an Integer (`int`), a Long (`Long`), a Double (`float`), a
Boolean (`bool`) or a String (`str`); null is None.  Comparing converts text to the kind of the
other side, and text that is no such number ends the whole evaluation, as an exception does in
Java.  Pure functions, called on the pull lane; RocketMQ 5.5.0: ComparisonExpression.__compare.
"""

from __future__ import annotations

import math
import re
from decimal import Decimal
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

Value = str | int | float | bool | None

INTEGER_MIN, INTEGER_MAX = -(2**31), 2**31 - 1
LONG_MIN, LONG_MAX = -(2**63), 2**63 - 1

_INTEGER = re.compile(r"[+-]?\d+")
_DOUBLE = re.compile(
    r"[+-]?(?:NaN|Infinity|(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?[fFdD]?)"
)
_HEX_DOUBLE = re.compile(
    r"([+-]?0[xX](?:[0-9a-fA-F]+\.?[0-9a-fA-F]*|\.[0-9a-fA-F]+)[pP][+-]?[0-9]+)[fFdD]?"
)
_SPACE = "".join(map(chr, range(0x21)))
"""What String.trim takes away: every character up to the blank."""

DIGITS_MAX = 1100
"""Integers longer than this are refused unread, doubles read as Java does; no 64-bit number and no
shortest double needs more, and reading digits costs the square of their number."""


class Long(int):
    """A Java Long: its own type even where its value would fit an Integer."""

    __slots__ = ()


class EvaluationError(Exception):
    """Values that Java cannot compare; the message does not match."""


def parse_integer(text: str) -> int:
    """Integer.valueOf."""
    return _whole(text, INTEGER_MIN, INTEGER_MAX)


def parse_long(text: str) -> Long:
    """Long.valueOf."""
    return Long(_whole(text, LONG_MIN, LONG_MAX))


def parse_double(text: str) -> float:
    """Double.valueOf: blanks around it, a type suffix and hexadecimal floats are allowed."""
    text = text.strip(_SPACE)
    if _DOUBLE.fullmatch(text):
        return float(text if text[-1] in "Ny" else text.rstrip("fFdD"))
    found = _HEX_DOUBLE.fullmatch(text)
    if found is None:
        raise _not_a_number(text)
    try:
        return float.fromhex(found[1])
    except OverflowError:
        return -math.inf if text.startswith("-") else math.inf


def _whole(text: str, low: int, high: int) -> int:
    # Java takes any Unicode digit of the basic plane, as \d does, but no blanks or underscores
    if len(text) > DIGITS_MAX or not _INTEGER.fullmatch(text) or max(text) > "\uffff":
        raise _not_a_number(text)
    value = int(text)
    if not low <= value <= high:
        raise _not_a_number(text)
    return value


def _not_a_number(text: str) -> EvaluationError:
    return EvaluationError(f'java.lang.NumberFormatException: For input string: "{text}"')


def parse_boolean(text: str) -> bool:
    """Boolean.valueOf."""
    # lower() alone would take a dotted or Kelvin letter for an ASCII one; these words have none
    return text.lower() == "true"


_PARSERS: dict[type, Callable[[str], int | float]] = {
    int: parse_integer,
    Long: parse_long,
    float: parse_double,
}


def parser_of(number: int | float) -> Callable[[str], int | float]:
    """How text is read that is compared with this number."""
    return _PARSERS[type(number)]


def order_doubles(left: float, right: float) -> int:
    """Double.compareTo: NaN is the greatest and equal to itself, -0.0 lies below 0.0."""
    if left < right:
        return -1
    if left > right:
        return 1
    return _rank(left) - _rank(right)


def _rank(value: float) -> int:
    if value != value:
        return 1
    return -1 if value == 0 and math.copysign(1, value) < 0 else 0


def order(left: str | int | float, right: str | int | float) -> int:
    """Less than, equal to or greater than zero, as compareTo after Java's conversions.

    Kinds that have nothing in common are -1, whichever comes first.  Raises EvaluationError.
    """
    left_kind, right_kind = type(left), type(right)
    if left_kind is str and right_kind is not str:
        left = _text_as(left, right_kind)
    elif right_kind is str and left_kind is not str:
        if left_kind is bool:
            raise EvaluationError("a Boolean cannot be cast to a String")  # ClassCastException
        right = _text_as(right, left_kind)
    elif (left_kind is bool) is not (right_kind is bool):
        return -1
    if isinstance(left, float) or isinstance(right, float):
        return order_doubles(float(left), float(right))
    return (left > right) - (left < right)  # type: ignore[operator]  # both text, or neither


def _text_as(text: object, kind: type) -> int | float:
    assert isinstance(text, str)
    return parse_boolean(text) if kind is bool else _PARSERS[kind](text)


def negated(value: Value) -> Value:
    """Minus a number; minus anything else is null."""
    if isinstance(value, bool | str) or value is None:
        return None
    return Long(-value) if isinstance(value, Long) else -value


def text_of(value: Value) -> str:
    """String.valueOf, for remarks."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    return _double_text(value) if isinstance(value, float) else str(value)


def _double_text(value: float) -> str:
    """Double.toString: plain between a thousandth and ten million, else 1.5E10."""
    if 1e-3 <= abs(value) < 1e7 or not math.isfinite(value):
        return repr(value)
    _, digits, exponent = Decimal(repr(value)).as_tuple()
    assert isinstance(exponent, int)
    number = "".join(map(str, digits)).rstrip("0")
    sign = "-" if value < 0 else ""
    return f"{sign}{number[0]}.{number[1:] or '0'}E{exponent + len(digits) - 1}"
