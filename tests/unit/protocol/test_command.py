import pytest

from pyritemq.protocol.codes import LanguageCode, ResponseCode
from pyritemq.protocol.command import Command, SerializeType, decode_frame
from pyritemq.protocol.errors import FrameError, HeaderSyntaxError

BOTH = pytest.mark.parametrize("serialize_type", list(SerializeType))


def binary_frame(header: bytes, body: bytes = b"") -> bytes:
    return (1 << 24 | len(header)).to_bytes(4) + header + body


@BOTH
def test_reply_answers_the_request_in_its_own_serialisation(serialize_type: int) -> None:
    request = Command(
        310,
        language=LanguageCode.GO,
        version=317,
        opaque=-5,
        flag=0,
        ext_fields={"a": "group"},
        serialize_type=serialize_type,
    )
    reply = request.make_reply(ResponseCode.SYSTEM_BUSY, "busy", {"x": "1"}, b"body")
    assert (reply.code, reply.remark, reply.opaque, reply.flag) == (2, "busy", -5, 1)
    assert reply.serialize_type == serialize_type
    assert (reply.language, reply.version) == (LanguageCode.JAVA, 513)
    assert (reply.ext_fields, reply.body) == ({"x": "1"}, b"body")


@pytest.mark.parametrize(
    ("flag", "is_response", "is_oneway"),
    [(0, False, False), (1, True, False), (2, False, True), (3, True, True), (-4, False, False)],
)
def test_flag_bits_tell_replies_and_oneway_requests(
    flag: int, is_response: bool, is_oneway: bool
) -> None:
    command = Command(10, flag=flag)
    assert (command.is_response, command.is_oneway) == (is_response, is_oneway)


@BOTH
def test_head_counts_a_body_that_is_written_apart(serialize_type: int) -> None:
    command = Command(0, ext_fields={"k": "v"}, body=b"12345", serialize_type=serialize_type)
    assert command.encode_head(5) + b"12345" == command.encode()
    assert int.from_bytes(command.encode_head(5)[:4]) == len(command.encode()) - 4


@BOTH
def test_body_may_be_a_view(serialize_type: int) -> None:
    view = memoryview(b"0123456789")[2:5]
    command = Command(0, body=view, serialize_type=serialize_type)
    assert decode_frame(memoryview(command.encode())[4:]).body == b"234"


def test_binary_header_cuts_code_and_version_to_16_bits_as_java_does() -> None:
    frame = Command(200050, version=70000, serialize_type=1).encode()
    assert decode_frame(frame[4:]).code == 200050 & 0xFFFF
    assert decode_frame(frame[4:]).version == 70000 & 0xFFFF


def test_json_header_keeps_large_codes_whole() -> None:
    assert decode_frame(Command(200050).encode()[4:]).code == 200050


def test_empty_ext_fields_are_written_and_absent_ones_are_not() -> None:
    assert b'"extFields":{}' in Command(0, ext_fields={}).encode()
    assert b"extFields" not in Command(0).encode()
    absent = decode_frame(Command(0).encode()[4:])
    assert absent.ext_fields == {}
    assert b"extFields" not in absent.encode()


@BOTH
def test_ext_fields_changed_after_decoding_are_encoded(serialize_type: int) -> None:
    command = decode_frame(Command(0, serialize_type=serialize_type).encode()[4:])
    command.ext_fields["late"] = "1"
    assert decode_frame(command.encode()[4:]).ext_fields == {"late": "1"}
    command.ext_fields = {"other": "2"}
    assert decode_frame(command.encode()[4:]).ext_fields == {"other": "2"}


def test_binary_ext_fields_stay_encoded_until_asked_for() -> None:
    command = decode_frame(Command(0, ext_fields={"k": "v"}, serialize_type=1).encode()[4:])
    assert command.ext_raw == b"\0\x01k\0\0\0\x01v"
    assert command.ext_fields == {"k": "v"}
    assert command.ext_raw is None


@BOTH
def test_command_received_in_one_serialisation_can_be_sent_on_in_the_other(
    serialize_type: int,
) -> None:
    command = Command(
        12, opaque=9, remark="r", ext_fields={"k": "é"}, serialize_type=serialize_type
    )
    received = decode_frame(command.encode()[4:])
    received.serialize_type = 1 - serialize_type
    passed_on = decode_frame(received.encode()[4:])
    assert passed_on.serialize_type == 1 - serialize_type
    passed_on.serialize_type = serialize_type
    assert passed_on == command


@BOTH
def test_commands_differ_when_any_member_differs(serialize_type: int) -> None:
    command = Command(1, serialize_type=serialize_type)
    assert command == Command(1, serialize_type=serialize_type)
    assert command != Command(1, serialize_type=serialize_type, ext_fields={"a": "b"})
    assert command != Command(1, serialize_type=serialize_type, body=b"x")
    assert command != "command"
    assert "code=1" in repr(command)


@pytest.mark.parametrize(
    "frame",
    [
        b"",
        b"\0\0\0",
        b"\0\0\0\x01",  # a header of one byte that is not there
        b"\x01\xff\xff\xff" + bytes(30),
        b"\x02\0\0\0",  # no such serialisation
        b"\xff\0\0\0",
    ],
)
def test_frame_with_impossible_words_is_refused(frame: bytes) -> None:
    with pytest.raises(FrameError):
        decode_frame(frame)


@pytest.mark.parametrize(
    "header",
    [
        b"",
        b"\0" * 20,  # one byte short of the smallest header
        b"\0" * 13 + b"\xff\xff\xff\xff" + b"\0" * 4,  # negative remark length
        b"\0" * 13 + b"\0\0\0\x01" + b"\0" * 4,  # remark runs into the ext fields' length
        b"\0" * 13 + b"\x7f\xff\xff\xff" + b"\0" * 4,
        b"\0" * 17 + b"\xff\xff\xff\xff",  # negative length of ext fields
        b"\0" * 17 + b"\0\0\0\x01",
        b"\0" * 17 + b"\0\0\0\0" + b"x",  # bytes behind the ext fields
    ],
)
def test_broken_binary_header_is_refused(header: bytes) -> None:
    with pytest.raises(HeaderSyntaxError):
        decode_frame(binary_frame(header))


@pytest.mark.parametrize(
    "entries",
    [
        b"\0",
        b"\0\x01k\0\0\0",
        b"\xff\xffk\0\0\0\x01v",  # negative key length
        b"\0\x09k\0\0\0\x01v",  # key longer than what is there
        b"\0\x01k\xff\xff\xff\xffv",  # negative value length
        b"\0\x01k\0\0\0\x02v",
        b"\0\x01k\x7f\xff\xff\xffv",
        b"\0\x01k\0\0\0\x01v\0",  # half an entry behind a good one
    ],
)
def test_broken_binary_ext_fields_are_refused_when_asked_for(entries: bytes) -> None:
    command = decode_frame(binary_frame(bytes(17) + len(entries).to_bytes(4) + entries))
    with pytest.raises(HeaderSyntaxError):
        command.ext_fields  # noqa: B018 - the property decodes


def test_binary_text_that_is_not_utf8_is_read_with_replacement_characters_as_java_does() -> None:
    entries = b"\0\x01k\0\0\0\x02\xffv"
    header = bytes(13) + b"\0\0\0\x01\xfe" + len(entries).to_bytes(4) + entries
    command = decode_frame(binary_frame(header, b"body"))
    assert command.remark == "�"
    assert command.ext_fields == {"k": "�v"}
    assert command.body == b"body"


def test_empty_remark_is_none_in_binary_and_empty_in_json_as_in_java() -> None:
    assert decode_frame(Command(0, remark="", serialize_type=1).encode()[4:]).remark is None
    assert decode_frame(Command(0, remark="").encode()[4:]).remark == ""
