"""Makes selectors.json: what RocketMQ's own parser says of expressions, chosen and random.

    python make_golden.py '<folder of the RocketMQ 5.5.0 jars>' [number of random expressions]

Each expression is parsed and evaluated for every set of properties by SelectorOracle.java.
"""

import json
import random
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
RANDOM_COUNT = 600
SEED = 55

PROPERTIES = [
    {},
    {"a": "5", "b": "true", "c": "abc"},
    {"a": "5.5", "b": "FALSE", "c": "5"},
    {"a": "-3", "b": "x", "c": ""},
    {"a": " 7 ", "b": "3000000000", "c": "O'Neil"},
    {"a": "+2147483647", "b": "1e3", "c": "NaN"},
    {"a": "2147483648", "b": "0x1.8p1", "c": "-0.0", "d": "0.0"},
    {"a": "9223372036854775808", "b": "1_0", "c": "Infinity", "d": "5f"},
    {"a": "٥", "b": "𝟓", "c": "True", "$x_1": "y"},  # noqa: RUF001 - digits, to Java and not
]

BY_HAND = [
    "a > 5",
    "a >= 5 AND c = 'abc'",
    "a BETWEEN 0 AND 5",
    "a NOT BETWEEN 0 AND 5.5",
    "a IN ('5', '-3')",
    "c NOT IN ('abc')",
    "c IN ('1','2','3','4','5')",
    "c IS NULL",
    "c IS NOT NULL",
    "NOT c IS NULL",
    "NOT (c IS NULL)",
    "b",
    "NOT b",
    "b = TRUE",
    "TRUE = b",
    "b = FALSE",
    "TRUE",
    "FALSE",
    "NULL",
    "TRUE = TRUE",
    "NULL IS NULL",
    "5 = TRUE",
    "'true' = TRUE",
    "(a > 3) = TRUE",
    "b = (a > 3)",
    "(a > 3) = b",
    "a = b",
    "a <> b",
    "a > b",
    "a < b",
    "c > d",
    "c = d",
    "a = -2147483648",
    "a <> -2147483648",
    "a > -(-5)",
    "a > -'x'",
    "a = +5",
    "-a = 5",
    "a = 5.0",
    "a = 5l",
    "a = 5L",
    "a > 4.9e-324",
    "a > 1E2",
    "a > .5",
    "a > 5.",
    "c = 'O''Neil'",
    "c CONTAINS 'b'",
    "c NOT CONTAINS 'b'",
    "c CONTAINS ''",
    "c NOT CONTAINS ''",
    "c STARTSWITH 'a'",
    "c NOT STARTSWITH 'a'",
    "c ENDSWITH 'c'",
    "c NOT ENDSWITH 'c'",
    "5 CONTAINS '5'",
    "(a > 5) CONTAINS '5'",
    "d NOT CONTAINS 'x'",
    "a = 1 = TRUE",
    "a > 5 > 3",
    "$x_1 = 'y'",
    "a > 5 OR b = 'x'",
    "b = 'x' OR a > 5",
    "a > 5 AND b = 'x'",
    "b = 'x' AND a > 5",
    "a = 1 whatever follows",
    "a = 1 'x",
    "a = 1)",
    "a = 1 -- comment",
    "a = 1 -- comment\n AND c = 'x'",
    "a /* c */ = /***/ 5",
    "a = 1 /* open",
    "a=1/",
    "a = .",
    "a = .b",
    "a ! 5",
    "a != 5",
    "a # b",
    "a LIKE 'x%'",
    "a = 007",
    "a = 1b",
    "nota > 1",
    "not a",
    "a\t>\t",
    "a\r\n>",
    "a >\n",
    "a > \r\n\t #",
    "é",
    "a = é b",
    "a = 'é\n\"",
    "😀 = 1",
    "a 😀 ",
    "a = '😀' AND",
    "a >",
    "",
    " ",
    "\n",
    "-- x\n",
    "a > 5 AND",
    "a IS b",
    "a NOT b",
    "a CONTAINS 5",
    "a IN 'x'",
    "a IN ('x' 'y')",
    "a BETWEEN 1 OR 2",
    "(a = 1 b)",
    "a = 'x",
    "a > 'x'",
    "5",
    "'x'",
    "5.5",
    "1e10",
    "12345678.9",
    "0.0001",
    "TRUE = 5",
    "a = NULL",
    "NULL = a",
    "a BETWEEN 5 AND 1",
    "a BETWEEN 5.5 AND 1",
    "a BETWEEN NULL AND 1",
    "a BETWEEN 'x' AND 1",
    "a BETWEEN 1e10 AND 3",
    "'x' IN ('y')",
    "(a > 1) IN ('y')",
    "(a = 1 AND b = 2 OR c = 3) IN ('y')",
    "(a IN ('p', 'q')) IN ('y')",
    "(NOT a) > 5",
    "(a CONTAINS 'x') > 5",
    "(a IS NULL) > 5",
    "(-a) IN ('x')",
    "a = 9223372036854775807",
    "a = 9223372036854775808",
    "a = 0.0",
    "a = 1e400",
    "a = 1e-400",
    "+",
    "+ +",
    "+ a b",
    "(+ a b)",
    "+ (a > )",
    "a > + NOT",
    "a > + #",
    "(a > 'x' b",
    "a > 'x' #",
    "(a = NULL b",
    "a = NULL #",
    "a IS NOT b",
    "a IS NOT",
    "a IS",
    "a NOT",
    "a NOT IN 5",
    "a NOT IN ()",
    "a IN ('b',)",
    "a NOT STARTSWITH",
    "a NOT BETWEEN 1 2",
    "((",
    "a > (a NOT",
    "NOT NOT )",
    "NOT",
    "-",
    "- 5 > 3 = 3 AND",
    "a > 5 b #",
    "a BETWEEN 1 AND 2 AND 3",
    "a BETWEEN 1 AND 2 AND c = 'x'",
    "a IN ('x') IN ('y')",
    "NOT a = 1",
    "NOT NOT b",
]

OPERANDS = [
    "a",
    "b",
    "c",
    "d",
    "5",
    "-5",
    "5.5",
    "3000000000",
    "'5'",
    "'abc'",
    "TRUE",
    "FALSE",
    "NULL",
    "0",
]
TEXTS = ["'5'", "'abc'", "'b'", "''", "'O''Neil'"]
NOISE = [
    "(",
    ")",
    "NOT",
    "AND",
    ",",
    "+",
    "-",
    "'",
    "#",
    "IS",
    "\n",
    "\t",
    "é",
    "--",
    "IN",
    "=",
    "x",
    ".",
]


def expression(chance: random.Random, depth: int = 0) -> list[str]:
    """Tokens of an expression; most of them make sense."""
    kind = chance.randrange(12 if depth < 3 else 7)
    operand = [chance.choice(OPERANDS)]
    if kind < 3:
        return [chance.choice("abcd"), chance.choice(["=", "<>", ">", ">=", "<", "<="]), *operand]
    if kind == 3:
        word = [
            *chance.choice([[], ["NOT"]]),
            chance.choice(["CONTAINS", "STARTSWITH", "ENDSWITH"]),
        ]
        return [*operand, *word, chance.choice(TEXTS)]
    if kind == 4:
        bounds = sorted(chance.choices([-5, 0, 5, 5.5, 3000000000], k=2))
        return [
            chance.choice("abcd"),
            *chance.choice([[], ["NOT"]]),
            "BETWEEN",
            str(bounds[0]),
            "AND",
            str(bounds[1]),
        ]
    if kind == 5:
        return [
            chance.choice("abc"),
            *chance.choice([[], ["NOT"]]),
            "IN",
            "(",
            chance.choice(TEXTS),
            ",",
            "'x'",
            ")",
        ]
    if kind == 6:
        return [*operand, "IS", *chance.choice([[], ["NOT"]]), "NULL"]
    if kind == 7:
        return ["NOT", "(", *expression(chance, depth + 1), ")"]
    if kind == 8:
        return ["(", *expression(chance, depth + 1), ")", chance.choice(["=", "<>"]), *operand]
    joined = [
        *expression(chance, depth + 1),
        chance.choice(["AND", "OR"]),
        *expression(chance, depth + 1),
    ]
    return ["(", *joined, ")"] if kind == 9 else joined


def spoiled(chance: random.Random, tokens: list[str]) -> list[str]:
    """The same with a token or two lost, doubled or foreign."""
    tokens = list(tokens)
    for _ in range(chance.randrange(1, 3)):
        place = chance.randrange(len(tokens))
        tokens[place : place + chance.randrange(2)] = chance.choices(NOISE, k=chance.randrange(2))
        tokens = tokens or ["a"]
    return tokens


def random_expressions(count: int) -> list[str]:
    chance = random.Random(SEED)
    found = []
    for _ in range(count):
        tokens = expression(chance)
        if chance.random() < 0.4:
            tokens = spoiled(chance, tokens)
        found.append(" ".join(tokens))
    return found


def main(jars: str, count: str = str(RANDOM_COUNT)) -> None:
    bloom = [
        [20, 32, "group#topic"],
        [20, 32, "组#主题"],
        [1, 1000, ""],
        [99, 1, "x" * 40],
        [10, 128, "a" * 15],
    ]
    expressions = list(dict.fromkeys(BY_HAND + random_expressions(int(count))))
    cases = {"properties": PROPERTIES, "expressions": expressions, "bloom": bloom}
    given = HERE / "cases.tmp"
    given.write_text(json.dumps(cases))
    golden = HERE / "selectors.json"
    command = [
        "java",
        "-cp",
        f"{jars}/*",
        str(HERE / "SelectorOracle.java"),
        str(given),
        str(golden),
    ]
    subprocess.run(command, check=True)
    given.unlink()
    answers = json.loads(golden.read_text())
    for case, answer in zip(bloom, answers["bloom"], strict=True):
        answer["given"] = case
    golden.write_text(json.dumps(answers, indent=0, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
