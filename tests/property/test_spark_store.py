"""Random stores, random ranges: the reader gives what the store's own reads give."""

import tempfile
from pathlib import Path

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st
from unit.storage.kit import open_store, read_queue

from pyritemq.spark.columns import ALL_COLUMNS
from pyritemq.spark.options import parse_source_options
from pyritemq.spark.queues import QueueKey, QueueRange
from pyritemq.spark.store_backend import StoreBackend, read_store
from pyritemq.storage import MessageToStore

bodies = st.binary(max_size=700)
messages = st.tuples(st.sampled_from([b"A", b"B"]), st.integers(0, 2), bodies)


@settings(max_examples=25)
@given(
    st.lists(st.lists(messages, min_size=1, max_size=20), min_size=1, max_size=8),
    st.integers(1, 9),
    st.one_of(st.none(), st.integers(1, 7)),
    st.data(),
)
def test_ranges_read_from_files_equal_the_stores_own_reads(batches, parts, per_part, draw):
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "store"
        store = open_store(root)
        for batch in batches:
            store.put_batch([MessageToStore(*each) for each in batch])
        queues = sorted({(topic.decode(), queue) for batch in batches for topic, queue, _ in batch})
        truth = {each: read_queue(store, *each) for each in queues}
        store.close()
        given_options = {"path": str(root), "subscribePattern": ".*", "minPartitions": str(parts)}
        if per_part is not None:
            given_options["maxRecordsPerPartition"] = str(per_part)
        options = parse_source_options(given_options, streaming=False)
        backend = StoreBackend(options)
        assert [(key.topic, key.queue_id) for key in backend.queues(None)] == queues
        ranges, expected = [], []
        for (topic, queue), records in truth.items():
            key = QueueKey(topic, "store", queue)
            assert backend.bounds([key])[key] == (0, len(records))
            start = draw.draw(st.integers(0, len(records)))
            end = draw.draw(st.integers(start, len(records)))
            if start < end:
                ranges.append(QueueRange(key, start, end))
            expected += records[start:end]
        plan = backend.plan(ranges)
        assert len(plan) >= min(parts, len(expected))
        if per_part is not None:
            assert all(sum(each.size for each in part.ranges) <= per_part for part in plan)
        batches_read = [batch for part in plan for batch in read_store(options, part)]
        rows = pa.Table.from_batches(batches_read).to_pylist() if batches_read else []
        assert all(tuple(row) == ALL_COLUMNS for row in rows)
        for part in plan:
            offsets = [
                offset
                for batch in read_store(options, part)
                for offset in batch.column("commitLogOffset").to_pylist()
            ]
            assert offsets == sorted(offsets)
        shown = sorted((row["commitLogOffset"], row["topic"], row["value"]) for row in rows)
        assert shown == sorted((each.phy_offset, each.topic, each.body) for each in expected)
