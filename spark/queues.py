"""Names for a queue and for a piece of one: what the driver plans with and tasks are given."""

from typing import Final, NamedTuple

LIGHT_QUEUE: Final = "%LMQ%"
"""Topics named so have light queues, whose units point to records of other topics."""


class QueueKey(NamedTuple):
    """One queue of a topic on one broker."""

    topic: str
    broker: str
    queue_id: int

    def __str__(self) -> str:
        return f"{self.topic}/{self.broker}/{self.queue_id}"


class QueueRange(NamedTuple):
    """Messages [start, end) of a queue."""

    key: QueueKey
    start: int
    end: int

    @property
    def size(self) -> int:
        return self.end - self.start


Offsets = dict[QueueKey, int]


def offsets_to_json(offsets: Offsets) -> dict[str, dict[str, dict[str, int]]]:
    """`{topic: {broker: {queue: offset}}}`: what a checkpoint and `query.lastProgress` hold."""
    tree: dict[str, dict[str, dict[str, int]]] = {}
    for key in sorted(offsets):
        by_broker = tree.setdefault(key.topic, {})
        by_broker.setdefault(key.broker, {})[str(key.queue_id)] = offsets[key]
    return tree


def offsets_from_json(tree: dict[str, dict[str, dict[str, int]]]) -> Offsets:
    return {
        QueueKey(topic, broker, int(queue_id)): int(offset)
        for topic, brokers in tree.items()
        for broker, queues in brokers.items()
        for queue_id, offset in queues.items()
    }
