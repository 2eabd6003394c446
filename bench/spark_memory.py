"""How much memory Spark's Python workers take while they read a store of many gigabytes.

The peak of RSS (VmHWM) of every process below ours that runs pyspark's daemon, looked at while
the query runs: mapped pages of the store that happen to be in memory count as well.
"""

from __future__ import annotations

import os
import re
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyritemq.storage import MessageStore, MessageToStore, StoreConfig

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

BODY_BYTES = 16_000
"""Large bodies fill a store in a time that a benchmark may take; a batch of them has as many bytes
as one of small ones."""
BATCH = 50
POLL_SECONDS = 0.2
_PEAK = re.compile(r"^VmHWM:\s+(\d+) kB", re.MULTILINE)
_PARENT = re.compile(r"^PPid:\s+(\d+)", re.MULTILINE)


def make_large_store(root: Path, size: int) -> int:
    """A store of about `size` bytes; returns its number of messages."""
    noise = os.urandom(BODY_BYTES + BATCH)
    store = MessageStore.open(StoreConfig(root=root), now_ms=lambda: 1_790_000_000_000)
    rounds = size // (BODY_BYTES * BATCH)
    for _ in range(rounds):
        store.put_batch(
            [MessageToStore(b"Large", at % 8, noise[at : at + BODY_BYTES]) for at in range(BATCH)]
        )
        store.prepare_next()
    store.close()
    return rounds * BATCH


def worker_memory(spark: SparkSession, work: Path, size: int) -> dict[str, Any]:
    root = work / "large"
    messages = make_large_store(root, size)
    frame = spark.read.format("rocketmq").options(path=str(root), subscribe="Large").load()
    with _Watch() as watch:
        frame.write.format("noop").mode("overwrite").save()
    return {
        "store GB": round(messages * BODY_BYTES / 1e9, 1),
        "messages": messages,
        "workers": len(watch.peaks),
        "largest worker, MB": max(watch.peaks.values()) // 1024,
    }


class _Watch(threading.Thread):
    """Looks at the workers until it is left."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.peaks: dict[int, int] = {}
        self._ended = threading.Event()

    def __enter__(self) -> _Watch:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self.join()

    def run(self) -> None:
        while not self._ended.wait(POLL_SECONDS):
            for pid, status in _python_workers():
                if peak := _PEAK.search(status):
                    self.peaks[pid] = int(peak[1])


def _python_workers() -> list[tuple[int, str]]:
    """Processes of pyspark's daemon that descend from this one, with their status."""
    status: dict[int, str] = {}
    daemons: set[int] = set()
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal():
            try:
                status[int(folder.name)] = (folder / "status").read_text()
                if b"pyspark.daemon" in (folder / "cmdline").read_bytes():
                    daemons.add(int(folder.name))
            except OSError:  # it has just ended
                continue
    return [(pid, status[pid]) for pid in daemons if _descends(pid, status)]


def _descends(pid: int, status: dict[int, str]) -> bool:
    while pid in status and pid != os.getpid():
        parent = _PARENT.search(status[pid])
        pid = int(parent[1]) if parent else 0
    return pid == os.getpid()
