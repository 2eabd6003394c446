"""A disk that fills up: sends are refused with Java's code, reads go on, and it mends itself."""

import json
import os
import subprocess

import pytest
import trio

from integration.wire import pull, pull_fields, send
from pyritemq.protocol.codes import RequestCode, ResponseCode
from pyritemq.protocol.record import decode_record
from pyritemq.storage.disk import RealDisk
from pyritemq.storage.errors import DiskFullError, StorageError

MIB = 1 << 20
BODY = bytes(100_000)


class Room:
    """A place of a few MiB for a store, and a way to fill it and to make room again."""

    def __init__(self, folder, fill, free):
        self.folder, self.fill, self.free = folder, fill, free


@pytest.fixture
def small_mount(tmp_path):
    """A file system of 8 MiB; only root may mount one."""
    folder = tmp_path / "mount"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=8m", "none", str(folder)]
    if os.geteuid() != 0 or subprocess.run(command, capture_output=True).returncode:
        pytest.skip("cannot mount a file system here")
    ballast = folder / "ballast"

    def fill():
        with open(ballast, "wb", buffering=0) as file:
            try:
                while True:
                    file.write(bytes(4096))
            except OSError:
                return

    yield Room(folder / "store", fill, ballast.unlink)
    subprocess.run(["umount", "-l", str(folder)], check=True)


@pytest.fixture
def refusing_disk(tmp_path, monkeypatch):
    """A disk that has no space when told so."""
    state = {"full": False}

    def check(path):
        if state["full"]:
            raise DiskFullError(f"no space left for {path}")

    plain_open = RealDisk.open

    def guarded_open(self, path, *, create=False):
        file = plain_open(self, path, create=create)
        write_at = file.write_at

        class Guarded:
            def __getattr__(self, name):
                return getattr(file, name)

            def write_at(self, offset, data):
                check(path)
                write_at(offset, data)

        return Guarded()

    monkeypatch.setattr(RealDisk, "open", guarded_open)
    return Room(
        tmp_path / "store",
        lambda: state.update(full=True),
        lambda: state.update(full=False),
    )


@pytest.fixture(params=["small_mount", "refusing_disk"])
def room(request):
    return request.getfixturevalue(request.param)


async def pulled_count(wire, topic):
    count = offset = 0
    while (reply := await pull(wire, topic, offset=offset)).code == ResponseCode.SUCCESS:
        position = 0
        while position < len(reply.body):
            position += decode_record(memoryview(reply.body), position).total_size
            count += 1
        offset = int(reply.ext_fields["nextBeginOffset"])
    return count


async def test_a_full_disk_refuses_sends_serves_reads_and_recovers(room, start_server, stop_server):
    server = await start_server(store=room.folder)
    wire = await server.connect()
    for _ in range(5):
        assert (await send(wire, "Full", BODY)).code == ResponseCode.SUCCESS
    room.fill()
    accepted = 5
    refused = await send(wire, "Full", BODY)
    while refused.code == ResponseCode.SUCCESS and accepted < 100:
        accepted += 1  # what the file had room for already
        refused = await send(wire, "Full", BODY)
    assert refused.code == ResponseCode.SERVICE_NOT_AVAILABLE
    assert "the broker's disk is full [CL:" in refused.remark
    assert await pulled_count(wire, "Full") == accepted
    room.free()
    for _ in range(3):
        reply = await send(wire, "Full", BODY)
        assert reply.code == ResponseCode.SUCCESS
    assert int(reply.ext_fields["queueOffset"]) == accepted + 2
    assert await pulled_count(wire, "Full") == accepted + 3
    await stop_server(server)
    again = await start_server(store=room.folder)
    assert await pulled_count(await again.connect(), "Full") == accepted + 3
    await stop_server(again)


async def test_a_group_that_comes_while_the_disk_is_full_is_served_and_saved_later(
    room, start_server, stop_server
):
    server = await start_server(store=room.folder)
    broker = server.broker.broker
    wire = await server.connect()
    for _ in range(5):
        assert (await send(wire, "Full", BODY)).code == ResponseCode.SUCCESS
    room.fill()
    subscription = {"topic": "Full", "subString": "*", "subVersion": 1, "expressionType": "TAG"}
    consumer = {
        "groupName": "late",
        "consumeType": "CONSUME_PASSIVELY",
        "messageModel": "CLUSTERING",
        "consumeFromWhere": "CONSUME_FROM_FIRST_OFFSET",
        "subscriptionDataSet": [subscription],
    }
    body = {"clientID": "client", "consumerDataSet": [consumer], "producerDataSet": []}
    reply = await wire.call(RequestCode.HEART_BEAT, body=json.dumps(body).encode())
    assert reply.code == ResponseCode.SUCCESS
    fields = pull_fields("Full", 0, 0, wait_ms=0) | {"consumerGroup": "late", "subVersion": 1}
    reply = await wire.call(RequestCode.PULL_MESSAGE, fields | {"sysFlag": "0"})
    assert reply.code == ResponseCode.SUCCESS
    with pytest.raises((OSError, StorageError)):
        broker.groups.save_late()
    room.free()
    for table in (broker.groups, broker.topics):
        await trio.to_thread.run_sync(table.save_late)
    config = room.folder / "config"
    assert (
        "late"
        in json.loads((config / "subscriptionGroup.json").read_text())["subscriptionGroupTable"]
    )
    assert "%RETRY%late" in (config / "topics.json").read_text()
    await stop_server(server)


async def test_a_nearly_full_disk_refuses_sends_and_makes_room(
    start_server, stop_server, monkeypatch
):
    server = await start_server(deleteCommitLogFilesInterval="0")
    store = server.broker.broker.store
    wire = await server.connect()
    for _ in range(35):  # more than three files of 1 MiB
        assert (await send(wire, "Nearly", BODY)).code == ResponseCode.SUCCESS
    used = {"ratio": 0.95}
    monkeypatch.setattr(RealDisk, "used_ratio", lambda _self, _path: used["ratio"])
    await trio.to_thread.run_sync(store.clean_files)
    refused = await send(wire, "Nearly", BODY)
    assert refused.code == ResponseCode.SERVICE_NOT_AVAILABLE
    moved = await pull(wire, "Nearly", offset=0)
    assert moved.code == ResponseCode.PULL_OFFSET_MOVED
    first = int(moved.ext_fields["nextBeginOffset"])
    assert first == int(moved.ext_fields["minOffset"]) > 0
    assert (await pull(wire, "Nearly", offset=first)).code == ResponseCode.SUCCESS
    used["ratio"] = 0.5
    await trio.to_thread.run_sync(store.clean_files)
    assert (await send(wire, "Nearly", BODY)).code == ResponseCode.SUCCESS
    await stop_server(server)
