"""`pyritemq spark-report`: mistakes are told before Spark is started."""

import pytest
from click.testing import CliRunner

from pyritemq.server.cli import main


def run(*words):
    return CliRunner().invoke(main, ["spark-report", *words])


def test_a_path_that_is_no_store_is_one_sentence(tmp_path):
    result = run(str(tmp_path))
    assert result.exit_code == 1
    assert (
        result.stderr == f"pyritemq: {tmp_path} is no RocketMQ store: it has no folder commitlog\n"
    )


def test_without_java_it_says_so(tmp_path, monkeypatch):
    (tmp_path / "commitlog").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    result = run(str(tmp_path))
    assert (result.exit_code, "Spark needs Java 17" in result.stderr) == (1, True)


@pytest.mark.parametrize("words", [["--help"], ["spark-report", "--help"]])
def test_help_names_the_command(words):
    result = CliRunner().invoke(main, words)
    assert result.exit_code == 0
    assert "spark-report" in result.output
