"""Cuts what is to be read into tasks of about equal bytes.

A task gets a window of the CommitLog and, of every queue, the range whose records lie in it: so
each byte of the log is read by one task, in order, however many queues share it. Were queues the
unit, each task would touch nearly every page of the log again. One big queue is cut like many.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from pyspark.sql.datasource import InputPartition

from pyritemq.spark.gather import AnyArray
from pyritemq.spark.queues import QueueKey, QueueRange
from pyritemq.spark.store_files import QueueFiles
from pyritemq.storage.consume_queue import BLANK_SIZE

SAMPLES_MAX = 1 << 12  # ours: units looked at one by one while planning, over all queues
SAMPLES_MIN = 8  # of each queue
WHOLE_MAX = 1 << 16  # ours: units of a range that are read at once instead, 1.3 MB

FilesOf = Callable[[QueueKey], QueueFiles]


class ReadPartition(InputPartition):
    """One task: ranges of queues, all of one broker."""

    def __init__(self, broker: str, ranges: list[QueueRange]) -> None:
        super().__init__(None)
        self.broker = broker
        self.ranges = ranges


@dataclass(slots=True)
class _Sample:
    phy_offsets: AnyArray
    weights: AnyArray  # bytes that each sampled unit stands for


def _sample(files: QueueFiles, each: QueueRange, samples: int) -> _Sample:
    """Units at even distances."""
    if each.size <= WHOLE_MAX:
        step = max(each.size // samples, 1)
        units = files.all_units(each.start, each.end)[::step]
    else:
        at = np.linspace(each.start, each.end - 1, samples).astype(np.int64)
        units = np.concatenate([files.units(int(offset), 1) for offset in at])
    units = units[(units["size"] > 0) & (units["size"] != BLANK_SIZE)]
    scale = each.size / max(len(units), 1)
    return _Sample(units["phy_offset"].astype(np.int64), units["size"].astype(float) * scale)


def plan_store(
    ranges: list[QueueRange],
    files_of: FilesOf,
    *,
    min_partitions: int,
    max_records: int | None,
    max_bytes: int,
) -> list[ReadPartition]:
    """Partitions of ranges that all lie in one store."""
    if not ranges:
        return []
    queues = {each.key: files_of(each.key) for each in ranges}
    samples = max(SAMPLES_MAX // len(ranges), SAMPLES_MIN)
    sampled = [_sample(queues[each.key], each, samples) for each in ranges]
    at = np.concatenate([one.phy_offsets for one in sampled])
    weights = np.concatenate([one.weights for one in sampled])
    rows = sum(each.size for each in ranges)
    count = max(min_partitions, int(-(-weights.sum() // max_bytes)), 1)
    if max_records is not None:
        count = max(count, -(-rows // max_records))
    windows = _cut_all(ranges, queues, _cuts(at, weights, min(count, rows)))
    if max_records is not None:
        windows = [part for window in windows for part in _cut_rows(window, max_records)]
    windows = _grow(windows, min(min_partitions, rows))
    return [ReadPartition(ranges[0].key.broker, window) for window in windows]


def _cuts(phy_offsets: AnyArray, weights: AnyArray, count: int) -> list[int]:
    """CommitLog offsets that split the sampled bytes into count equal parts."""
    order = np.argsort(phy_offsets, kind="stable")
    total = np.cumsum(weights[order])
    if not len(total):
        return []
    goals = total[-1] * np.arange(1, count) / count
    index = np.minimum(np.searchsorted(total, goals), len(order) - 1)
    cuts: list[int] = np.unique(phy_offsets[order][index]).tolist()
    return cuts


def _cut_all(
    ranges: list[QueueRange], queues: dict[QueueKey, QueueFiles], cuts: list[int]
) -> list[list[QueueRange]]:
    windows: list[list[QueueRange]] = [[] for _ in range(len(cuts) + 1)]
    for each in ranges:
        start = each.start
        for number, end in enumerate(_ends(each, queues[each.key], cuts)):
            windows[number].append(QueueRange(each.key, start, end))
            start = end
        windows[-1].append(QueueRange(each.key, start, each.end))
    whole = ([part for part in window if part.size > 0] for window in windows)
    return [window for window in whole if window]


def _ends(each: QueueRange, files: QueueFiles, cuts: list[int]) -> list[int]:
    """The first offset at or behind each cut."""
    if each.size <= WHOLE_MAX:
        units = files.all_units(each.start, each.end)
        # a blank unit has no place of its own: it goes with the one before it
        real = np.where(units["size"] != BLANK_SIZE, units["phy_offset"], 0)
        found = np.searchsorted(np.maximum.accumulate(real), np.array(cuts, np.int64))
        return [min(each.start + int(at), each.end) for at in found]
    ends, start = [], each.start
    for cut in cuts:
        start = files.first_at_or_after(cut, start, each.end)
        ends.append(start)
    return ends


def _cut_rows(window: list[QueueRange], max_records: int) -> list[list[QueueRange]]:
    """Parts of at most so many messages, each of ranges that follow each other."""
    parts: list[list[QueueRange]] = [[]]
    room = max_records
    for key, start, end in window:
        while start < end:
            taken = min(room, end - start)
            parts[-1].append(QueueRange(key, start, start + taken))
            start += taken
            room -= taken
            if room == 0:
                parts.append([])
                room = max_records
    return [part for part in parts if part]


def _grow(windows: list[list[QueueRange]], wanted: int) -> list[list[QueueRange]]:
    """Halve the largest parts until there are as many as were asked for: cuts may coincide."""
    while len(windows) < wanted:
        sizes = [sum(part.size for part in window) for window in windows]
        largest = max(range(len(windows)), key=sizes.__getitem__)
        halves = _cut_rows(windows[largest], -(-sizes[largest] // 2))
        windows[largest : largest + 1] = halves
    return windows
