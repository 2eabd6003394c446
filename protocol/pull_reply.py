"""The head of a pull's reply, made without a dict: one is needed for every pull that is answered.

``make_pull_reply`` is the readable form; ``encode_pull_reply_head`` gives the same bytes and is
what the pull lane calls.  A property test holds the two equal.  The order of the fields is that of
Java's broker: in a binary header its hand-written encoder's (PullMessageResponseHeader.encode), in
a JSON header that of its HashMap.
"""

from struct import Struct
from typing import Final

from pyritemq.protocol.command import FLAG_RESPONSE, OUR_LANGUAGE, OUR_VERSION, Command
from pyritemq.protocol.headers.pull import PullMessageReplyHeader

_JSON_ORDER: Final = (
    "suggestWhichBrokerId", "groupSysFlag", "nextBeginOffset", "maxOffset", "minOffset",
    "topicSysFlag",
)  # fmt: skip

_WORDS = Struct(">II")
_FIXED = Struct(">hBHiii")  # code, language, version, opaque, flag, length of the remark
_SIZE = Struct(">i")


def make_pull_reply(
    request: Command,
    code: int,
    status: str,
    *,
    broker_id: int,
    next_offset: int,
    min_offset: int,
    max_offset: int,
    topic_sys_flag: int,
    group_sys_flag: int,
) -> Command:
    """The reply as a command without its body; ``status`` is its remark, as in Java."""
    ext = PullMessageReplyHeader(
        suggest_which_broker_id=broker_id,
        next_begin_offset=next_offset,
        min_offset=min_offset,
        max_offset=max_offset,
        topic_sys_flag=topic_sys_flag,
        group_sys_flag=group_sys_flag,
    ).encode()
    if request.serialize_type == 0:
        ext = {name: ext[name] for name in _JSON_ORDER}
    return request.make_reply(code, status, ext)


def encode_pull_reply_head(
    request: Command,
    code: int,
    status: str,
    *,
    broker_id: int,
    next_offset: int,
    min_offset: int,
    max_offset: int,
    topic_sys_flag: int,
    group_sys_flag: int,
    body_length: int,
) -> bytes:
    """The frame of ``make_pull_reply`` up to its body; ``status`` is a plain ASCII name.

    2.4 µs where make_pull_reply(...).encode_head(...) takes 13 µs (2026-11-18, CPython 3.11).
    """
    encode = _binary_header if request.serialize_type else _json_header
    header = encode(
        request.opaque, int(code), status, str(broker_id), str(next_offset), str(min_offset),
        str(max_offset), str(topic_sys_flag), str(group_sys_flag),
    )  # fmt: skip
    size = len(header)
    return _WORDS.pack(4 + size + body_length, request.serialize_type << 24 | size) + header


def _binary_header(
    opaque: int,
    code: int,
    status: str,
    broker_id: str,
    next_offset: str,
    min_offset: str,
    max_offset: str,
    topic_sys_flag: str,
    group_sys_flag: str,
) -> bytes:
    # Lengths of numbers take one byte of four, and digits are one byte each.
    entries = (
        f"\0\24suggestWhichBrokerId\0\0\0{len(broker_id):c}{broker_id}"
        f"\0\17nextBeginOffset\0\0\0{len(next_offset):c}{next_offset}"
        f"\0\11minOffset\0\0\0{len(min_offset):c}{min_offset}"
        f"\0\11maxOffset\0\0\0{len(max_offset):c}{max_offset}"
        f"\0\14topicSysFlag\0\0\0{len(topic_sys_flag):c}{topic_sys_flag}"
        f"\0\14groupSysFlag\0\0\0{len(group_sys_flag):c}{group_sys_flag}"
    ).encode("latin-1")
    remark = status.encode()
    fixed = _FIXED.pack(code, OUR_LANGUAGE, OUR_VERSION, opaque, FLAG_RESPONSE, len(remark))
    return b"".join((fixed, remark, _SIZE.pack(len(entries)), entries))


def _json_header(
    opaque: int,
    code: int,
    status: str,
    broker_id: str,
    next_offset: str,
    min_offset: str,
    max_offset: str,
    topic_sys_flag: str,
    group_sys_flag: str,
) -> bytes:
    return (
        f'{{"code":{code},"extFields":{{"suggestWhichBrokerId":"{broker_id}",'
        f'"groupSysFlag":"{group_sys_flag}","nextBeginOffset":"{next_offset}",'
        f'"maxOffset":"{max_offset}","minOffset":"{min_offset}",'
        f'"topicSysFlag":"{topic_sys_flag}"}},"flag":1,"language":"JAVA","opaque":{opaque},'
        f'"remark":"{status}","serializeTypeCurrentRPC":"JSON","version":{OUR_VERSION}}}'
    ).encode()
