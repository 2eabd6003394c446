"""`pyritemq store …` on stores that are whole, damaged, in use, and none at all."""

import json
import sys

import pytest
from click.testing import CliRunner
from unit.storage.kit import kill, message, open_store, read_queue

from pyritemq.server.cli import main
from pyritemq.server.store_repair import STAND_IN_MIN, pack_stand_in
from pyritemq.storage.record_codec import CheckedRecord, check_record

OK, FAILED, USAGE, DAMAGED, IN_USE = range(5)


@pytest.fixture
def root(tmp_path):
    return tmp_path / "store"


def run(*arguments):
    return CliRunner().invoke(main, ["store", *map(str, arguments)])


def filled(root, count=90, stop="close"):
    """Messages over several files of T/0, T/1 and T/2; returns where each starts."""
    store = open_store(root)
    messages = [message(b"%d" % number * 10, queue_id=number % 3) for number in range(count)]
    starts = [result.phy_offset for result in store.put_batch(messages)]
    store.persist()
    store.close() if stop == "close" else kill(store)
    return starts


def numbers(root):
    """What a server would serve afterwards."""
    store = open_store(root)
    found = [record.body for queue in range(3) for record in read_queue(store, "T", queue)]
    store.close()
    return sorted(int(body[: len(body) // 10]) for body in found)


def log_file(root, number=0):
    return root / "commitlog" / f"{number * 4096:020d}"


def change(path, at, data):
    with open(path, "r+b") as file:
        file.seek(at)
        file.write(data)


@pytest.mark.parametrize("stop", ["close", "kill"])
def test_check_of_a_whole_store_finds_nothing_and_changes_nothing(root, stop):
    filled(root, stop=stop)
    before = {path: path.read_bytes() for path in root.rglob("*") if path.is_file()}
    result = run("check", root)
    assert result.exit_code == OK, result.output
    assert "90 messages" in result.stdout
    assert "90 units in 3 queues" in result.stdout
    assert "no problem found" in result.stdout
    assert ("not stopped cleanly" in result.stdout) == (stop == "kill")
    assert {path: path.read_bytes() for path in root.rglob("*") if path.is_file()} == before


def test_check_knows_of_deleted_topics(root):
    filled(root)
    store = open_store(root)
    store.delete_topics(["T"])
    store.put_batch([message(topic=b"T")])
    store.close()
    result = run("check", root)
    assert result.exit_code == OK, result.output
    assert "91 messages" in result.stdout
    assert "1 units in 1 queues" in result.stdout


def test_check_names_file_and_position_of_damage(root):
    starts = filled(root)
    change(log_file(root), starts[3] + 95, b"\xff")
    result = run("check", root)
    assert result.exit_code == DAMAGED
    assert f"{log_file(root)}: damaged at position {starts[3]} (the body does not" in result.stdout


def test_half_a_record_at_the_end_is_no_problem_after_a_crash(root):
    starts = filled(root, count=10, stop="kill")
    change(log_file(root), starts[-1] + 50, bytes(200))
    result = run("check", root)
    assert result.exit_code == OK, result.output
    assert f"damaged at position {starts[-1]} by the crash" in result.stdout
    assert run("repair", root).exit_code == OK
    assert numbers(root) == list(range(9))


def test_check_finds_queues_that_disagree(root):
    filled(root)
    folder = root / "consumequeue" / "T"
    change(folder / "0" / f"{0:020d}", 3 * 20 + 7, b"\x01")
    change(folder / "1" / f"{0:020d}", 30 * 20, b"\x01")
    change(folder / "2" / f"{0:020d}", 5 * 20, bytes(20))
    result = run("check", root)
    assert result.exit_code == DAMAGED
    assert "T/0: unit 3 is not that of the message" in result.stdout
    assert "unit 30 has no message" in result.stdout
    assert "T/2: unit 5 is missing" in result.stdout


def test_check_finds_missing_and_short_files(root):
    filled(root)
    log_file(root, 1).unlink()
    with open(log_file(root, 2), "r+b") as file:
        file.truncate(100)
    result = run("check", root)
    assert result.exit_code == DAMAGED
    assert "the file that starts at 4096 is missing" in result.stdout
    assert f"{log_file(root, 2)}: 100 bytes where 4096 belong" in result.stdout


@pytest.mark.parametrize("command", ["check", "repair", "rebuild", "dump"])
def test_a_store_in_use_is_refused(root, command):
    store = open_store(root)
    store.put_batch([message()])
    result = run(command, root)
    assert result.exit_code == IN_USE
    assert result.stderr == f"pyritemq: the store {root} is in use by another server\n"
    assert len(read_queue(store)) == 1
    store.close()


@pytest.mark.parametrize("command", ["check", "repair", "rebuild", "dump"])
def test_a_folder_without_a_store_is_one_sentence(tmp_path, command):
    for folder in (tmp_path, tmp_path / "nowhere"):
        result = run(command, folder)
        assert result.exit_code == FAILED
        assert "holds no store" in result.stderr
        assert len(result.stderr.splitlines()) == 1


def test_rebuild_makes_queues_and_checkpoint_anew(root):
    filled(root)
    queue = root / "consumequeue" / "T" / "0" / f"{0:020d}"
    before = queue.read_bytes()
    change(queue, 0, b"\xff" * 200)
    result = run("rebuild", root)
    assert result.exit_code == OK, result.output
    assert "1 topics" in result.stdout
    assert queue.read_bytes() == before
    assert run("check", root).exit_code == OK


def test_repair_serves_what_lies_around_a_damaged_record(root):
    starts = filled(root)
    change(log_file(root), starts[3], b"\xff" * 100)
    result = run("repair", root)
    assert result.exit_code == OK, result.output
    assert f"{log_file(root)}: {starts[4] - starts[3]} bytes at position {starts[3]}" in (
        result.stdout
    )
    kept = root / "cut" / f"{starts[3]:020d}"
    assert kept.read_bytes()[:100] == b"\xff" * 100
    assert numbers(root) == [number for number in range(90) if number != 3]


def test_repair_ends_a_file_that_is_damaged_up_to_its_end(root):
    starts = filled(root)
    last = max(start for start in starts if start < 4096)
    change(log_file(root), last, bytes(4096 - last))
    assert run("repair", root).exit_code == OK
    lost = starts.index(last)
    assert numbers(root) == [number for number in range(90) if number != lost]


def test_repair_puts_an_empty_file_where_one_is_missing(root):
    starts = filled(root)
    log_file(root, 1).unlink()
    result = run("repair", root)
    assert result.exit_code == OK, result.output
    assert "was missing" in result.stdout
    left = [number for number, start in enumerate(starts) if not 4096 <= start < 8192]
    assert numbers(root) == left
    assert len(left) < 90


def test_repair_grows_a_file_that_was_cut(root):
    starts = filled(root)
    with open(log_file(root), "r+b") as file:
        file.truncate(starts[5] + 10)
    result = run("repair", root)
    assert "bytes, and has 4096 now" in result.stdout
    left = [number for number, start in enumerate(starts) if not starts[5] <= start < 4096]
    assert numbers(root) == left


def test_repair_leaves_a_whole_store_as_it_is(root):
    filled(root)
    log = log_file(root).read_bytes()
    result = run("repair", root)
    assert result.exit_code == OK
    assert "damaged" not in result.stdout
    assert log_file(root).read_bytes() == log
    assert numbers(root) == list(range(90))


@pytest.mark.parametrize("size", [STAND_IN_MIN, 150, 4000])
def test_what_stands_in_for_damage_is_a_whole_record(size):
    record = pack_stand_in(size, 700, 5)
    checked = check_record(memoryview(record), 0, phy_offset=700, check_crc=True)
    assert isinstance(checked, CheckedRecord)
    assert checked.size == len(record) == size


def test_sizes_that_the_files_do_not_tell_must_be_given(root):
    filled(root)
    log_file(root, 2).rename(root / "commitlog" / f"{5000:020d}")
    result = run("repair", root)
    assert result.exit_code == FAILED
    assert "cannot be told: give -c" in result.stderr


def test_dump_prints_messages_as_lines_of_json(root):
    starts = filled(root)
    lines = run("dump", root, "--queue", "1", "--count", "2", "--body").stdout.splitlines()
    first, second = (json.loads(line) for line in lines)
    assert (first["topic"], first["queueId"], first["queueOffset"]) == ("T", 1, 0)
    assert (first["phyOffset"], first["body"]) == (starts[1], "1" * 10)
    assert second["phyOffset"] == starts[4]
    assert len(run("dump", root, "--from", starts[80]).stdout.splitlines()) == 10
    assert run("dump", root, "--topic", "Other").stdout == ""


def test_sizes_come_from_broker_conf_if_it_is_given(root, tmp_path):
    filled(root)
    conf = tmp_path / "broker.conf"
    conf.write_text("mappedFileSizeCommitLog=8192\n")
    result = run("check", root, "-c", conf)
    assert result.exit_code == DAMAGED
    assert "4096 bytes where 8192 belong" in result.stdout


def test_rich_is_loaded_for_a_terminal_only(root, monkeypatch):
    filled(root)
    monkeypatch.setitem(sys.modules, "rich.progress", None)
    assert run("check", root).exit_code == OK


def test_the_bar_goes_to_standard_error_on_a_terminal(root, capsys, monkeypatch):
    filled(root)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    with pytest.raises(SystemExit) as ended:
        main(["store", "check", str(root)])
    assert ended.value.code == OK
    assert "90 messages" in capsys.readouterr().out
    assert "rich.progress" in sys.modules
