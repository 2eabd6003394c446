"""The reply to a send request, made without a dict: one is needed for every message sent.

``make_send_reply`` is the readable form; ``encode_send_reply`` gives the same bytes and is what the
send lane calls. A property test holds the two equal. The order of the fields is that of Java's
broker: in a binary header its hand-written encoder's (SendMessageResponseHeader.encode, then the
extra fields), in a JSON header that of its HashMap.
"""

from functools import lru_cache
from struct import Struct
from typing import Final, NamedTuple

import orjson

from pyritemq.protocol.command import FLAG_RESPONSE, OUR_LANGUAGE, OUR_VERSION, Command
from pyritemq.protocol.headers.send import SendMessageReplyHeader
from pyritemq.protocol.rocketmq_header import encode_ext

MSG_REGION: Final = "MSG_REGION"
TRACE_ON: Final = "TRACE_ON"

_JSON_ORDER: Final = (
    "queueId", "batchUniqId", "transactionId", "msgId", TRACE_ON, MSG_REGION, "recallHandle",
    "queueOffset",
)  # fmt: skip

_HEAD = Struct(">IIHBHiiiI")  # a binary frame as far as its ext entries, without a remark
_HEAD_SIZE: Final = _HEAD.size
_JSON_TAIL: Final = f'"serializeTypeCurrentRPC":"JSON","version":{OUR_VERSION}}}'
_WORDS = Struct(">II")


def make_send_reply(
    request: Command,
    code: int,
    *,
    msg_id: str,
    queue_id: int,
    queue_offset: int,
    transaction_id: str | None,
    region_id: str,
    trace_on: bool,
    batch_uniq_id: str | None = None,
    recall_handle: str | None = None,
) -> Command:
    """The reply as a command, its ext fields in Java's order."""
    header = SendMessageReplyHeader(
        msg_id=msg_id,
        queue_id=queue_id,
        queue_offset=queue_offset,
        transaction_id=transaction_id,
        batch_uniq_id=batch_uniq_id,
        recall_handle=recall_handle,
    )
    ext = header.encode() | _common_fields(region_id, trace_on).ext
    if request.serialize_type == 0:
        ext = {name: ext[name] for name in _JSON_ORDER if name in ext}
    return request.make_reply(code, ext_fields=ext)


def encode_send_reply(
    request: Command,
    code: int,
    *,
    msg_id: str,
    queue_id: int,
    queue_offset: int,
    transaction_id: str | None,
    region_id: str,
    trace_on: bool,
    batch_uniq_id: str | None = None,
    recall_handle: str | None = None,
) -> bytes:
    """The whole frame of ``make_send_reply``. ``msg_id`` is one message id or several with commas
    between them: hexadecimal digits, as the server makes them."""
    if (
        transaction_id is None
        or batch_uniq_id is not None
        or recall_handle is not None
        or len(transaction_id) > 255
        or len(msg_id) > 255
        or not transaction_id.isascii()
        or not (request.serialize_type or transaction_id.isalnum())  # stands for itself in JSON
    ):
        return make_send_reply(
            request,
            code,
            msg_id=msg_id,
            queue_id=queue_id,
            queue_offset=queue_offset,
            transaction_id=transaction_id,
            region_id=region_id,
            trace_on=trace_on,
            batch_uniq_id=batch_uniq_id,
            recall_handle=recall_handle,
        ).encode()
    encode = _encode_binary if request.serialize_type else _encode_json
    common = _common_fields(region_id, trace_on)
    return encode(
        request.opaque, code, msg_id, str(queue_id), str(queue_offset), transaction_id, common
    )


class _CommonFields(NamedTuple):
    """The two fields that all send replies of a broker carry, in three forms."""

    ext: dict[str, str]
    entries: bytes
    members: str


@lru_cache(16)  # one broker has one pair of values
def _common_fields(region_id: str, trace_on: bool) -> _CommonFields:
    ext = {TRACE_ON: "true" if trace_on else "false", MSG_REGION: region_id}
    return _CommonFields(ext, encode_ext(ext), orjson.dumps(ext).decode()[1:-1])


def _encode_binary(
    opaque: int,
    code: int,
    msg_id: str,
    queue_id: str,
    queue_offset: str,
    transaction_id: str,
    common: _CommonFields,
) -> bytes:
    """1.5 µs in all where make_send_reply(...).encode() takes 7.3 µs (2026-11-18, CPython 3.11)."""
    entries = (
        f"\0\5msgId\0\0\0{chr(len(msg_id))}{msg_id}"
        f"\0\7queueId\0\0\0{chr(len(queue_id))}{queue_id}"
        f"\0\13queueOffset\0\0\0{chr(len(queue_offset))}{queue_offset}"
        f"\0\15transactionId\0\0\0{chr(len(transaction_id))}{transaction_id}"
    ).encode("latin-1")
    size = len(entries) + len(common.entries)
    head = _HEAD.pack(
        _HEAD_SIZE - 4 + size,
        1 << 24 | _HEAD_SIZE - 8 + size,
        code & 0xFFFF,
        OUR_LANGUAGE,
        OUR_VERSION,
        opaque,
        FLAG_RESPONSE,
        0,
        size,
    )
    return b"".join((head, entries, common.entries))


def _encode_json(
    opaque: int,
    code: int,
    msg_id: str,
    queue_id: str,
    queue_offset: str,
    transaction_id: str,
    common: _CommonFields,
) -> bytes:
    """1.9 µs in all where make_send_reply(...).encode() takes 6.2 µs (2026-11-18, CPython 3.11)."""
    header = (
        f'{{"code":{code},"extFields":{{"queueId":"{queue_id}","transactionId":"{transaction_id}",'
        f'"msgId":"{msg_id}",{common.members},"queueOffset":"{queue_offset}"}},'
        f'"flag":1,"language":"JAVA","opaque":{opaque},{_JSON_TAIL}'
    ).encode()
    size = len(header)
    return _WORDS.pack(4 + size, size) + header
