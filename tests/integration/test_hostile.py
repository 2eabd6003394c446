"""Every request code of broker and name server with hostile fields and bodies.

Names with path separators, NULs and ten thousand letters, numbers below zero and beyond every
bound: each gets an answer, none is a fault of ours in the log, no file appears outside the store
and the server goes on. What the tools would refuse themselves is sent all the same.
"""

import logging
import re
from pathlib import Path

import pytest
import trio

import pyritemq.server.broker.processors
import pyritemq.server.namesrv.processors  # noqa: F401 - both fill the registries of handlers
from integration.wire import pull, send
from pyritemq.protocol.codes import RequestCode, ResponseCode
from pyritemq.protocol.record import decode_records
from pyritemq.server.lanes import Lane
from pyritemq.server.registry import broker_handlers, namesrv_handlers

HOSTILE = {
    "a path": ("../../../../tmp/pyritemq-evil", -1),
    "an absolute path": ("/tmp/pyritemq-evil", 2**31 - 1),
    "a NUL": ("evil\0name", -(2**31)),
    "a long name": ("e" * 10_000, 2**63 - 1),
    "other letters": ("топик%n{}[]\n\r\x7f", 0),
    "nothing": ("", -(2**63)),
}
BODIES = (b"", b"\0\xff" * 50, b"{", b"[]", b"null", b'{"topicConfigTable":{"../x":null}}')


def hostile_fields(header, text, number):
    if header is None:
        return {}
    return {
        field.wire_name: str(number) if _is_number(field) else text for field in header.wire_fields
    }


def _is_number(field):
    try:
        field.parse("0")
        field.parse("letters")
    except ValueError:
        return True
    return False


SILENT = {
    *(RequestCode.CHECK_TRANSACTION_STATE, RequestCode.NOTIFY_MIN_BROKER_ID_CHANGE),
}
"""Notices: these have no reply."""


async def ask_all(server, handlers, address, text, number):
    wire = await server.connect(address)
    asked = {}
    for handler in handlers:
        if handler.batch is None and handler.lane is not Lane.PULL:
            fields = hostile_fields(handler.header, text, number)
            for body in (*BODIES, text.encode()):
                asked[await wire.ask(handler.code, fields, body)] = handler.code
    for opaque, code in asked.items():
        if code not in SILENT:
            try:
                await wire.reply(opaque)
            except trio.TooSlowError:
                pytest.fail(f"no answer to {code!r}")
    return len(asked)


def evil_files(folder):
    return [*Path("/tmp").glob("pyritemq-evil*"), *folder.rglob("*evil*")]


@pytest.mark.parametrize("kind", HOSTILE)
async def test_every_code_with_hostile_fields_leaves_server_and_store_sound(
    start_server, stop_server, caplog, kind, tmp_path
):
    text, number = HOSTILE[kind]
    server = await start_server()
    wire = await server.connect()
    await send(wire, "Topic", b"before")
    with caplog.at_level(logging.ERROR):
        asked = await ask_all(server, broker_handlers, server.broker_address, text, number)
        asked += await ask_all(server, namesrv_handlers, server.namesrv_address, text, number)
    assert asked > 500
    faults = [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR]
    assert faults == []
    assert evil_files(tmp_path) == []
    names = server.broker.broker.topics.snapshot.table
    assert [name for name in names if not re.fullmatch(r"[%|a-zA-Z0-9_-]{1,127}", name)] == []
    reply = await send(wire, "Topic", b"after")
    assert reply.code == ResponseCode.SUCCESS, reply.remark
    await stop_server(server)

    server = await start_server()
    found = await pull(await server.connect(), "Topic")
    assert [record.body for record in decode_records(bytes(found.body))] == [b"before", b"after"]
    await stop_server(server)
