"""Write the table of request codes in docs/compatibility.md from the handlers' declarations.

    python scripts/request_codes.py            print what the page should hold
    python scripts/request_codes.py --write    put it into the page

A test holds the page to it.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pyritemq.server.broker.processors
import pyritemq.server.namesrv.processors  # noqa: F401 - both fill the registries of handlers
from pyritemq.protocol.codes import RequestCode
from pyritemq.server.registry import Handler, Registry, broker_handlers, namesrv_handlers

PAGE = Path(__file__).parent.parent / "docs" / "compatibility.md"
BEGIN = "<!-- request codes: made by scripts/request_codes.py -->"
END = "<!-- end of request codes -->"


def render() -> str:
    """The table, and the codes that are missing from it."""
    broker, namesrv = _by_code(broker_handlers), _by_code(namesrv_handlers)
    handled = [code for code in RequestCode if code in broker or code in namesrv]
    missing = [code for code in RequestCode if code not in broker and code not in namesrv]
    rows = [
        f"| {code.value} | {code.name} | {_place(broker, code)} | {_place(namesrv, code)} |"
        for code in sorted(handled)
    ]
    names = ", ".join(f"{code.name} ({code.value})" for code in sorted(missing))
    lines = [
        f"{len(handled)} of {len(RequestCode)} codes have a handler.",
        "",
        "| code | name | broker: lane, module | name server: lane, module |",
        "|---|---|---|---|",
        *rows,
        "",
        f"Without a handler: {names}.",
    ]
    return "\n".join(lines)


def _by_code(registry: Registry[Any]) -> dict[int, Handler[Any]]:
    return registry.table()


def _place(handlers: dict[int, Handler[Any]], code: RequestCode) -> str:
    handler = handlers.get(code)
    if handler is None:
        return ""
    function = handler.single or handler.batch
    return f"{handler.lane}, {function.__module__.partition('processors.')[2]}"


def replaced(page: str) -> str:
    """The page with today's table between the two marks."""
    head, _, rest = page.partition(BEGIN)
    _, _, tail = rest.partition(END)
    return f"{head}{BEGIN}\n{render()}\n{END}{tail}"


if __name__ == "__main__":
    if sys.argv[1:] == ["--write"]:
        PAGE.write_text(replaced(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    else:
        sys.stdout.write(render() + "\n")
