"""The streaming source: offsets by topic, broker and queue; what a micro-batch takes; its tasks.

Spark keeps one reader alive in a Python process of the driver and writes the offsets that it
returns into the checkpoint before a batch runs. A batch is defined by its two offsets alone, so a
restart reads the same messages again, and an idempotent sink has each exactly once.

A queue that appears while the query runs is read from its first message. The batch in which it
appears takes nothing of it: it only brings that first offset into the checkpoint, so that messages
which expire before they are read are missed, and not passed over.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    ReadMaxRows,
    ReadMinRows,
    SupportsTriggerAvailableNow,
)

from pyritemq.spark.admission import limit_bytes, limit_rows, rows_between
from pyritemq.spark.backend import Backend, open_backend, read_partition
from pyritemq.spark.errors import OptionError
from pyritemq.spark.options import SourceOptions
from pyritemq.spark.partitions import ReadPartition
from pyritemq.spark.queues import Offsets, offsets_from_json, offsets_to_json
from pyritemq.spark.selection import make_ranges, resolve, select_queues

Json = dict[str, Any]


class RocketMQStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """One streaming query's view of its queues."""

    def __init__(self, options: SourceOptions) -> None:
        self._options = options
        self._backend: Backend | None = None
        self._stop_at: Offsets | None = None  # Trigger.AvailableNow: the ends at its beginning
        self._seen: Offsets = {}

    def __getstate__(self) -> dict[str, Any]:
        """Workers get the options; files and sockets stay here."""
        return {"_options": self._options, "_backend": None, "_stop_at": None, "_seen": {}}

    @property
    def backend(self) -> Backend:
        if self._backend is None:
            self._backend = open_backend(self._options)
        return self._backend

    # -- offsets ------------------------------------------------------------------------------

    def initialOffset(self) -> Json:  # noqa: N802 - Spark's
        keys = select_queues(self._options, self.backend)
        starts = resolve(self._options.starting, keys, self.backend, option="starting")
        return offsets_to_json(starts)

    def _ends(self) -> Offsets:
        """Where each queue ends now; a topic that is not there any more ends where it was."""
        try:
            keys = select_queues(self._options, self.backend)
        except OptionError:
            if self._options.fail_on_data_loss:
                raise
            keys = [key for key in self.backend.queues(self._options.topics) if key in self._seen]
        ends = {key: bounds[1] for key, bounds in self.backend.bounds(keys).items()}
        self._seen |= ends
        return ends

    def latestOffset(self, start: Json, limit: ReadLimit) -> Json:  # noqa: N802 - Spark's
        starts = offsets_from_json(start)
        ends = self._ends()
        if self._stop_at is not None:
            ends = {key: min(end, self._stop_at.get(key, 0)) for key, end in ends.items()}
        return offsets_to_json(self._admit(starts, ends, limit))

    def _admit(self, starts: Offsets, ends: Offsets, limit: ReadLimit) -> Offsets:
        """The batch's ends: never before its starts, and as the limits allow."""
        new = [key for key in ends if key not in starts]
        firsts = {key: bounds[0] for key, bounds in self.backend.bounds(new).items()}
        # a queue that shrank or vanished stays where it was: partitions() says what is lost
        ends = {key: max(ends.get(key, 0), start) for key, start in starts.items()}
        if not isinstance(limit, ReadAllAvailable):
            ends = self._limit(starts, ends)
        return ends | firsts

    def _limit(self, starts: Offsets, ends: Offsets) -> Offsets:
        options = self._options
        lowest = options.min_offsets_per_trigger
        if self._stop_at is None and lowest and rows_between(starts, ends) < lowest:
            return starts
        if options.max_bytes_per_trigger is not None:
            ends = limit_bytes(starts, ends, options.max_bytes_per_trigger, self.backend.mean_size)
        if options.max_offsets_per_trigger is not None:
            ends = limit_rows(starts, ends, options.max_offsets_per_trigger)
        return ends

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802 - Spark's
        """Spark knows one limit a source; which ones hold is decided in _admit."""
        options = self._options
        if options.max_offsets_per_trigger is not None:
            return ReadMaxRows(options.max_offsets_per_trigger)
        if options.max_bytes_per_trigger is not None:
            return ReadMaxBytes(options.max_bytes_per_trigger)
        if options.min_offsets_per_trigger is not None:
            return ReadMinRows(options.min_offsets_per_trigger)
        return ReadAllAvailable()

    def reportLatestOffset(self) -> Json | None:  # noqa: N802 - Spark's
        return offsets_to_json(self._seen) if self._seen else None

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 - Spark's
        self._stop_at = self._ends()

    # -- a batch ------------------------------------------------------------------------------

    def partitions(self, start: Json, end: Json) -> Sequence[InputPartition]:
        starts, ends = offsets_from_json(start), offsets_from_json(end)
        changed = {key: to for key, to in ends.items() if starts.get(key, to) != to}
        bounds = self.backend.bounds(changed)
        strict = self._options.fail_on_data_loss
        return list(
            self.backend.plan(make_ranges(starts, changed, bounds, fail_on_data_loss=strict))
        )

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, ReadPartition)
        return read_partition(self._options, partition)

    def commit(self, end: Json) -> None:
        if self._options.group_id is not None:
            self.backend.commit(offsets_from_json(end))

    def stop(self) -> None:
        if self._backend is not None:
            self._backend.close()
