"""Where the server gets its time, so that tests can hand in their own.

`now_ms` is the wall clock (store timestamps, leases that a client sees); `monotonic_ns` measures.
"""

import time
from typing import Protocol


class Clock(Protocol):
    """What a service may ask about time."""

    def now_ms(self) -> int: ...

    def monotonic_ns(self) -> int: ...


class SystemClock:
    """The machine's clocks."""

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def monotonic_ns(self) -> int:
        return time.monotonic_ns()
