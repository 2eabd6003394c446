"""Which queues a consumer gets when the broker shares them out (Java: QueryAssignmentProcessor, and
the client's AllocateMessageQueueAveragely and …ByCircle).  Pure functions."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Strategy = Callable[["Sequence[Queue]", "Sequence[str]", int], "list[Queue]"]

ANY_QUEUE = -1


class Queue(NamedTuple):
    """A message queue; sorted as Java's MessageQueue."""

    topic: str
    broker_name: str
    queue_id: int


def averagely(queues: Sequence[Queue], clients: Sequence[str], index: int) -> list[Queue]:
    """Neighbouring queues; the first clients get one more where it does not come out even."""
    share, more = divmod(len(queues), len(clients))
    start = index * share + min(index, more)
    return list(queues[start : start + share + (index < more)])


def by_circle(queues: Sequence[Queue], clients: Sequence[str], index: int) -> list[Queue]:
    return list(queues[index :: len(clients)])


STRATEGIES: dict[str, Strategy] = {"AVG": averagely, "AVG_BY_CIRCLE": by_circle}


def allocate_to_pull(
    strategy: Strategy, queues: Sequence[Queue], clients: Sequence[str], client: str
) -> list[Queue]:
    """Nothing for a client that is not in the group."""
    return strategy(queues, clients, clients.index(client)) if client in clients else []


def allocate_to_pop(
    strategy: Strategy, queues: Sequence[Queue], clients: Sequence[str], client: str, share: int
) -> list[Queue]:
    """Popped queues can be shared: a client also gets those of the `share` clients after it, or
    with no or a large `share` any queue of each broker."""
    if share <= 0 or share >= len(clients) - 1:
        brokers = dict.fromkeys((queue.topic, queue.broker_name) for queue in queues)
        return [Queue(topic, broker, ANY_QUEUE) for topic, broker in brokers]
    if client not in clients:
        return []
    index = clients.index(client)
    if len(clients) > len(queues):
        return [queues[index % len(queues)]] if queues else []
    allocated: dict[Queue, None] = {}
    for step in range(share + 1):
        allocated |= dict.fromkeys(strategy(queues, clients, (index + step) % len(clients)))
    return list(allocated)
