"""The quick readers and writers of sends and pulls equal the declared headers, always."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pyritemq.protocol.command import Command, decode_frame
from pyritemq.protocol.errors import ProtocolError
from pyritemq.protocol.headers.pull import PullFields, PullMessageHeader, decode_pull
from pyritemq.protocol.headers.send import SendFields, SendMessageHeader, decode_send
from pyritemq.protocol.rocketmq_header import encode_ext
from pyritemq.protocol.send_reply import encode_send_reply, make_send_reply

i32 = st.integers(-(1 << 31), (1 << 31) - 1)
i64 = st.integers(-(1 << 63), (1 << 63) - 1)
small = st.integers(0, 1200)
clock_ms = st.integers(10**12 - 5, 10**13 + 5)
text = st.text(st.characters(exclude_categories=["Cs"]), max_size=300)
names = st.text("abcXYZ-_%0123456789", max_size=30) | text
properties = st.text("KV\x01\x02 é", max_size=400) | st.just("x" * 70_000)


@st.composite
def send_headers(draw: Any) -> SendMessageHeader:
    return SendMessageHeader(
        producer_group=draw(names),
        topic=draw(names),
        default_topic=draw(names),
        default_topic_queue_nums=draw(small | i32),
        queue_id=draw(small | i32),
        sys_flag=draw(small | i32),
        born_timestamp=draw(clock_ms | i64),
        flag=draw(small | i32),
        properties=draw(st.none() | properties),
        reconsume_times=draw(small | i32),
        unit_mode=draw(st.booleans()),
        batch=draw(st.booleans()),
        max_reconsume_times=draw(st.none() | small | i32),
        broker_name=draw(st.none() | names),
    )


@st.composite
def pull_headers(draw: Any) -> PullMessageHeader:
    return PullMessageHeader(
        consumer_group=draw(names),
        topic=draw(names),
        lite_topic=draw(st.none() | st.none() | names),
        queue_id=draw(small | i32),
        queue_offset=draw(i64),
        max_msg_nums=draw(small | i32),
        sys_flag=draw(small | i32),
        commit_offset=draw(i64),
        suspend_timeout_millis=draw(i64),
        subscription=draw(st.none() | names),
        sub_version=draw(i64),
        expression_type=draw(st.none() | names),
        max_msg_bytes=draw(st.none() | i32),
        broker_name=draw(st.none() | names),
    )


def declared_send(ext: dict[str, str]) -> SendFields:
    declared = SendMessageHeader.decode_v2(ext)
    values = [
        (declared.properties or "").encode()
        if name == "properties_utf8"
        else getattr(declared, name)
        for name in SendFields._fields
    ]
    return SendFields._make(values)


def declared_pull(ext: dict[str, str]) -> PullFields:
    declared = PullMessageHeader.decode(ext)
    return PullFields._make(getattr(declared, name) for name in PullFields._fields)


def outcome(read: Callable[[], Any]) -> Any:
    """What is read, or the words of the refusal."""
    try:
        return read()
    except ProtocolError as error:
        return type(error), str(error)


def received(code: int, raw: bytes) -> Command:
    """A binary command with these ext entries, as the frame decoder leaves it."""
    frame = Command(code, serialize_type=1).encode()[4:-4] + len(raw).to_bytes(4) + raw
    word = 1 << 24 | len(frame) - 4
    return decode_frame(word.to_bytes(4) + frame[4:])


def check_send(raw: bytes) -> None:
    quick = outcome(lambda: decode_send(received(310, raw)))
    assert quick == outcome(lambda: declared_send(received(310, raw).ext_fields))


def check_pull(raw: bytes) -> None:
    quick = outcome(lambda: decode_pull(received(11, raw)))
    assert quick == outcome(lambda: declared_pull(received(11, raw).ext_fields))


@given(send_headers())
def test_send_is_read_as_declared(header: SendMessageHeader) -> None:
    ext = header.encode_v2()
    check_send(encode_ext(ext))
    as_json = decode_frame(Command(320, ext_fields=ext).encode()[4:])
    assert decode_send(as_json) == declared_send(ext)


@given(send_headers(), st.dictionaries(names, names, max_size=3), st.data())
def test_send_with_more_fewer_or_shuffled_entries_is_read_as_declared(
    header: SendMessageHeader, more: dict[str, str], data: st.DataObject
) -> None:
    entries = list((header.encode_v2() | more).items())
    if data.draw(st.booleans()):
        entries = data.draw(st.permutations(entries))
    elif data.draw(st.booleans()):
        del entries[data.draw(st.integers(0, len(entries) - 1))]
    else:
        entries.insert(data.draw(st.integers(0, len(entries))), data.draw(st.sampled_from(entries)))
    check_send(b"".join(encode_ext(dict([entry])) for entry in entries))
    ext = dict(entries)
    command = Command(310, ext_fields=ext)
    assert outcome(lambda: decode_send(command)) == outcome(lambda: declared_send(ext))


ODD_VALUES = (
    "", "0", "7", "-1", "12", "999", "1000", "x", "٣", "TRUE", "false", "1795003387558", "٣" * 13,
    "x" * 13, "1_95003387558", " 795003387558", "+795003387558",
)  # fmt: skip


@given(st.dictionaries(st.sampled_from("abcdefghijklmn"), st.sampled_from(ODD_VALUES)))
def test_send_with_odd_values_is_read_as_declared(values: dict[str, str]) -> None:
    usual = dict.fromkeys("abcdefgh", "1") | {"g": "1795003387558", "i": "p", "j": "0"}
    ext = dict(sorted((usual | values).items()))
    check_send(encode_ext(ext))
    command = Command(310, ext_fields=ext)
    assert outcome(lambda: decode_send(command)) == outcome(lambda: declared_send(ext))


def hostile(raw: bytes, data: st.DataObject) -> bytes:
    """The entries with a few bytes changed, put in or taken out; lengths are the likeliest."""
    changed = bytearray(raw)
    lengths = [at for at, byte in enumerate(raw) if byte < 32]
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.sampled_from(lengths) | st.integers(0, len(changed) - 1)) % len(changed)
        kind = data.draw(st.sampled_from(["set", "add", "insert", "delete"]))
        if kind == "set":
            changed[at] = data.draw(st.integers(0, 255))
        elif kind == "add":
            changed[at] = (changed[at] + data.draw(st.sampled_from([1, 2, 255, 254]))) % 256
        elif kind == "insert":
            changed[at:at] = data.draw(st.binary(min_size=1, max_size=9))
        else:
            del changed[at : at + data.draw(st.integers(1, 9))]
        if not changed:
            break
    return bytes(changed)


usual_send = SendMessageHeader(
    producer_group="group",
    topic="topic",
    default_topic="TBW102",
    default_topic_queue_nums=4,
    queue_id=1,
    sys_flag=0,
    born_timestamp=1795003387558,
    flag=0,
    properties="KEYS\x01k\x02TAGS\x01t\x02",
    broker_name="broker-a",
)
usual_pull = PullMessageHeader(
    consumer_group="group",
    topic="topic",
    queue_id=1,
    queue_offset=123,
    max_msg_nums=32,
    sys_flag=3,
    commit_offset=122,
    suspend_timeout_millis=15000,
    subscription="*",
    sub_version=1795003387558,
    expression_type="TAG",
    broker_name="broker-a",
)


@settings(max_examples=200)
@given(st.data())
def test_hostile_send_entries_are_read_as_declared(data: st.DataObject) -> None:
    check_send(hostile(encode_ext(usual_send.encode_v2()), data))


@settings(max_examples=200)
@given(st.data())
def test_hostile_pull_entries_are_read_as_declared(data: st.DataObject) -> None:
    check_pull(hostile(encode_ext(usual_pull.encode()), data))


def test_lengths_that_cancel_out_do_not_deceive_the_quick_reader() -> None:
    """One length too long and the next too short by as much keep the pattern and the total."""
    raw = encode_ext(usual_send.encode_v2())
    fields = ("group", "topic", "TBW102", "4", "1", "0", "1795003387558", "0")
    for first in range(len(fields)):
        for second in range(len(fields)):
            changed = raw
            for letter, value, by in (
                ("abcdefgh"[first], fields[first], 1),
                ("abcdefgh"[second], fields[second], -1),
            ):
                entry = b"\0\x01" + letter.encode() + len(value).to_bytes(4)
                wrong = b"\0\x01" + letter.encode() + (len(value) + by).to_bytes(4)
                changed = changed.replace(entry, wrong, 1)
            check_send(changed)


def test_pull_lengths_that_cancel_out_do_not_deceive_the_quick_reader() -> None:
    raw = encode_ext(usual_pull.encode())
    names_and_lengths = [(name, len(value)) for name, value in usual_pull.encode().items()]
    for first, first_length in names_and_lengths:
        for second, second_length in names_and_lengths:
            longer = raw.replace(
                first.encode() + first_length.to_bytes(4),
                first.encode() + (first_length + 1).to_bytes(4),
            )
            check_pull(longer)
            check_pull(
                longer.replace(
                    second.encode() + second_length.to_bytes(4),
                    second.encode() + (second_length - 1).to_bytes(4),
                )
            )


@given(st.binary(max_size=40))
@example(b"k\x01\xff\x02")
@example("k\x01é\x02".encode())
def test_properties_of_any_bytes_are_read_as_declared(properties_bytes: bytes) -> None:
    entries = usual_send.encode_v2()
    before = encode_ext({name: entries[name] for name in "abcdefgh"})
    behind = encode_ext({name: entries[name] for name in "jkm"})
    entry = b"\0\x01i" + len(properties_bytes).to_bytes(4) + properties_bytes
    check_send(before + entry + behind)


@given(pull_headers(), st.dictionaries(names, names, max_size=2))
def test_pull_is_read_as_declared(header: PullMessageHeader, more: dict[str, str]) -> None:
    check_pull(encode_ext(header.encode()))
    ext = header.encode() | more
    check_pull(encode_ext(ext))
    command = Command(11, ext_fields=ext)
    assert outcome(lambda: decode_pull(command)) == outcome(lambda: declared_pull(ext))


@given(pull_headers(), st.data())
def test_pull_with_a_missing_or_repeated_entry_is_read_as_declared(
    header: PullMessageHeader, data: st.DataObject
) -> None:
    entries = list(header.encode().items())
    chosen = data.draw(st.sampled_from(entries))
    if data.draw(st.booleans()):
        entries.remove(chosen)
    else:
        entries.insert(data.draw(st.integers(0, len(entries))), (chosen[0], "5"))
    check_pull(b"".join(encode_ext(dict([entry])) for entry in entries))


message_ids = st.sampled_from([32, 56]).map(lambda digits: "7F0000010000" + "0" * (digits - 12))
replies = {
    "msg_id": message_ids,
    "queue_id": st.integers(0, (1 << 31) - 1),
    "queue_offset": st.integers(0, (1 << 63) - 1),
    "region_id": names,
    "trace_on": st.booleans(),
}
in_either_serialisation = pytest.mark.parametrize("serialize_type", [0, 1])


def check_reply(serialize_type: int, opaque: int, code: int, **values: Any) -> None:
    request = Command(310, opaque=opaque, serialize_type=serialize_type)
    expected = make_send_reply(request, code, **values)
    assert encode_send_reply(request, code, **values) == expected.encode()
    assert decode_frame(expected.encode()[4:]) == expected


@in_either_serialisation
@given(
    opaque=i32,
    code=st.sampled_from([0, 10, 11, 12]),
    transaction_id=st.text("0123456789ABCDEF") | st.text('AF09"\\\x01\x7f é中', max_size=6),
    **replies,
)
def test_reply_to_a_single_send_is_written_as_declared(serialize_type: int, **values: Any) -> None:
    check_reply(serialize_type, **values)


@in_either_serialisation
@given(
    transaction_id=st.none() | names,
    batch_uniq_id=st.none() | names,
    recall_handle=st.none() | names,
    **replies | {"msg_id": st.lists(message_ids, max_size=9).map(",".join)},
)
def test_reply_to_a_batch_or_a_delayed_send_is_written_as_declared(
    serialize_type: int, **values: Any
) -> None:
    check_reply(serialize_type, 7, 0, **values)
