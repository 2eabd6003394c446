"""SQL92 filters: from a client's text to a function that says whether a message matches.

An expression is parsed and compiled once and kept, refused ones too, as Java keeps its last 100.
lark is imported when the first expression comes, so a broker without SQL filters never loads it.
Called on the client and pull lanes.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from pyritemq.server.broker.filters.java_values import EvaluationError
from pyritemq.server.broker.filters.selector_nodes import SelectorError

if TYPE_CHECKING:
    from pyritemq.server.broker.filters.selector_nodes import Evaluate, Properties

SQL92 = "SQL92"

LENGTH_MAX = 32 * 1024
"""Characters of an expression.  Java has no bound of its own; a subscription travels in heartbeats
and in header fields, and at this length parsing takes some tenths of a second."""

COMPILED_MAX = 100
"""Expressions kept (Java: SelectorParser.PARSE_CACHE)."""


@dataclass(frozen=True, slots=True, eq=False)
class Expression:
    """A compiled expression."""

    text: str
    evaluate: Evaluate

    def matches(self, properties: Properties) -> bool:
        """Whether the answer is true: unknown, or values that cannot be compared, are not."""
        try:
            return self.evaluate(properties) is True
        except EvaluationError:
            return False


def compile_expression(expression_type: str | None, text: str) -> Expression:
    """The expression, ready to use.  Raises SelectorError with the remark for the client."""
    if expression_type != SQL92:
        raise SelectorError(f"no filter of type {expression_type}")
    compiled = _compile(text)
    if isinstance(compiled, SelectorError):
        raise SelectorError(*compiled.args)
    return compiled


@lru_cache(maxsize=COMPILED_MAX)
def _compile(text: str) -> Expression | SelectorError:
    from pyritemq.server.broker.filters.selector_parser import parse

    if len(text) > LENGTH_MAX:
        return SelectorError(f"the expression is longer than {LENGTH_MAX} characters")
    try:
        return Expression(text, parse(text).evaluate)
    except SelectorError as error:
        return error.with_traceback(None)


def no_such_filter(expression_type: str | None) -> str:
    """Java's remark where enablePropertyFilter is off."""
    return f"The broker does not support consumer to filter message by {expression_type}"
