"""Children: waiting for a line, failing with a story, and stopping only what was started."""

from __future__ import annotations

import sys

import pytest

from pyritemq.conformance.processes import Child, ChildError, free_broker_port


def python(code, tmp_path):
    return Child("child", [sys.executable, "-u", "-c", code], folder=tmp_path)


def test_line_is_found_while_the_child_still_runs(tmp_path):
    with python("print('ready on 7'); import time; time.sleep(60)", tmp_path) as child:
        assert child.wait_for_line(r"ready on (\d+)", timeout=20)[1] == "7"
        assert child.returncode is None
        assert child.memory_kib() > 1000
    assert child.returncode == -15


def test_child_that_ends_early_fails_at_once_with_the_end_of_its_log(tmp_path):
    with (
        python("raise SystemExit('port in use')", tmp_path) as child,
        pytest.raises(ChildError, match=r"(?s)ended with 1 .*port in use"),
    ):
        child.wait_for_line("ready", timeout=60)


def test_child_that_ignores_sigterm_is_killed(tmp_path):
    code = "import signal, time; signal.signal(15, signal.SIG_IGN); print('up'); time.sleep(60)"
    child = python(code, tmp_path)
    child.wait_for_line("up", timeout=20)
    assert child.stop(timeout=0.05) == -9


def test_free_broker_port_leaves_room_for_its_neighbours():
    assert free_broker_port() > 2
