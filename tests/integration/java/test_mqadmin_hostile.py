"""Every sub-command of the stock mqadmin with missing, wrong and hostile arguments.

Addresses and the tools' own files stay as they are, so that what is hostile reaches the server
where the tool lets it. What the tool prints is its own matter: the server must go on, log no fault,
write nothing outside its store, and leave a store that checks.
"""

from __future__ import annotations

import re
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from integration.java.mqadmin import Mqadmin
from integration.java.test_mqadmin_same import COMMANDS
from pyritemq.conformance.servers.cluster import pyrite_cluster

if TYPE_CHECKING:
    from collections.abc import Iterator

TOOL_MS = 1000
"""A tool that would ask for ever is interrupted; most are done in a hundredth of it."""

HOSTILE = {
    "a path and a number below zero": ("../../pyritemq-evil", "-1"),
    "ten thousand letters and a number beyond": ("e" * 10_000, str(2**63)),
    "a NUL, and words for numbers": ("evil\0name %s {} топик", "many"),
}
KEPT = ("{ns}", "{broker}", "broker-a", "DefaultCluster", "{folder}")
"""Where the server is, and where a tool writes files of its own."""


def sub_commands() -> list[list[str]]:
    """One line for each sub-command, of those that the comparison runs, and not twice."""
    found: dict[str, list[str]] = {}
    for line in COMMANDS:
        words = [word for word in line.split() if not word.startswith("@")]
        if len(words) >= len(found.get(words[0], ())):
            found[words[0]] = words
    return list(found.values())


def hostile(words: list[str], text: str, number: str) -> Iterator[str]:
    """The command with each value replaced that is neither an address nor a file."""
    yield words[0]
    for option, word in pairwise(words):
        is_value = option.startswith("-") and not word.startswith("-")
        if not is_value or "/" in word or word in KEPT:
            yield word
        else:
            yield number if word.isdigit() else text


def test_bad_arguments_leave_server_and_store_sound(tmp_path: Path) -> None:
    tools, server = tmp_path / "tools", tmp_path / "server"
    with pyrite_cluster(server, properties={"brokerName": "broker-a"}) as cluster:
        places = {"ns": cluster.namesrv, "broker": cluster.broker, "folder": str(tools)}
        places |= {"store": str(tools), "id": "7F000001" * 4, "offset_id": "0" * 32}

        def known(*words: str) -> list[str]:
            return [re.sub(r"\{(\w+)\}", lambda m: places[m[1]], word) for word in words]

        assert "offset 0" in ours("send", "Sound", "before", "-n", cluster.namesrv)
        with Mqadmin(tools) as mqadmin:
            for words in sub_commands():
                for tried in attempts(words):
                    mqadmin(f"~{TOOL_MS}", *known(*tried))
        ours("send", "Sound", "after", "-n", cluster.namesrv)
        tail = ("tail", "Sound", "--from-start", "--no-follow", "-n", cluster.namesrv)
        shown = sorted(line.split()[-1] for line in ours(*tail).splitlines())
        assert shown == ["after", "before"]
        listed = ours("topic", "list", "--all", "-n", cluster.namesrv)
        names = [line.split()[0] for line in listed.splitlines()[1:]]
        assert [name for name in names if not re.fullmatch(r"[%|\w-]{1,127}", name)] == []
        outputs = [child.output() for child in cluster.children]
    assert [text for text in outputs if "Traceback" in text or " ERROR " in text] == []
    assert [*server.rglob("*evil*")] == []
    assert "no problem found" in ours("store", "check", server / "store")


def ours(*arguments: object) -> str:
    """What a command of ours prints: it asks without a Java client's impatience."""
    command = [Path(sys.executable).parent / "pyritemq", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def attempts(words: list[str]) -> Iterator[list[str]]:
    """A sub-command with nothing, with the name server alone, and with each hostile pair."""
    yield words[:1]
    yield [words[0], "-n", "{ns}"]
    for text, number in HOSTILE.values():
        yield list(hostile(words, text, number))


@pytest.mark.parametrize("kind", HOSTILE)
def test_a_hostile_command_keeps_its_addresses(kind: str) -> None:
    words = ["updateTopic", "-n", "{ns}", "-b", "{broker}", "-t", "AT", "-r", "2"]
    text, number = HOSTILE[kind]
    expected = ["updateTopic", "-n", "{ns}", "-b", "{broker}", "-t", text, "-r", number]
    assert list(hostile(words, text, number)) == expected
