"""The catalogue, its page, and how cases are chosen."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from pyritemq.conformance import catalogue, pages
from pyritemq.conformance.cli import main

PAGE = Path(__file__).parents[3] / "docs" / "conformance.md"
FAMILIES_AT_LEAST, CASES_AT_LEAST = 25, 150


def test_the_page_is_the_catalogue() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert page == pages.with_rendered(page, catalogue.load()), (
        "run: pyritemq-conformance docs docs/conformance.md"
    )


def test_the_catalogue_is_as_large_as_promised_and_says_where_each_case_comes_from() -> None:
    cases = catalogue.load()
    assert len(cases) >= CASES_AT_LEAST
    assert len({case.family for case in cases}) >= FAMILIES_AT_LEAST
    assert [case.id for case in cases if ":" not in case.source] == []


def test_a_page_without_the_marks_is_refused() -> None:
    with pytest.raises(pages.PageError, match="must have the lines"):
        pages.with_rendered("# nothing", [])


def test_cases_are_chosen_by_family_id_and_glob() -> None:
    cases = catalogue.load()
    chosen = catalogue.select(cases, ["TXN-00*", "SEND-001", "VIP"])
    assert {case.family.prefix for case in chosen} == {"TXN", "SEND", "VIP"}
    assert sum(case.family.prefix == "SEND" for case in chosen) == 1
    core = catalogue.select(cases, [], core=True)
    assert core
    assert all(case.core for case in core)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["run", "--only", "NOPE-1"], "no case or family is called that"),
        (["run", "--server", "somewhere", "--only", "VIP"], "want pyrite, rocketmq or HOST:PORT"),
        (["run", "--launcher", "moon"], "is not one of"),
    ],
)
def test_a_wrong_command_line_is_one_sentence_and_exit_2(
    arguments: list[str], sentence: str
) -> None:
    result = CliRunner().invoke(main, [*arguments])
    assert result.exit_code == 2
    assert sentence in result.output
    assert "Traceback" not in result.output


@pytest.mark.parametrize(
    ("case_id", "docstring", "since"),
    [
        ("VIP-1", "x", "4.9.8"),
        ("NONE-001", "x", "4.9.8"),
        ("VIP-001", "x", "4.9.8"),
        ("VIP-999", "", "4.9.8"),
        ("VIP-999", "x", "new"),
    ],
)
def test_a_case_that_is_declared_wrongly_is_refused(
    case_id: str, docstring: str, since: str
) -> None:
    catalogue.load()

    def body(t: object) -> None: ...

    body.__doc__ = docstring
    with pytest.raises(catalogue.CatalogueError):
        catalogue.case(case_id, "title", source="test", since=since)(body)
