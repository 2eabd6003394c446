"""How much of what is new goes into one micro-batch."""

from collections.abc import Callable

from pyritemq.spark.queues import Offsets, QueueRange


def limit_rows(starts: Offsets, ends: Offsets, rows_max: int) -> Offsets:
    """Ends that take at most so many messages, shared out by how far each queue is behind."""
    lags = {key: max(end - starts.get(key, end), 0) for key, end in ends.items()}
    total = sum(lags.values())
    if total <= rows_max:
        return dict(ends)
    shares = {key: lag * rows_max // total for key, lag in lags.items()}
    spare = rows_max - sum(shares.values())
    # what rounding left over goes to those that lost most by it, so that no queue ever starves
    by_loss = sorted(lags, key=lambda key: (-(lags[key] * rows_max % total), key))
    for key in by_loss[:spare]:
        shares[key] += 1
    return {key: starts.get(key, end) + shares[key] for key, end in ends.items()}


def limit_bytes(
    starts: Offsets, ends: Offsets, bytes_max: int, mean_size: Callable[[QueueRange], float]
) -> Offsets:
    """Ends that take about so many bytes, and at least one message."""
    behind = [
        QueueRange(key, starts.get(key, end), end)
        for key, end in ends.items()
        if end > starts.get(key, end)
    ]
    total_bytes = sum(mean_size(each) * each.size for each in behind)
    total_rows = sum(each.size for each in behind)
    if total_bytes <= bytes_max:
        return dict(ends)
    return limit_rows(starts, ends, max(int(total_rows * bytes_max / total_bytes), 1))


def rows_between(starts: Offsets, ends: Offsets) -> int:
    return sum(max(end - starts.get(key, end), 0) for key, end in ends.items())
