from typing import Any

import pytest

from pyritemq.protocol.codes import ResponseCode
from pyritemq.protocol.command import Command
from pyritemq.protocol.send_reply import encode_send_reply, make_send_reply


def test_binary_reply_is_what_javas_encoder_writes() -> None:
    """RemotingCommand.fastEncodeHeader of 5.5.0 with a SendMessageResponseHeader and the two
    fields that the broker adds, 2026-11-18; rocketmq.remoting.version 513 as a broker sets it."""
    java = bytes.fromhex(
        "000000ad010000a900000002010000000700000001000000000000009400056d7367496400000001"
        "4d0007717565756549640000000131000b71756575654f66667365740000000135000d7472616e73"
        "616374696f6e49640000000154000b6261746368556e697149640000000142000c726563616c6c48"
        "616e646c650000000152000854524143455f4f4e0000000474727565000a4d53475f524547494f4e"
        "0000000d44656661756c74526567696f6e"
    )
    ours = encode_send_reply(
        Command(310, opaque=7, serialize_type=1),
        ResponseCode.SUCCESS,
        msg_id="M",
        queue_id=1,
        queue_offset=5,
        transaction_id="T",
        batch_uniq_id="B",
        recall_handle="R",
        region_id="DefaultRegion",
        trace_on=True,
    )
    assert ours == java


@pytest.mark.parametrize("serialize_type", [0, 1])
@pytest.mark.parametrize(
    ("msg_id_length", "transaction_id_length"), [(32, 56), (255, 255), (256, 32), (32, 256)]
)
def test_ids_of_any_length_are_written_as_declared(
    serialize_type: int, msg_id_length: int, transaction_id_length: int
) -> None:
    request = Command(310, opaque=7, serialize_type=serialize_type)
    values: dict[str, Any] = {
        "msg_id": "A" * msg_id_length,
        "queue_id": 0,
        "queue_offset": 12345678901,
        "transaction_id": "B" * transaction_id_length,
        "region_id": "DefaultRegion",
        "trace_on": False,
    }
    expected = make_send_reply(request, ResponseCode.SUCCESS, **values)
    assert encode_send_reply(request, ResponseCode.SUCCESS, **values) == expected.encode()
