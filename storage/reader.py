"""Reads messages of one queue: DefaultMessageStore.getMessage of 5.5.0, on the pull lane's threads.

The units come from the ConsumeQueue, the records as slices of the CommitLog's mapping. Physically
adjacent records share one slice, so 32 messages that were sent in one batch are one slice.
"""

from collections.abc import Callable, Sequence
from functools import cache
from struct import Struct

from pyritemq.storage.commit_log import CommitLog
from pyritemq.storage.config import StoreConfig
from pyritemq.storage.consume_queue import UNIT, UNIT_SIZE, ConsumeQueue
from pyritemq.storage.messages import GetResult, GetStatus
from pyritemq.storage.read_ahead import ReadAhead

PULL_BYTES_MAX = 128 << 20  # DefaultMessageStore.MAX_PULL_MSG_SIZE
PULL_BYTES_MIN = 100
WHOLE_MAX = 64  # ours: units that one struct takes apart; Java's clients ask for 32

Accepts = Callable[[int], bool] | frozenset[int] | None
Matches = Callable[[memoryview], bool] | None
"""Looks at a whole record, where the ConsumeQueue's tag hash does not tell enough."""


def empty_result(
    status: GetStatus, next_begin_offset: int, min_offset: int = 0, max_offset: int = 0
) -> GetResult:
    return GetResult(status, next_begin_offset, min_offset, max_offset, [], 0, 0, False)


@cache  # one for each count up to WHOLE_MAX
def _units_struct(count: int) -> Struct:
    return Struct(">" + UNIT.format.lstrip(">") * count)


def _merge(starts: Sequence[int], sizes: Sequence[int]) -> tuple[list[int], list[int]]:
    run_starts: list[int] = []
    run_ends: list[int] = []
    run_end = -1
    for start, size in zip(starts, sizes, strict=True):
        if start == run_end:
            run_ends[-1] = run_end = start + size
        else:
            run_end = start + size
            run_starts.append(start)
            run_ends.append(run_end)
    return run_starts, run_ends


class Reader:
    """The limits from the configuration, the CommitLog to slice, and units that were read ahead."""

    def __init__(self, config: StoreConfig, log: CommitLog) -> None:
        self._log = log
        self._ahead = ReadAhead()
        self._filter_bytes_max = config.filter_bytes_max
        self._in_memory_bytes = config.in_memory_bytes
        self._memory_count = config.transfer_count_max_in_memory
        self._memory_bytes = config.transfer_bytes_max_in_memory
        self._disk_count = config.transfer_count_max_in_disk
        self._disk_bytes = config.transfer_bytes_max_in_disk

    def get(
        self,
        queue: ConsumeQueue,
        offset: int,
        count_max: int,
        bytes_max: int,
        accepts: Accepts,
        matches: Matches = None,
    ) -> GetResult:
        max_offset = queue.max_offset
        min_offset = queue.min_offset
        if max_offset == 0:
            return empty_result(GetStatus.NO_MESSAGE_IN_QUEUE, 0)
        if offset < min_offset:
            return empty_result(GetStatus.OFFSET_TOO_SMALL, min_offset, min_offset, max_offset)
        if offset == max_offset:
            return empty_result(GetStatus.OFFSET_OVERFLOW_ONE, offset, min_offset, max_offset)
        if offset > max_offset:
            return empty_result(GetStatus.OFFSET_OVERFLOW_BADLY, max_offset, min_offset, max_offset)
        if accepts is None and matches is None:
            whole = self._take_whole(queue, offset, count_max, bytes_max, min_offset, max_offset)
            if whole is not None:
                return whole
        return self._collect(
            queue, offset, count_max, bytes_max, accepts, matches, min_offset, max_offset
        )

    def _take_whole(
        self,
        queue: ConsumeQueue,
        offset: int,
        count_max: int,
        bytes_max: int,
        min_offset: int,
        max_offset: int,
    ) -> GetResult | None:
        """Most gets: recent messages that all fit. None if any of them needs a closer look.

        Takes all units apart at once, which costs 0.2 µs a message where the loop below costs 0.5.
        """
        log_max = self._log.max_offset
        units = self._ahead.units(queue, offset, min(count_max, self._memory_count, WHOLE_MAX))
        count = len(units) // UNIT_SIZE
        if not count:
            return None
        fields = _units_struct(count).unpack(units)
        starts, sizes = fields[0::3], fields[1::3]
        total = sum(sizes)
        first, end = starts[0], starts[-1] + sizes[-1]
        if (
            total > min(max(bytes_max, PULL_BYTES_MIN), self._memory_bytes)
            or first < max(self._log.min_offset, log_max - self._in_memory_bytes)
            or end > log_max
        ):
            return None
        if end - first == total:
            slices = self._log.views([first], [end])
        else:
            slices = self._log.views(*_merge(starts, sizes))
        return GetResult(
            GetStatus.FOUND, offset + count, min_offset, max_offset, slices, count, total, False
        )

    def _collect(
        self,
        queue: ConsumeQueue,
        offset: int,
        count_max: int,
        bytes_max: int,
        accepts: Accepts,
        matches: Matches,
        min_offset: int,
        max_offset: int,
    ) -> GetResult:
        log_max = self._log.max_offset
        log_min = self._log.min_offset
        memory_from = log_max - self._in_memory_bytes
        bytes_max = min(max(bytes_max, PULL_BYTES_MIN), PULL_BYTES_MAX)
        accept = accepts.__contains__ if isinstance(accepts, frozenset) else accepts
        on_disk = min(count_max, self._disk_count), min(bytes_max, self._disk_bytes)
        in_memory = min(count_max, self._memory_count), min(bytes_max, self._memory_bytes)
        # Java asks of each unit where its record lies; that matters only once a limit is reached.
        count_limit, bytes_limit = map(min, on_disk, in_memory)
        removed = False
        starts: list[int] = []  # runs of adjacent records
        ends: list[int] = []
        run_end = -1
        count = total = seen = phy_offset = 0
        for phy_offset, size, tags_code in UNIT.iter_unpack(
            queue.units(offset, self._units_max(count_max, accept or matches))
        ):
            if count and (count >= count_limit or total + size > bytes_limit):
                counts, sizes = in_memory if phy_offset >= memory_from else on_disk
                if count >= counts or total + size > sizes:
                    break
            seen += 1
            if accept is not None and not accept(tags_code):
                removed = False
                continue
            end = phy_offset + size
            if phy_offset < log_min or end > log_max:
                removed = True
                continue
            if matches is not None and not matches(
                self._log.view(phy_offset, end)
                if phy_offset >= memory_from
                else self._log.read(phy_offset, end)  # the disk may have to be waited for
            ):
                removed = False
                continue
            if phy_offset == run_end:
                ends[-1] = end
            else:
                starts.append(phy_offset)
                ends.append(end)
            run_end = end
            count += 1
            total += size
        status = GetStatus.MESSAGE_WAS_REMOVING if removed else GetStatus.NO_MATCHED_MESSAGE
        return GetResult(
            GetStatus.FOUND if count else status,
            offset + seen,
            min_offset,
            max_offset,
            self._log.views(starts, ends),
            count,
            total,
            log_max - phy_offset > self._in_memory_bytes,
        )

    def _units_max(self, count_max: int, filters: object) -> int:
        """How many units one get looks at: more than it returns only when it filters."""
        if filters is None:
            return max(count_max, 1)
        return max(-(-self._filter_bytes_max // UNIT_SIZE), count_max)
