"""JSON headers against what fastjson2 2.0.59 wrote and read in RocketMQ 5.5.0 (2026-11-18)."""

import pytest

from pyritemq.protocol.codes import LanguageCode
from pyritemq.protocol.command import Command, decode_frame
from pyritemq.protocol.errors import HeaderSyntaxError


def decode(header: bytes) -> Command:
    return decode_frame(len(header).to_bytes(4) + header)


def encode(command: Command) -> str:
    return command.encode()[8:].decode()


def test_members_stand_in_fastjsons_order_without_nulls() -> None:
    reply = Command(0, flag=1, opaque=7, ext_fields={})
    assert encode(reply) == (
        '{"code":0,"extFields":{},"flag":1,"language":"JAVA","opaque":7,'
        '"serializeTypeCurrentRPC":"JSON","version":513}'
    )
    refusal = Command(2, flag=1, opaque=7, remark="busy")
    assert encode(refusal) == (
        '{"code":2,"flag":1,"language":"JAVA","opaque":7,"remark":"busy",'
        '"serializeTypeCurrentRPC":"JSON","version":513}'
    )


def test_text_is_escaped_as_fastjson2_escapes_it() -> None:
    text = "".join(map(chr, range(0x80))) + "\x80\xe9\u2028\u2029\ufeff中/<>&'\U0001f600"
    written = encode(Command(310, ext_fields={"k": text}))
    expected = (
        r"\u0000\u0001\u0002\u0003\u0004\u0005\u0006\u0007\b\t\n\u000b\f\r\u000e\u000f"
        r"\u0010\u0011\u0012\u0013\u0014\u0015\u0016\u0017\u0018\u0019\u001a\u001b\u001c\u001d"
        r"\u001e\u001f !\"#$%&'()*+,-./0123456789:;<=>?@ABCDEFGHIJKLMNOPQRSTUVWXYZ[\\]^_`"
        "abcdefghijklmnopqrstuvwxyz{|}~\x7f\x80\xe9\u2028\u2029\ufeff中/<>&'\U0001f600"
    )
    assert f'"extFields":{{"k":"{expected}"}}' in written


def test_member_order_does_not_matter_and_unknown_members_are_ignored() -> None:
    command = decode(b'{"zzz":[1],"version":3,"opaque":2,"language":"CPP","flag":1,"code":9}')
    assert (command.code, command.flag, command.opaque, command.version) == (9, 1, 2, 3)
    assert command.language == LanguageCode.CPP


def test_absent_members_have_javas_defaults() -> None:
    command = decode(b"{}")
    assert (command.code, command.flag, command.version, command.remark) == (0, 0, 0, None)
    assert command.language == LanguageCode.JAVA
    assert command.ext_fields == {}


@pytest.mark.parametrize(
    ("member", "language"),
    [
        (b'"RUST"', LanguageCode.RUST),
        (b"3", LanguageCode.PYTHON),
        (b'"COBOL"', LanguageCode.OTHER),
        (b"99", LanguageCode.OTHER),
        (b"null", LanguageCode.JAVA),
        (b"{}", LanguageCode.OTHER),
    ],
)
def test_language_is_a_name_or_a_number(member: bytes, language: LanguageCode) -> None:
    assert decode(b'{"language":%b}' % member).language == language


def test_ext_values_that_are_not_strings_become_their_json_text_and_nulls_vanish() -> None:
    header = b'{"extFields":{"a":1,"b":true,"c":null,"d":1.5,"e":{"x":1},"f":[1],"g":"s"}}'
    assert decode(header).ext_fields == {
        "a": "1",
        "b": "true",
        "d": "1.5",
        "e": '{"x":1}',
        "f": "[1]",
        "g": "s",
    }


@pytest.mark.parametrize(
    "header",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b"7",
        b"{code:1}",
        b'{"code":"x"}',
        b'{"code":1.5}',
        b'{"code":null}',
        b'{"opaque":3000000000}',
        b'{"opaque":99999999999999999999999999}',
        b'{"flag":[]}',
        b'{"remark":5}',
        b'{"extFields":[]}',
        b'{"extFields":"x"}',
        b'{"extFields":{"a":"\xff"}}',
        b'{"extFields":{"a":"\\ud800"}}',
        b"[" * 100_000,
    ],
)
def test_header_that_is_not_a_command_is_refused(header: bytes) -> None:
    with pytest.raises(HeaderSyntaxError):
        decode(header)
