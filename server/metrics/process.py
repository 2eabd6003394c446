"""The process, under the names that Prometheus' own clients use; empty where there is no /proc."""

from __future__ import annotations

import os
import resource
from pathlib import Path
from typing import TYPE_CHECKING

from pyritemq.server.metrics.text import COUNTER, GAUGE, Family

if TYPE_CHECKING:
    from collections.abc import Iterator

_PROC = Path("/proc/self")


def process_families() -> Iterator[Family]:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    cpu = Family("process_cpu_seconds_total", COUNTER, "CPU time used")
    cpu.add(round(usage.ru_utime + usage.ru_stime, 3), {})
    yield cpu
    memory = Family("process_resident_memory_bytes", GAUGE, "Memory in use")
    files = Family("process_open_fds", GAUGE, "Open files and sockets")
    try:
        pages = int((_PROC / "statm").read_text().split()[1])
        files.add(len(os.listdir(_PROC / "fd")), {})
    except OSError:
        return
    memory.add(pages * resource.getpagesize(), {})
    yield memory
    yield files
