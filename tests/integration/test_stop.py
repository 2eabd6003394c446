"""A stop saves what it can, even when something cannot be saved."""

from integration.wire import send
from pyritemq.storage.errors import DiskFullError


async def test_a_table_that_cannot_be_saved_does_not_keep_the_store_from_closing(
    start_server, stop_server, monkeypatch, caplog
):
    """On a full disk the first table failed, the store stayed open and `abort` with it."""
    server = await start_server()
    wire = await server.connect()
    await send(wire, "Topic", b"x")
    broker = server.broker.broker

    def full():
        raise DiskFullError("no room for topics.json")

    monkeypatch.setattr(broker.topics, "persist", full)
    root = broker.store.config.root
    assert (root / "abort").exists()
    await stop_server(server)
    assert not (root / "abort").exists()
    assert "no room for topics.json" in caplog.text
