"""Exchanges that PyriteMQ and the real RocketMQ 5.5.0 answered alike: tests/golden/exchanges.jsonl.

`pyritemq-conformance record` wrote what the conformance cases ask, and `replay --fixtures` kept one
exchange of each kind, with the real broker's reply.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from pyritemq.protocol.codes import RequestCode
from pyritemq.protocol.command import Command
from pyritemq.protocol.fields import Header
from pyritemq.protocol.frames import FrameDecoder
from pyritemq.protocol.headers import pop
from pyritemq.protocol.record import decode_records

HEADER_OF: dict[int, type[Header]] = {
    RequestCode.POP_MESSAGE: pop.PopMessageHeader,
    RequestCode.ACK_MESSAGE: pop.AckMessageHeader,
    RequestCode.CHANGE_MESSAGE_INVISIBLETIME: pop.ChangeInvisibleTimeHeader,
    RequestCode.NOTIFICATION: pop.NotificationHeader,
}
REPLY_HEADER_OF: dict[int, type[Header]] = {
    RequestCode.POP_MESSAGE: pop.PopMessageReplyHeader,
    RequestCode.CHANGE_MESSAGE_INVISIBLETIME: pop.ChangeInvisibleTimeReplyHeader,
    RequestCode.NOTIFICATION: pop.NotificationReplyHeader,
}
BINARY_CODE_MAX = 0x7FFF
"""Codes of POP are beyond: Java sends them as JSON."""

RECORDS = {RequestCode.PULL_MESSAGE, RequestCode.POP_MESSAGE, RequestCode.QUERY_MESSAGE}
EXCHANGES = [
    json.loads(line)
    for line in (Path(__file__).parents[2] / "golden" / "exchanges.jsonl")
    .read_text(encoding="utf-8")
    .splitlines()[1:]
]


def those(*codes: int) -> list[Any]:
    return [
        pytest.param(one, id=f"{one['number']}-{one['request']['code']}")
        for one in EXCHANGES
        if not codes or (one["request"]["code"] in codes and one["reply"]["code"] == 0)
    ]


def command_of(said: dict[str, Any], *, binary: bool) -> Command:
    return Command(
        said["code"],
        opaque=7,
        flag=said["flag"],
        language=said["language"],
        version=said["version"],
        remark=said["remark"],
        ext_fields=said["fields"],
        body=bytes.fromhex(said["body"]),
        serialize_type=int(binary),
    )


@pytest.mark.parametrize("one", those())
def test_what_was_said_survives_both_serialisations(one: dict[str, Any]) -> None:
    for said in (one["request"], one["reply"]):
        for binary in (False, True) if said["code"] <= BINARY_CODE_MAX else (False,):
            command = command_of(said, binary=binary)
            (decoded,) = FrameDecoder().feed(command.encode())
            assert dict(decoded.ext_fields) == said["fields"]
            assert (decoded.code, decoded.remark) == (said["code"], said["remark"])
            assert bytes(decoded.body).hex() == said["body"]


@pytest.mark.parametrize("one", those(*HEADER_OF))
def test_declared_header_loses_no_field_of_a_request(one: dict[str, Any]) -> None:
    fields = one["request"]["fields"]
    encoded = HEADER_OF[one["request"]["code"]].decode(fields).encode()
    assert {name: encoded.get(name) for name in fields} == fields


@pytest.mark.parametrize("one", those(*REPLY_HEADER_OF))
def test_declared_header_loses_no_field_of_the_real_brokers_reply(one: dict[str, Any]) -> None:
    fields = one["reply"]["fields"]
    encoded = REPLY_HEADER_OF[one["request"]["code"]].decode(fields).encode()
    assert {name: encoded.get(name) for name in fields} == fields


@pytest.mark.parametrize("one", those(*RECORDS))
def test_records_of_the_real_broker_are_read_to_their_last_byte(one: dict[str, Any]) -> None:
    body = bytes.fromhex(one["reply"]["body"])
    assert sum(record.total_size for record in decode_records(body)) == len(body)
