"""The checkpoint file is Java's: six integers in a page."""

import pytest

from pyritemq.storage.checkpoint import Checkpoint, load_checkpoint, save_checkpoint
from pyritemq.storage.disk import RealDisk
from pyritemq.storage.layouts import CheckpointFile

DISK = RealDisk()


def test_a_saved_checkpoint_is_what_the_layout_declares(tmp_path):
    saved = Checkpoint(
        physic_msg_timestamp=1,
        logics_msg_timestamp=2,
        index_msg_timestamp=3,
        master_flushed_offset=4,
        confirm_phy_offset=5,
        logics_physical_offset=6,
    )
    path = tmp_path / "checkpoint"
    save_checkpoint(DISK, path, saved)
    data = path.read_bytes()
    assert len(data) == 4096
    declared = CheckpointFile.parse(data)
    assert {name: declared[name] for name in saved.__slots__} == {
        name: getattr(saved, name) for name in saved.__slots__
    }
    assert load_checkpoint(DISK, path) == saved


@pytest.mark.parametrize("content", [None, b"", b"short"])
def test_without_a_whole_checkpoint_nothing_is_trusted(tmp_path, content):
    path = tmp_path / "checkpoint"
    if content is not None:
        path.write_bytes(content)
    assert load_checkpoint(DISK, path) == Checkpoint()


def test_the_safe_time_is_three_seconds_before_the_earlier_of_two():
    assert Checkpoint(physic_msg_timestamp=9_000, logics_msg_timestamp=5_000).min_timestamp == 2_000
    assert Checkpoint(physic_msg_timestamp=2_999, logics_msg_timestamp=5_000).min_timestamp == 0
