"""The registry of clients: what is declared of them, and what a run makes of it."""

from __future__ import annotations

import json
import re
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import pytest

from pyritemq.conformance import catalogue
from pyritemq.conformance.drivers import build, registry
from pyritemq.conformance.drivers.build import DriverBuildError, Program
from pyritemq.conformance.drivers.registry import CLIENTS, JAVA_CLIENTS, Client
from pyritemq.conformance.launchers import SharedDrivers

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from pyritemq.conformance.drivers.link import Driver

OTHERS = [client for client in CLIENTS.values() if client.language != "Java"]

SOURCES = {"go": "main.go", "node": "driver.js", "python": "driver.py"}
"""Where each driver says which features it has."""


def wanted_features() -> set[str]:
    return {feature for case in catalogue.load() for feature in case.features}


def said_features(client: Client) -> set[str]:
    """The words of the driver's own list, as its source has them."""
    kind = client.name.partition("-")[0]
    text = (build.HERE / kind / SOURCES[kind]).read_text(encoding="utf-8")
    found = re.search(r"(?is)\bfeatures\b[^=]*=[^\w\"']*(?:string)?\s*[\[{(]+(.*?)[\])}]", text)
    assert found, f"no list of features in {SOURCES[kind]}"
    return set(re.findall(r"[\"'](\w+)[\"']", found.group(1)))


def test_names_on_the_command_line_are_clients_and_all_is_each_of_them() -> None:
    assert registry.named("go-2.1.2, java-4.9.8") == ["go-2.1.2", "java-4.9.8"]
    assert registry.named("all") == list(CLIENTS)
    with pytest.raises(registry.UnknownClientError, match="no driver for client 'go'"):
        registry.named("go")


def test_java_comes_first_and_is_the_default() -> None:
    assert tuple(CLIENTS)[:2] == JAVA_CLIENTS


@pytest.mark.parametrize(
    "client", [one for one in OTHERS if not one.unusable], ids=lambda client: client.name
)
def test_a_client_has_each_feature_or_says_why_not(client: Client) -> None:
    said = said_features(client)
    assert said & set(client.lacks) == set()
    assert wanted_features() <= said | set(client.lacks)


@pytest.mark.parametrize("client", OTHERS, ids=lambda client: client.name)
def test_what_a_client_does_wrong_names_cases_that_exist_and_has_a_reason(client: Client) -> None:
    ids = [case.id for case in catalogue.load()]
    for pattern, reason in client.broken.items():
        assert any(client.reason_against(case_id) == reason for case_id in ids), pattern
        assert reason


def test_a_lock_file_names_versions_and_no_registry() -> None:
    lock = json.loads((build.HERE / "node" / "package-lock.json").read_text(encoding="utf-8"))
    packages = {name: one for name, one in lock["packages"].items() if name}
    assert packages["node_modules/ali-ons"]["version"] == "3.12.0"
    assert all("resolved" not in one and "integrity" in one for one in packages.values())


def test_a_missing_tool_is_said_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(
        DriverBuildError, match=r"client node-3\.12\.0 needs node and npm on the path"
    ):
        build.program("node-3.12.0")


def test_a_driver_is_built_once_for_each_content(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    sources = tmp_path / "sources"
    sources.mkdir()
    (sources / "main.go").write_text("one")
    made: list[str] = []

    def make(folder: Path) -> None:
        made.append((sources / "main.go").read_text())
        (folder / "driver").write_text(made[-1])

    first = build.cached("go-1", sources, make)
    assert build.cached("go-1", sources, make) == first
    (sources / "main.go").write_text("two")
    second = build.cached("go-1", sources, make)
    assert made == ["one", "two"]
    assert [(folder / "driver").read_text() for folder in (first, second)] == made


def test_a_build_that_fails_leaves_nothing_and_says_what_the_tool_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))

    def make(folder: Path) -> None:
        build.run_builder(["sh", "-c", "echo no such crate >&2; exit 3"], folder)

    with pytest.raises(DriverBuildError, match="no such crate"):
        build.cached("rust-1", build.HERE / "go", make)
    assert list((tmp_path / "pyritemq" / "drivers").iterdir()) == []


def test_a_command_is_given_the_folder_in_which_the_driver_lies(tmp_path: Path) -> None:
    program = Program(tmp_path, ("/usr/bin/node", "{}/driver.js"))
    assert program.argv("/driver") == ["/usr/bin/node", "/driver/driver.js"]


class DyingDrivers(SharedDrivers):
    """A launcher whose drivers are only a word, and whether they are still there."""

    def driver(self, client: str, *, flags: Sequence[str] = ()) -> Driver:
        return cast("Driver", SimpleNamespace(name=client, ended=False))


def test_a_driver_that_died_is_started_anew_for_the_next_case() -> None:
    place = DyingDrivers()
    first = place.shared_driver("python-0.4.4")
    assert place.shared_driver("python-0.4.4") is first
    first.ended = True  # type: ignore[misc]
    assert place.shared_driver("python-0.4.4") is not first
