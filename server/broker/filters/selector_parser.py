"""The grammar of RocketMQ's selectors, read by lark; imported when the first SQL filter comes.

Java's parser is LL and stops at the first token that cannot go on, without asking for the end of
the text: `a = 1 anything` is `a = 1`.  So tokens are fed one by one, and a token that does not fit
is an error only where the expression could not end.  RocketMQ 5.5.0: SelectorParser.jj.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from lark import Lark, Token, Transformer, UnexpectedCharacters, UnexpectedToken, v_args

from pyritemq.server.broker.filters import selector_nodes as nodes
from pyritemq.server.broker.filters.selector_nodes import Node
from pyritemq.server.broker.filters.selector_remarks import lexical_error, syntax_error

if TYPE_CHECKING:
    from lark.parsers.lalr_interactive_parser import InteractiveParser

GRAMMAR = r"""
?start: either
?either: both | either OR both -> any_of
?both: equality | both AND equality -> all_of
?equality: comparison
    | equality EQUAL comparison -> equal
    | equality DIFFERENT comparison -> not_equal
    | equality IS NULL -> is_null
    | equality IS NOT NULL -> is_not_null
?comparison: unary
    | comparison (GREATER | GREATER_EQUAL | LESS | LESS_EQUAL) unary -> compare
    | comparison (CONTAINS | STARTSWITH | ENDSWITH) STRING -> search
    | comparison NOT (CONTAINS | STARTSWITH | ENDSWITH) STRING -> search
    | comparison BETWEEN unary AND unary -> between
    | comparison NOT BETWEEN unary AND unary -> not_between
    | comparison IN OPEN STRING (COMMA STRING)* CLOSE -> within
    | comparison NOT IN OPEN STRING (COMMA STRING)* CLOSE -> within
?unary: PLUS unary -> plus
    | MINUS unary -> negate
    | NOT unary -> not_
    | primary
?primary: STRING -> text
    | DECIMAL -> decimal
    | FLOATING -> floating
    | TRUE -> true
    | FALSE -> false
    | NULL -> null
    | ID -> variable
    | OPEN either CLOSE -> enclosed

NOT.9: /not(?![a-z0-9_$])/i
AND.9: /and(?![a-z0-9_$])/i
OR.9: /or(?![a-z0-9_$])/i
BETWEEN.9: /between(?![a-z0-9_$])/i
IN.9: /in(?![a-z0-9_$])/i
TRUE.9: /true(?![a-z0-9_$])/i
FALSE.9: /false(?![a-z0-9_$])/i
NULL.9: /null(?![a-z0-9_$])/i
IS.9: /is(?![a-z0-9_$])/i
CONTAINS.9: /contains(?![a-z0-9_$])/i
STARTSWITH.9: /startswith(?![a-z0-9_$])/i
ENDSWITH.9: /endswith(?![a-z0-9_$])/i
FLOATING.8: /[0-9]+\.[0-9]*([eE][+-]?[0-9]+)?|\.[0-9]+([eE][+-]?[0-9]+)?|[0-9]+[eE][+-]?[0-9]+/
DECIMAL.7: /0|[1-9][0-9]*[lL]?/
STRING: /'(''|[^'])*'/
ID: /[a-zA-Z_$][a-zA-Z0-9_$]*/
EQUAL: "="
DIFFERENT.2: "<>"
GREATER_EQUAL.2: ">="
LESS_EQUAL.2: "<="
GREATER: ">"
LESS: "<"
OPEN: "("
COMMA: ","
CLOSE: ")"
PLUS: "+"
MINUS: "-"

SPACE: /[ \t\n\r\f]+/
BLOCK_COMMENT.9: /\/\*[^*]*\*(\*|[^*\/][^*]*\*)*\//
%ignore SPACE
%ignore BLOCK_COMMENT
"""

_OPENING = re.compile(r"'|/\*|--")
_WHOLE = {
    "'": re.compile(r"'(''|[^'])*'"),
    "/*": re.compile(r"/\*[^*]*\*(\*|[^*/][^*]*\*)*/"),
    "--": re.compile(r"--[^\n\r]*(\r\n|\n|\r)"),
}
END = "$END"


@v_args(inline=True)
class _Builder(Transformer[Token, Node]):
    """Names of the grammar's branches to the functions that make nodes."""

    def any_of(self, left: Node, _: Token, right: Node) -> Node:
        return nodes.any_of(left, right)

    def all_of(self, left: Node, _: Token, right: Node) -> Node:
        return nodes.all_of(left, right)

    def equal(self, left: Node, _: Token, right: Node) -> Node:
        return nodes.equal(left, right)

    def not_equal(self, left: Node, _: Token, right: Node) -> Node:
        return nodes.not_equal(left, right)

    def is_null(self, value: Node, *_: Token) -> Node:
        return nodes.is_null(value)

    def is_not_null(self, value: Node, *_: Token) -> Node:
        return nodes.is_not_null(value)

    def compare(self, left: Node, symbol: Token, right: Node) -> Node:
        return nodes.compare(left, str(symbol), right)

    def search(self, value: Node, *words: Token) -> Node:
        *_, word, part = words
        text = nodes.text_literal(part)
        return nodes.search(value, word.upper(), text, negative=words[0].type == "NOT")

    def between(self, value: Node, _: Token, low: Node, __: Token, high: Node) -> Node:
        return nodes.between(value, low, high)

    def not_between(
        self, value: Node, _: Token, __: Token, low: Node, ___: Token, high: Node
    ) -> Node:
        return nodes.not_between(value, low, high)

    def within(self, value: Node, *rest: Token) -> Node:
        texts = [nodes.text_literal(token) for token in rest if token.type == "STRING"]
        return nodes.within(value, texts, negative=rest[0].type == "NOT")

    def plus(self, _: Token, value: Node) -> Node:
        return value

    def negate(self, _: Token, value: Node) -> Node:
        return nodes.negate(value)

    def not_(self, _: Token, value: Node) -> Node:
        return nodes.not_(value)

    def text(self, token: Token) -> Node:
        return nodes.Constant(nodes.text_literal(token))

    def decimal(self, token: Token) -> Node:
        return nodes.decimal(token)

    def floating(self, token: Token) -> Node:
        return nodes.floating(token)

    def true(self, _: Token) -> Node:
        return nodes.Constant(True)

    def false(self, _: Token) -> Node:
        return nodes.Constant(False)

    def null(self, _: Token) -> Node:
        return nodes.Constant(None)

    def variable(self, token: Token) -> Node:
        return nodes.Property(str(token))

    def enclosed(self, _: Token, value: Node, __: Token) -> Node:
        return value


_LARK = Lark(
    GRAMMAR,
    parser="lalr",
    lexer="basic",
    transformer=_Builder(),
    maybe_placeholders=False,
)


def parse(text: str) -> Node:
    """The expression that a text begins with.  Raises SelectorError."""
    parser = _LARK.parse_interactive(_without_line_comments(text))
    try:
        for token in parser.lexer_thread.lex(parser.parser_state):
            try:
                parser.feed_token(token)
            except UnexpectedToken:
                return nodes.as_boolean(_ended(parser, token, text))
    except UnexpectedCharacters as fault:
        _settle(parser, "GREATER", "AND")
        raise lexical_error(text, fault.pos_in_stream or 0) from None
    return nodes.as_boolean(_ended(parser, None, text))


def _without_line_comments(text: str) -> str:
    """The same text with blanks for comments that run to the end of their line.

    Without such an end two dashes are two minuses.  A lexer that tries for a comment at each of
    them takes the square of their number: 32,000 took ten seconds.
    """
    if "--" not in text:
        return text
    pieces, position = [], 0
    while opening := _OPENING.search(text, position):
        start = opening.start()
        whole = _WHOLE[opening[0]].match(text, start)
        if whole is None:
            break  # two minuses at the end, or a token without an end: the lexer will see
        blank = opening[0] == "--"
        pieces += [text[position:start], " " * len(whole[0]) if blank else whole[0]]
        position = whole.end()
    return "".join(pieces) + text[position:]


def _ended(parser: InteractiveParser, stranger: Token | None, text: str) -> Node:
    """The expression before a token that does not fit (None: before the end of the text)."""
    expected = parser.accepts()
    if END in expected:
        node = parser.feed_eof()
        assert isinstance(node, Node)
        return node
    if "COMMA" not in expected:
        _settle(parser, "CLOSE", "AND")
    raise syntax_error(text, parser.parser_state.value_stack, stranger, expected)


def _settle(parser: InteractiveParser, *next_tokens: str) -> None:
    """Make the checks that Java has made by now: it does not look a token ahead for them."""
    pending = parser.parser_state.value_stack
    if any(isinstance(item, Token) and item.type == "PLUS" for item in pending):
        return  # Java reads on to the end of such an operand before it checks anything
    expected = parser.accepts()
    for name in next_tokens:
        if name in expected:
            parser.copy().feed_token(Token(name, ""))
            return
