"""Stores in folders, as the driver asks them and tasks read them."""

from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa

from pyritemq.spark.errors import OptionError, StoreReadError
from pyritemq.spark.options import SourceOptions
from pyritemq.spark.partitions import ReadPartition, plan_store
from pyritemq.spark.queues import QueueKey, QueueRange
from pyritemq.spark.safe_end import SafeEnd
from pyritemq.spark.store_files import QueueFiles, StoreFolder
from pyritemq.spark.store_reader import StoreReader
from pyritemq.storage.consume_queue import BLANK_SIZE
from pyritemq.storage.record_codec import store_timestamp_of

_HEAD_BYTES = 112  # a head with two IPv6 hosts


def open_stores(path: str, broker_name: str | None) -> dict[str, StoreFolder]:
    """The store in the folder, or the stores in its sub-folders, by broker name.

    The files do not tell the broker's name: it is the option `brokerName`, or the folder's name.
    """
    root = Path(path.removeprefix("file://"))
    if (root / "commitlog").is_dir():
        name = broker_name or root.resolve().name
        found = {name: StoreFolder(root, name)}
    else:
        folders = sorted(root.iterdir()) if root.is_dir() else []
        found = {
            folder.name: StoreFolder(folder, folder.name)
            for folder in folders
            if (folder / "commitlog").is_dir()
        }
        if found and broker_name is not None:
            raise OptionError("option 'brokerName' is for one store, but 'path' holds several")
        if not found:
            StoreFolder(root, "").check()
    for store in found.values():
        store.check()
    return found


class StoreBackend:
    """Reads from files."""

    def __init__(self, options: SourceOptions) -> None:
        assert options.path is not None
        self._options = options
        self._stores = open_stores(options.path, options.broker_name)
        self._ends = {name: SafeEnd(store) for name, store in self._stores.items()}

    def close(self) -> None:
        """Nothing is kept open."""

    # -- the driver's questions ---------------------------------------------------------------

    def queues(self, topics: Iterable[str] | None) -> list[QueueKey]:
        wanted = None if topics is None else set(topics)
        return sorted(
            QueueKey(topic, name, queue_id)
            for name, store in self._stores.items()
            for topic, queue_id in store.queues()
            if wanted is None or topic in wanted
        )

    def bounds(self, keys: Iterable[QueueKey]) -> dict[QueueKey, tuple[int, int]]:
        limits: dict[str, tuple[int, int]] = {}
        result: dict[QueueKey, tuple[int, int]] = {}
        for key in keys:
            if key.broker not in self._stores:
                continue  # its store is gone: nothing of it is there
            if key.broker not in limits:
                store = self._stores[key.broker]
                limits[key.broker] = store.min_phy_offset(), self._ends[key.broker].find()
            low, limit = limits[key.broker]
            result[key] = self._files(key).bounds(min_phy_offset=low, limit=limit)
        return result

    def offset_by_time(self, key: QueueKey, timestamp: int) -> int:
        low, high = self.bounds([key])[key]
        files = self._files(key)
        while low < high:
            middle = (low + high) // 2
            if self._store_time(key, files, middle) < timestamp:
                low = middle + 1
            else:
                high = middle
        return low

    def _store_time(self, key: QueueKey, files: QueueFiles, offset: int) -> int:
        """Store time of a message; the beginning of time for one that was lost."""
        units = files.units(offset, 1)
        if not len(units) or int(units["size"][0]) == BLANK_SIZE:
            return 0
        phy_offset = int(units["phy_offset"][0])
        store = self._stores[key.broker]
        for file in store.log_files():
            if file.from_offset <= phy_offset < file.end_offset:
                with file.path.open("rb") as opened:
                    opened.seek(phy_offset - file.from_offset)
                    head = opened.read(_HEAD_BYTES)
                if len(head) == _HEAD_BYTES:
                    return store_timestamp_of(memoryview(head))
        raise StoreReadError(
            f"message {offset} of {key} lies at {phy_offset}, which the CommitLog in "
            f"{store.commit_log_dir} does not hold"
        )

    def mean_size(self, each: QueueRange) -> float:
        """Bytes of an average record of the range, by some of its units."""
        units = self._files(each.key).units(each.start, min(each.size, 1024))
        real = units["size"][(units["size"] > 0) & (units["size"] != BLANK_SIZE)]
        return float(np.mean(real)) if len(real) else 1.0

    def plan(self, ranges: list[QueueRange]) -> list[ReadPartition]:
        """Partitions store by store; minPartitions is shared out by their messages."""
        options = self._options
        total = sum(each.size for each in ranges)
        partitions: list[ReadPartition] = []
        for name in self._stores:
            of_store = [each for each in ranges if each.key.broker == name]
            rows = sum(each.size for each in of_store)
            partitions += plan_store(
                of_store,
                self._files,
                min_partitions=-(-options.min_partitions * rows // max(total, 1)),
                max_records=options.max_records_per_partition,
                max_bytes=options.max_partition_bytes,
            )
        return partitions

    def _files(self, key: QueueKey) -> QueueFiles:
        return self._stores[key.broker].queue(key.topic, key.queue_id)

    def commit(self, offsets: dict[QueueKey, int]) -> None:
        """Files keep no consumer's offsets."""


def read_store(options: SourceOptions, partition: ReadPartition) -> Iterator[pa.RecordBatch]:
    """A task: on another machine, maybe, which must see the folder at the same path."""
    assert options.path is not None
    store = open_stores(options.path, options.broker_name)[partition.broker]
    reader = StoreReader(
        store,
        options.columns,
        inflate=options.inflate,
        fail_on_data_loss=options.fail_on_data_loss,
    )
    return reader.read(partition.ranges)
