"""The suite sees what it is there to see: under each broken server a case of its family fails."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pyritemq.conformance import catalogue, mutants
from pyritemq.conformance.launchers import LocalLauncher
from pyritemq.conformance.mutations import MUTATIONS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def launcher(tmp_path: Path) -> Iterator[LocalLauncher]:
    made = LocalLauncher(tmp_path)
    yield made
    made.close()


def test_every_broken_server_is_noticed(launcher: LocalLauncher) -> None:
    assert mutants.unnoticed(mutants.run_mutants(launcher)) == []


def test_every_family_has_a_broken_server() -> None:
    families = {case.family.prefix for case in catalogue.load()}
    assert families - {mutation.family for mutation in MUTATIONS} == set()
