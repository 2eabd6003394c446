"""How much of each ConsumeQueue stays in memory: the less, the more queues there are.

A queue keeps its newest units in blocks, from which readers close behind are served. 64 blocks of
128 units are nothing for a hundred queues, and 8 GB for 50,000 busy ones. So together they get
UNITS_BYTES_MAX; reading units from a file instead costs 0.05 µs a message (docs/store.md).

QueueTable owns the one object and tells it how many queues there are, under its lock; queues read
the two numbers on any thread, and a number that is a moment old does no harm.
"""

from typing import Final

_UNIT_SIZE: Final = 20  # consume_queue.UNIT_SIZE, which imports this module
UNITS_BYTES_MAX: Final = 64 << 20  # ours: a fifth of the 300 MB that 50,000 queues may take
BLOCK_UNITS_MIN: Final = 16  # ours: most of 50,000 queues hold a few messages
BLOCK_UNITS_MAX: Final = 128  # ours: 2.5 KB
BLOCKS_KEPT_MAX: Final = 64  # ours: written blocks that stay for readers close behind


class BlockSizes:
    """What holds for each queue now."""

    __slots__ = ("blocks_kept", "units")

    def __init__(self) -> None:
        self.units = BLOCK_UNITS_MAX
        self.blocks_kept = BLOCKS_KEPT_MAX

    def fit(self, queues: int) -> None:
        """Share out the memory among so many queues: one block of each, and others if it lasts."""
        share = UNITS_BYTES_MAX // _UNIT_SIZE // max(queues, 1)
        units = BLOCK_UNITS_MAX
        while units > BLOCK_UNITS_MIN and units * 2 > share:  # halves, so that blocks stay aligned
            units //= 2
        self.units = units
        self.blocks_kept = min(max(share // units, 1), BLOCKS_KEPT_MAX)
