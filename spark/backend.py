"""Files or live brokers: one face for both, chosen by the options."""

from collections.abc import Iterator
from typing import Protocol

import pyarrow as pa

from pyritemq.spark.options import SourceOptions
from pyritemq.spark.partitions import ReadPartition
from pyritemq.spark.queues import Offsets, QueueRange
from pyritemq.spark.selection import Catalogue
from pyritemq.spark.store_backend import StoreBackend, read_store


class Backend(Catalogue, Protocol):
    """What a query's driver needs of where the messages are."""

    def mean_size(self, each: QueueRange) -> float:
        """Bytes of an average message of the range, about."""

    def plan(self, ranges: list[QueueRange]) -> list[ReadPartition]:
        """The tasks that read the ranges."""

    def commit(self, offsets: Offsets) -> None:
        """Everything below the offsets is in the sink."""

    def close(self) -> None:
        """Let go of connections; it may be used again afterwards."""


def open_backend(options: SourceOptions) -> Backend:
    """Raises StoreReadError or BrokerError."""
    if options.path is not None:
        return StoreBackend(options)
    from pyritemq.spark.live_backend import LiveBackend

    return LiveBackend(options)


def read_partition(options: SourceOptions, partition: ReadPartition) -> Iterator[pa.RecordBatch]:
    """In a worker."""
    if options.path is not None:
        return read_store(options, partition)
    from pyritemq.spark.live_reader import read_live

    return read_live(options, partition)
