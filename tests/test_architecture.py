"""The rooms import one way, and each keeps to what it may touch.

import-linter's contract in pyproject.toml draws the same layers for people and editors; this test
needs nothing but the source, so it also holds for third-party and standard-library modules.
"""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

# What a room may import of the others; every room may import itself.
ROOMS = {
    "protocol": set(),
    "compat": {"protocol"},
    "storage": {"protocol", "compat"},
    "server": {"protocol", "compat", "storage"},
    "spark": {"protocol", "compat", "storage"},
    "conformance": {"protocol"},
}

THIRD_PARTY = {
    "protocol": {"construct", "orjson"},
    "compat": {"orjson"},
    "storage": {"construct"},
    "server": {"trio", "orjson", "click"},
    "spark": {"pyspark", "pyarrow", "numpy", "click"},
    "conformance": {"testcontainers", "pytest", "click", "yaml"},
}

FOR_TESTS = {"pytest", "testcontainers"}
"""What `pyritemq.testing` hooks into, and only it: a server installs without them."""

# The outside world, by room: sans-IO rooms have none of it, storage has files but no network.
BANNED = {
    "protocol": {"socket", "threading", "time", "os", "pathlib", "logging", "random", "secrets"},
    "compat": {"socket", "threading", "time", "os", "pathlib", "logging", "random", "secrets"},
    "storage": {"socket", "time", "asyncio"},
    "server": {"asyncio"},
    "spark": {"asyncio"},
    "conformance": set(),
}

FILES = [(room, path) for room in ROOMS for path in sorted((ROOT / room).rglob("*.py"))]


def imported_modules(path):
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: write imports from pyritemq on, not relative ones"
            module = node.module or ""
            yield from (f"{module}.{alias.name}" for alias in node.names)


def by_room(room):
    return [path for of_room, path in FILES if of_room == room]


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_imports_only_the_rooms_below_it(room):
    allowed = ROOMS[room] | {room}
    wrong = [
        f"{path.relative_to(ROOT)} imports {module}"
        for path in by_room(room)
        for module in imported_modules(path)
        if module.startswith("pyritemq.") and module.split(".")[1] not in allowed
    ]
    assert wrong == []


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_uses_only_its_own_dependencies(room):
    known = set().union(*THIRD_PARTY.values())
    wrong = [
        f"{path.relative_to(ROOT)} imports {module}"
        for path in by_room(room)
        for module in imported_modules(path)
        if (top := module.split(".")[0]) in known
        and top not in THIRD_PARTY[room]
        and not (top in FOR_TESTS and is_for_tests(path))
    ]
    assert wrong == []


def is_for_tests(path):
    return path.is_relative_to(ROOT / "server" / "testing")


def test_a_server_never_needs_what_is_for_tests():
    wrong = [
        f"{path.relative_to(ROOT)} imports {module}"
        for path in by_room("server")
        for module in imported_modules(path)
        if not is_for_tests(path) and module.startswith("pyritemq.server.testing")
    ]
    assert wrong == []


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_stays_away_from_what_it_must_not_touch(room):
    wrong = [
        f"{path.relative_to(ROOT)} imports {module}"
        for path in by_room(room)
        for module in imported_modules(path)
        if module.split(".")[0] in BANNED[room]
    ]
    assert wrong == []


@pytest.mark.parametrize("room", ["protocol", "compat"])
def test_sans_io_rooms_open_no_files(room):
    wrong = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path in by_room(room)
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "open"
    ]
    assert wrong == []


def test_the_rooms_are_the_folders_that_the_wheel_is_made_of():
    links = {link.name for link in (ROOT / ".editable" / "pyritemq").iterdir()}
    assert links == set(ROOMS) | {"testing"}  # names of server/testing, made public
