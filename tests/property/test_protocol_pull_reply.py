"""The pull lane's quick reply is the readable one, byte for byte."""

import json
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from pyritemq.protocol.command import Command, decode_frame
from pyritemq.protocol.pull_reply import encode_pull_reply_head, make_pull_reply

GOLDEN = Path(__file__).resolve().parent.parent / "golden" / "broker-5.5.0.json"
PULL_MESSAGE = 11

int32 = st.integers(-(2**31), 2**31 - 1)
int64 = st.integers(-(2**63), 2**63 - 1)
fields = st.fixed_dictionaries(
    {
        "broker_id": int64,
        "next_offset": int64,
        "min_offset": int64,
        "max_offset": int64,
        "topic_sys_flag": int32,
        "group_sys_flag": int32,
    }
)


@given(
    opaque=int32,
    serialize_type=st.sampled_from([0, 1]),
    code=st.integers(0, 300),
    status=st.sampled_from(["FOUND", "OFFSET_OVERFLOW_ONE", "NO_MATCHED_MESSAGE"]),
    fields=fields,
    body_length=st.integers(0, 1 << 22),
)
def test_the_quick_head_equals_the_readable_one(
    opaque, serialize_type, code, status, fields, body_length
):
    request = Command(PULL_MESSAGE, opaque=opaque, serialize_type=serialize_type)
    quick = encode_pull_reply_head(request, code, status, **fields, body_length=body_length)
    readable = make_pull_reply(request, code, status, **fields)
    assert quick == readable.encode_head(body_length)


def test_the_head_is_what_the_java_broker_sends():
    found = [
        vector
        for vector in json.loads(GOLDEN.read_text())
        if vector.get("request_code") == PULL_MESSAGE and "nextBeginOffset" in _text(vector)
    ]
    assert found
    for vector in found:
        frame = bytes.fromhex(vector["frame_hex"])
        reply = decode_frame(frame[4:])
        ext = reply.ext_fields
        head = encode_pull_reply_head(
            Command(PULL_MESSAGE, opaque=reply.opaque, serialize_type=reply.serialize_type),
            reply.code,
            reply.remark,
            broker_id=int(ext["suggestWhichBrokerId"]),
            next_offset=int(ext["nextBeginOffset"]),
            min_offset=int(ext["minOffset"]),
            max_offset=int(ext["maxOffset"]),
            topic_sys_flag=int(ext["topicSysFlag"]),
            group_sys_flag=int(ext["groupSysFlag"]),
            body_length=len(reply.body),
        )
        assert frame.startswith(head)
        assert len(frame) == len(head) + len(reply.body)


def _text(vector):
    return bytes.fromhex(vector["frame_hex"]).decode("latin-1")
