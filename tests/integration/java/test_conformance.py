"""The core of the conformance suite: official Java clients against PyriteMQ, case by case."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pyritemq.conformance import reports

if TYPE_CHECKING:
    from pyritemq.conformance.results import Run

SECONDS = 480.0
PLACES = {"process": "local"}
SERVERS = {"rocketmq": "rocketmq"}


@pytest.fixture(scope="module")
def core_run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """One run of the command, as a user runs it; every test below looks at its results."""
    folder = tmp_path_factory.mktemp("conformance")
    place = PLACES.get(os.environ.get("PYRITEMQ_JAVA_CLIENTS", ""), "containers")
    server = SERVERS.get(os.environ.get("PYRITEMQ_SERVER_UNDER_TEST", ""), "pyrite")
    command = [str(Path(sys.executable).parent / "pyritemq-conformance"), "run", "--core"]
    command += ["--launcher", place, "--server", server, "--report", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
    results = folder / "results.json"
    assert results.exists(), done.stdout + done.stderr
    return reports.run_from_json(results.read_text(encoding="utf-8"))


def test_no_case_of_the_core_fails(core_run: Run) -> None:
    assert [f"{one.case_id} {one.client}: {one.reason}" for one in core_run.failed()] == []


def test_both_clients_ran_and_nothing_was_skipped(core_run: Run) -> None:
    assert {"java-5.5.0", "java-4.9.8", "wire"} <= {one.client for one in core_run.results}
    assert [one.case_id for one in core_run.results if one.status == "skipped"] == []
