"""A store on a real disk for each test that asks for one, closed when the test ends."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from unit.storage.kit import SetClock, open_store

from pyritemq.storage import MessageStore

OpenStore = Callable[..., MessageStore]


@pytest.fixture
def clock() -> SetClock:
    return SetClock()


@pytest.fixture
def opened(tmp_path: Path, clock: SetClock) -> Iterator[OpenStore]:
    """Open the test's store, as often as it likes, with settings changed as it likes."""
    with ExitStack() as stores:

        def open_it(**changes: object) -> MessageStore:
            store = open_store(tmp_path / "store", clock, **changes)
            stores.callback(store.close)
            return store

        yield open_it


@pytest.fixture
def store(opened: OpenStore) -> MessageStore:
    return opened()
