"""Emptying a store's folder takes what a store keeps, and nothing else."""

from pyritemq.storage.config import StoreConfig
from pyritemq.storage.drop import delete_dropped, drop_store


def fill(root, names):
    for name in names:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"x")


STORE = [
    "commitlog/00000000000000000000",
    "consumequeue/Topic/0/00000000000000000000",
    "index/20260101000000000",
    "timerlog/00000000000000000000",
    "timerwheel",
    "checkpoint",
    "queueends",
    "abort",
    "config/topics.json",
    "config/topics.json.bak",
]
FOREIGN = ["notes.txt", "photos/cat.jpg", "config/broker.conf"]


def test_only_what_is_a_stores_goes(tmp_path):
    fill(tmp_path, STORE + FOREIGN)
    config = StoreConfig(root=tmp_path)
    dropped = drop_store(config, keep=[tmp_path / "config" / "broker.conf"])
    assert not (tmp_path / "commitlog").exists()
    delete_dropped(dropped)
    left = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()}
    assert left == set(FOREIGN)


def test_what_a_killed_run_left_is_deleted_by_the_next(tmp_path):
    fill(tmp_path, STORE)
    config = StoreConfig(root=tmp_path)
    drop_store(config)
    fill(tmp_path, STORE)
    delete_dropped(drop_store(config))
    assert [path.name for path in tmp_path.iterdir()] == ["config"]


def test_an_empty_folder_has_nothing_to_drop(tmp_path):
    assert drop_store(StoreConfig(root=tmp_path / "none")) == []
