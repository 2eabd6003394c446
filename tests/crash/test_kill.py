"""kill -9 at random moments under load loses nothing that was acknowledged."""

import pytest

from crash.kill_rounds import KillRounds
from crash.official import OfficialKillRounds


@pytest.mark.slow
@pytest.mark.parametrize("flush", ["SYNC_FLUSH", "ASYNC_FLUSH"])
def test_kill_9_under_load_loses_nothing_that_was_acknowledged(tmp_path, flush, rounds, seed):
    killing = KillRounds(tmp_path, flush, seed)
    killing.run(rounds)
    assert len(killing.acked) > rounds
    assert killing.persisted_rounds > 0, "no offset was ever saved: the rounds are too short"
    report = killing.check_store()
    print(f"{flush}: {rounds} rounds, {len(killing.acked)} acknowledged, {report}")
    assert report.problems == []
    assert report.units == report.records >= len(killing.acked)


@pytest.mark.java
@pytest.mark.parametrize("flush", ["SYNC_FLUSH", "ASYNC_FLUSH"])
def test_kill_9_under_official_producers_loses_nothing_that_they_were_told_is_stored(
    tmp_path, flush, rounds, seed
):
    killing = OfficialKillRounds(tmp_path, flush, seed)
    killing.load_and_kill(rounds)
    assert len(killing.acked) > rounds
    report = killing.check_store()
    print(f"official, {flush}: {rounds} rounds, {len(killing.acked)} acknowledged, {report}")
    assert report.problems == []
    assert report.units == report.records >= len(killing.acked)
