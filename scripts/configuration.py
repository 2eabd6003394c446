"""Write docs/configuration.md from the declarations in compat/conf/.

    python scripts/configuration.py            print the page
    python scripts/configuration.py --write    put it into docs/

A test holds the page to it, and another one holds "has effect" to what the server reads.
"""

from __future__ import annotations

import sys
from itertools import groupby
from pathlib import Path

from pyritemq.compat.broker_conf import BrokerConfig
from pyritemq.compat.conf.settings import HostFacts, Key, Settings, print_value
from pyritemq.compat.namesrv_conf import NamesrvConfig
from pyritemq.server.broker.live_config import FIXED_KEYS, NEXT_START_KEYS

PAGE = Path(__file__).parent.parent / "docs" / "configuration.md"

FILES: tuple[tuple[str, type[Settings]], ...] = (
    ("broker.conf", BrokerConfig),
    ("namesrv.conf", NamesrvConfig),
)

INTRODUCTION = """\
# Configuration

<!-- made by scripts/configuration.py from compat/conf/ -->

`pyritemq broker -c FILE`, `pyritemq serve -c FILE` and `mqbroker -c FILE` read an ordinary
`broker.conf`, `pyritemq namesrv -c FILE` and `mqnamesrv -c FILE` an ordinary `namesrv.conf`:
`name=value` lines with RocketMQ 5.5.0's names and defaults. All of its names are taken, so that an
existing file works. A value that cannot be used is refused in one sentence; a name that is not
known is ignored with a warning that tells the nearest known one.

Names with a ✔ have an effect here. The others are kept and shown (`mqadmin getBrokerConfig`, `-p`)
and change nothing: they tune what is done in another way here, or belong to a part that is not
there.

`mqadmin updateBrokerConfig` changes a running broker and its file (the one given with `-c`). Names
with a plain ✔ work at once. Those marked "next start" are taken, saved and shown, and work when the
broker starts again; for the most part, a Java broker needs a restart for them as well. Those marked
"at start" are refused, since the running broker rests on them: edit the file and start again.
"""

# Shown where a default is taken from the machine; two of them tell what depends on its size.
SMALL, LARGE = (
    HostFacts(host_name="(host name)", address="(address)", home="(home)", processors=processors)
    for processors in (1, 1000)
)


def render() -> str:
    """The whole page."""
    parts = [INTRODUCTION]
    for name, table in FILES:
        keys = [key for key in table.KEYS.values() if key.file_key]
        used = sum(key.used for key in keys)
        parts.append(f"## {name}\n\n{len(keys)} names, {used} of them with an effect here.\n")
        keys.sort(key=lambda key: key.section)  # stable: Java's order within a class
        for section, group in groupby(keys, key=lambda key: key.section):
            rows = [_row(key) for key in group]
            head = "| name | type | default | effect |\n|---|---|---|---|"
            parts.append(f"### Java's {section}\n\n{head}\n" + "\n".join(rows) + "\n")
    return "\n".join(parts)


def _row(key: Key) -> str:
    return f"| `{key.file_key}` | {_kind(key)} | {_default(key)} | {_effect(key)} |"


def _effect(key: Key) -> str:
    if not key.used:
        return ""
    if key.name in FIXED_KEYS:
        return "✔ at start"
    return "✔ next start" if key.name in NEXT_START_KEYS else "✔"


def _kind(key: Key) -> str:
    if key.choices:
        return ", ".join(f"`{choice}`" for choice in key.choices)
    low = "" if key.at_least is None else f" from {key.at_least}"
    high = "" if key.at_most is None else f" to {key.at_most}"
    return key.java_type + low + high


def _default(key: Key) -> str:
    value = key.default_for(SMALL)
    if value != key.default_for(LARGE):
        return "by the number of processors"
    text = print_value(value)
    return f"`{text}`".replace("|", "\\|") if text else ""


def main() -> None:
    if "--write" in sys.argv[1:]:
        PAGE.write_text(render(), encoding="utf-8")
    else:
        sys.stdout.write(render())


if __name__ == "__main__":
    main()
