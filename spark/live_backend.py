"""Live brokers as the driver asks them: queues, offsets, and what a group has done.

Tasks pull in the name of RocketMQ's own tools (live_reader.py) and commit nothing, so no consumer
group notices. With `groupId` the driver commits what a finished batch covered, in that group's
name.
"""

from collections.abc import Iterable
from typing import Final

from pyritemq.protocol.codes import RequestCode, ResponseCode
from pyritemq.spark.cluster import Cluster
from pyritemq.spark.errors import BrokerError
from pyritemq.spark.live_reader import PULL_COUNT, ask_pull
from pyritemq.spark.options import SourceOptions
from pyritemq.spark.partitions import ReadPartition
from pyritemq.spark.queues import Offsets, QueueKey, QueueRange
from pyritemq.spark.wire_client import RefusedError
from pyritemq.spark.wire_records import record_positions

ROWS_PER_TASK: Final = 200_000  # ours: about 128 MiB of usual messages


class LiveBackend:
    """Reads from brokers."""

    def __init__(self, options: SourceOptions) -> None:
        assert options.namesrv is not None
        self._options = options
        self._cluster = Cluster(options.namesrv, timeout_ms=options.timeout_ms)

    def close(self) -> None:
        self._cluster.close()

    def queues(self, topics: Iterable[str] | None) -> list[QueueKey]:
        return self._cluster.queues(self._cluster.topics() if topics is None else topics)

    def bounds(self, keys: Iterable[QueueKey]) -> dict[QueueKey, tuple[int, int]]:
        return self._cluster.bounds(list(keys))

    def offset_by_time(self, key: QueueKey, timestamp: int) -> int:
        code = RequestCode.SEARCH_OFFSET_BY_TIMESTAMP
        found = self._cluster.offset(key, code, timestamp=timestamp)
        low, high = self._cluster.bounds([key])[key]
        return min(max(found, low), high)

    def mean_size(self, each: QueueRange) -> float:
        """The size of the range's first messages: one small pull."""
        client = self._cluster.client(self._cluster.address(each.key))
        reply = client.receive(ask_pull(client, each.key, each.start, min(each.size, PULL_COUNT)))
        if reply.code != ResponseCode.SUCCESS:
            return 1.0
        return len(reply.body) / max(len(record_positions(reply.body)[0]), 1)

    def plan(self, ranges: list[QueueRange]) -> list[ReadPartition]:
        """Pieces of queues; as many as asked for, and none of more rows than one task should do."""
        options = self._options
        total = sum(each.size for each in ranges)
        share = max(-(-total // options.min_partitions), 1)
        rows_max = min(share, options.max_records_per_partition or ROWS_PER_TASK, ROWS_PER_TASK)
        return [
            ReadPartition(key.broker, [QueueRange(key, at, min(at + rows_max, end))])
            for key, start, end in ranges
            for at in range(start, end, rows_max)
        ]

    def commit(self, offsets: Offsets) -> None:
        group = self._options.group_id
        for key, offset in offsets.items():
            code = RequestCode.UPDATE_CONSUMER_OFFSET
            try:
                self._cluster.broker_call(key, code, consumerGroup=group, commitOffset=offset)
            except RefusedError as error:
                if error.code != ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST:
                    raise
                raise BrokerError(
                    f"the group '{group}' of option 'groupId' does not exist on {key.broker}: make "
                    "it first, with `mqadmin updateSubGroup` or by a consumer's first start"
                ) from error
