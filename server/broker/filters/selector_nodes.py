"""A parsed selector as closures: each node is a function of a message's properties.

The parser calls the functions below bottom-up, once for each expression; they make the checks that
RocketMQ makes while it parses and raise SelectorError with its words.  Answers are True, False or
None (unknown); evaluation may raise EvaluationError, which means no match.  Nothing of a client's
text is ever compiled or evaluated as Python.  RocketMQ 5.5.0: ComparisonExpression,
LogicExpression, UnaryExpression, ConstantExpression.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping

from pyritemq.server.broker.filters.java_values import (
    INTEGER_MAX,
    LONG_MAX,
    EvaluationError,
    Long,
    Value,
    negated,
    order,
    parse_double,
    parser_of,
    text_of,
)

Properties = Mapping[str, str]
Evaluate = Callable[[Properties], Value]
Ordering = Callable[[int], bool]

DEPTH_MAX = 200
"""How deep an expression may nest; each level costs one frame of Python's stack.  Java gives up
where its own stack ends, some thousands deep.  Chains of AND and of OR do not nest."""

RUNTIME = "java.lang.RuntimeException"
PARSE = "org.apache.rocketmq.filter.parser.ParseException"


class SelectorError(ValueError):
    """An expression that does not compile; the text is the one that Java's broker answers."""


class Node:
    """What an expression is, how it reads, and how it is evaluated."""

    __slots__ = ("boolean", "depth", "describe", "evaluate")

    depth: int

    def __init__(
        self, evaluate: Evaluate, describe: Callable[[], str], *parts: Node, boolean: bool = True
    ) -> None:
        self.evaluate = evaluate
        self.describe = describe  # called for error texts only: a chain's text may be long
        self.boolean = boolean
        self.depth = check_depth(1 + max((part.depth for part in parts), default=0))


def check_depth(depth: int) -> int:
    if depth > DEPTH_MAX:
        raise SelectorError(f"the expression nests deeper than {DEPTH_MAX}")
    return depth


class Constant(Node):
    __slots__ = ("value",)

    def __init__(self, value: Value) -> None:
        boolean = value is None or isinstance(value, bool)
        super().__init__(lambda _: value, lambda: _literal(value), boolean=boolean)
        self.value = value


class Property(Node):
    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        super().__init__(lambda properties: properties.get(name), lambda: name, boolean=False)
        self.name = name


class Chain(Node):
    """All links of one AND or OR, so that a long chain is a loop and not a tower of calls.

    The parser adds links one by one; a node has one parent, so nobody else sees it grow.
    """

    __slots__ = ("links", "stop")

    def __init__(self, links: list[Node], *, stop: bool) -> None:
        symbol = "||" if stop else "&&"
        super().__init__(_chain(links, stop), lambda: _chain_text(links, symbol), *links)
        self.links = links
        self.stop = stop

    def add(self, link: Node) -> None:
        self.depth = max(self.depth, check_depth(1 + link.depth))
        self.links.append(link)


def _chain(links: list[Node], stop: bool) -> Evaluate:
    def evaluate(properties: Properties) -> Value:
        answer: bool | None = not stop
        for link in links:
            value = link.evaluate(properties)
            if value is stop:
                return stop
            if value is None:
                answer = None
        return answer

    return evaluate


def _chain_text(links: list[Node], symbol: str) -> str:
    text = links[0].describe()
    for link in links[1:]:
        text = f"({text} {symbol} {link.describe()})"
    return text


def _literal(value: Value) -> str:
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    return text_of(value).upper() if value is None or isinstance(value, bool) else text_of(value)


def decimal(image: str) -> Constant:
    """A whole number: an Integer where it fits, else a Long."""
    digits = image.rstrip("lL")
    if len(digits) > len(str(LONG_MAX)) or int(digits) > LONG_MAX:
        raise SelectorError(f'java.lang.NumberFormatException: For input string: "{digits}"')
    value = int(digits)
    return Constant(value if value <= INTEGER_MAX else Long(value))


def floating(image: str) -> Constant:
    """A Double; Java refuses what is no positive finite number, and so 0.0 too."""
    value = float(image)
    if value > sys.float_info.max:
        raise SelectorError(f"{RUNTIME}: {image} is greater than 1.7976931348623157E308")
    if value <= 0:
        raise SelectorError(f"{RUNTIME}: {image} is less than 4.9E-324")
    return Constant(value)


def text_literal(image: str) -> str:
    """The text between the quotes; a doubled quote stands for one."""
    return image[1:-1].replace("''", "'")


def as_boolean(node: Node) -> Node:
    """A property alone is asked for being the Boolean true, which text never is."""
    if node.boolean:
        return node
    if isinstance(node, Property):
        name = node.name
        return Node(
            lambda properties: None if name not in properties else False, lambda: name, node
        )
    raise SelectorError(
        f"{PARSE}: Expression will not result in a boolean value: {node.describe()}"
    )


def any_of(left: Node, right: Node) -> Node:
    return _linked(left, right, stop=True)


def all_of(left: Node, right: Node) -> Node:
    return _linked(left, right, stop=False)


def _linked(left: Node, right: Node, *, stop: bool) -> Chain:
    left, right = as_boolean(left), as_boolean(right)
    if isinstance(left, Chain) and left.stop is stop:
        left.add(right)
        return left
    return Chain([left, right], stop=stop)


def negate(operand: Node) -> Node:
    inner = operand.evaluate
    return Node(
        lambda properties: negated(inner(properties)),
        lambda: f"(- {operand.describe()})",
        operand,
        boolean=False,
    )


def not_(operand: Node) -> Node:
    inner = as_boolean(operand).evaluate

    def evaluate(properties: Properties) -> Value:
        value = inner(properties)
        return None if value is None else not value

    return Node(evaluate, lambda: f"(NOT {operand.describe()})", operand)


def is_null(operand: Node) -> Node:
    return _equal(operand, Constant(None))


def is_not_null(operand: Node) -> Node:
    return not_(is_null(operand))


def equal(left: Node, right: Node) -> Node:
    for side in (left, right):
        if isinstance(side, Constant) and side.value is None:
            raise SelectorError(f"{RUNTIME}: '{side.describe()}' cannot be compared.")
    constants = isinstance(left, Constant) and isinstance(right, Constant)
    if constants and left.boolean and not right.boolean:
        raise SelectorError(
            f"{RUNTIME}: '{left.describe()}' cannot be compared with '{right.describe()}'"
        )
    return _equal(left, right)


def not_equal(left: Node, right: Node) -> Node:
    return not_(equal(left, right))


def _equal(left: Node, right: Node) -> Node:
    first, second = left.evaluate, right.evaluate

    def evaluate(properties: Properties) -> Value:
        one, other = first(properties), second(properties)
        if one is None:
            return True if other is None else None
        if other is None:
            return False
        return order(one, other) == 0

    describe = _binary_text(left, "==", right)
    if isinstance(left, Property) and isinstance(right, Constant) and isinstance(right.value, str):
        return Node(_equals_text(left.name, right.value), describe, left, right)
    return Node(evaluate, describe, left, right)


def _equals_text(name: str, text: str) -> Evaluate:
    def evaluate(properties: Properties) -> Value:
        value = properties.get(name)
        return None if value is None else value == text

    return evaluate


def _binary_text(left: Node, symbol: str, right: Node) -> Callable[[], str]:
    return lambda: f"({left.describe()} {symbol} {right.describe()})"


ORDERINGS: dict[str, Ordering] = {
    ">": lambda sign: sign > 0,
    ">=": lambda sign: sign >= 0,
    "<": lambda sign: sign < 0,
    "<=": lambda sign: sign <= 0,
}


def compare(left: Node, symbol: str, right: Node) -> Node:
    """One of > >= < <=, between numbers and text that reads as numbers."""
    for side in (left, right):
        if side.boolean or (isinstance(side, Constant) and isinstance(side.value, str)):
            raise SelectorError(f"{RUNTIME}: Value '{side.describe()}' cannot be compared.")
    holds = ORDERINGS[symbol]
    describe = _binary_text(left, symbol, right)
    if isinstance(left, Property) and isinstance(right, Constant):
        assert isinstance(right.value, int | float)
        return Node(_ordered(left.name, holds, right.value), describe, left, right)
    first, second = left.evaluate, right.evaluate

    def evaluate(properties: Properties) -> Value:
        one = first(properties)
        if one is None:
            return None
        other = second(properties)
        if other is None:
            return None
        if isinstance(one, str) and isinstance(other, str):
            one, other = parse_double(one), parse_double(other)
        return holds(order(one, other))

    return Node(evaluate, describe, left, right)


def _ordered(name: str, holds: Ordering, number: int | float) -> Evaluate:
    """A property against a number, which is what nearly all comparisons are."""
    read = parser_of(number)

    def evaluate(properties: Properties) -> Value:
        value = properties.get(name)
        return None if value is None else holds(order(read(value), number))

    return evaluate


def between(value: Node, low: Node, high: Node) -> Node:
    if isinstance(low, Constant) and isinstance(high, Constant):
        _check_bounds(low.value, high.value)
    return all_of(compare(value, ">=", low), compare(value, "<=", high))


def _check_bounds(low: Value, high: Value) -> None:
    if low is None or high is None:
        raise SelectorError(f"{RUNTIME}: Illegal values of between, values can not be null!")
    try:
        sign = order(high, low)
    except EvaluationError as error:
        raise SelectorError(f"{RUNTIME}: {error}") from None
    if sign < 0:
        raise SelectorError(
            f"{RUNTIME}: Illegal values of between, left value({text_of(low)}) must less than or "
            f"equal to right value({text_of(high)})"
        )


def not_between(value: Node, low: Node, high: Node) -> Node:
    return any_of(compare(value, "<", low), compare(value, ">", high))


def within(value: Node, texts: list[str], *, negative: bool) -> Node:
    """IN and NOT IN: a property among texts."""
    if not isinstance(value, Property):
        raise SelectorError(
            f"{RUNTIME}: Expected a property for In expression, got: {value.describe()}"
        )
    name, members = value.name, frozenset(texts)

    def evaluate(properties: Properties) -> Value:
        found = properties.get(name)
        return None if found is None else (found in members) is not negative

    word = "NOT IN" if negative else "IN"
    return Node(evaluate, lambda: f"{name} {word} ( {', '.join(texts)} )", value)


SEARCHES: dict[str, Callable[[str, str], bool]] = {
    "CONTAINS": lambda text, part: part in text,
    "STARTSWITH": str.startswith,
    "ENDSWITH": str.endswith,
}


def search(value: Node, word: str, part: str, *, negative: bool) -> Node:
    """CONTAINS, STARTSWITH and ENDSWITH: unlike all others never unknown, with NOT neither."""
    inner, found = value.evaluate, SEARCHES[word]

    def evaluate(properties: Properties) -> Value:
        if not part:
            return False
        text = inner(properties)
        return isinstance(text, str) and found(text, part) is not negative

    symbol = f"NOT {word}" if negative else word
    return Node(evaluate, lambda: f"({symbol} {value.describe()})", value)
