"""Texts that Java's broker adds to its remarks, so that a client prints what it always printed."""

from __future__ import annotations

import shutil
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyritemq.compat.broker_conf import BrokerConfig

REMARK_NOT_CLEARED = "not set any response code"
"""What Java's replies start with; some processors set the code only."""

FAQ_URL = "https://rocketmq.apache.org/docs/bestPractice/06FAQ"


def see_faq(remark: str) -> str:
    """A remark followed by Java's pointer to the FAQ."""
    return f"{remark}\nSee {FAQ_URL} for further details."


def human_time(timestamp_ms: int) -> str:
    """A time in the server's zone (Java: UtilAll.timeMillisToHumanString2)."""
    local = datetime.fromtimestamp(timestamp_ms / 1000).astimezone()
    return f"{local:%Y-%m-%d %H:%M:%S},{timestamp_ms % 1000:03d}"


def disk_usage(config: BrokerConfig) -> str:
    """How full the store's disks are, for the remark of a send that found one full."""
    root = Path(config.store_path_root_dir)
    log = min(_used(Path(folder)) for folder in config.commit_log_dirs)
    queues, index = _used(root / "consumequeue"), _used(root / "index")
    return f"CL: {log:5.2f} CQ: {queues:5.2f} INDEX: {index:5.2f}"


def _used(folder: Path) -> float:
    """The used part of a folder's disk, rounded up to hundredths; -1 if there is no folder."""
    try:
        total, used, free = shutil.disk_usage(folder)
    except OSError:
        return -1.0
    return -(-used * 100 // (used + free)) / 100 if total else -1.0


def late_remark(waited_ms: int, behind: int) -> str:
    """For a send that waited too long; `behind` is how many were answered after it."""
    return (
        "[TIMEOUT_CLEAN_QUEUE]broker busy, start flow control for a while, "
        f"period in queue: {waited_ms}ms, size of queue: {behind}"
    )
