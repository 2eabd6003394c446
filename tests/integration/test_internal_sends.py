"""The broker's own messages go through the send lane, among the clients'."""

import trio

from integration.wire import pull, send
from pyritemq.protocol.codes import ResponseCode
from pyritemq.storage.messages import MessageToStore, PutStatus


def put(server, *messages):
    """Put messages from here and return an event and the results that come with it."""
    token = trio.lowlevel.current_trio_token()
    done, results = trio.Event(), []

    def keep(found):
        results.extend(found)
        token.run_sync_soon(done.set)

    assert server.broker.broker.internal_sends.put(list(messages), keep)
    return done, results


async def test_our_own_messages_are_stored_and_published(server):
    wire = await server.connect()
    await send(wire, "Topic", b"first")
    done, results = put(
        server, MessageToStore(b"Topic", 0, b"own-1"), MessageToStore(b"Topic", 1, b"own-2")
    )
    with trio.fail_after(10):
        await done.wait()
    assert [result.status for result in results] == [PutStatus.PUT_OK] * 2
    assert [result.queue_offset for result in results] == [1, 0]
    found = await pull(wire, "Topic")
    assert found.code == ResponseCode.SUCCESS
    assert b"own-1" in bytes(found.body)


async def test_a_failed_append_is_told_to_whoever_put(server, monkeypatch):
    def broken(messages):
        raise RuntimeError("no disk")

    monkeypatch.setattr(server.broker.broker.store, "put_batch", broken)
    done, results = put(server, MessageToStore(b"Topic", 0, b"own"))
    with trio.fail_after(10):
        await done.wait()
    assert [result.status for result in results] == [PutStatus.UNKNOWN_ERROR]
