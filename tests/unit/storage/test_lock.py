"""A store belongs to one server at a time, ours or Java's."""

import subprocess
import sys

import pytest
from unit.storage.kit import open_store

from pyritemq.storage.errors import StoreLockedError

TRY_LOCK = """
import fcntl, os, sys
fd = os.open(sys.argv[1], os.O_RDWR)
try:
    fcntl.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, 0)
except BlockingIOError:
    sys.exit(7)
"""

HOLD_LOCK = (
    TRY_LOCK
    + """
print("held", flush=True)
sys.stdin.read()
"""
)


def try_java_lock(root):
    """Lock as Java's FileChannel.tryLock(0, 1, false) does, from another process."""
    return subprocess.run([sys.executable, "-c", TRY_LOCK, root / "lock"], check=False).returncode


def test_a_second_store_in_the_same_process_is_refused_by_name(store):
    root = store.config.root
    with pytest.raises(StoreLockedError) as refused:
        open_store(root)
    assert str(refused.value) == f"the store {root} is in use by another server"


def test_a_java_broker_is_kept_out_even_after_a_second_store_was_refused(store):
    with pytest.raises(StoreLockedError):
        open_store(store.config.root)
    assert try_java_lock(store.config.root) == 7


def test_a_folder_that_a_java_broker_holds_is_refused(tmp_path):
    (tmp_path / "lock").touch()
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD_LOCK, tmp_path / "lock"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    with holder:
        assert holder.stdout.readline() == b"held\n"
        with pytest.raises(StoreLockedError, match="in use by another server"):
            open_store(tmp_path)
        holder.communicate()
    open_store(tmp_path).close()


def test_close_gives_the_folder_up(store):
    store.close()
    assert try_java_lock(store.config.root) == 0
    open_store(store.config.root).close()


def test_the_lock_file_says_what_java_writes(store):
    assert (store.config.root / "lock").read_bytes() == b"lock"
