"""Header serialisation 0, JSON: what fastjson makes of Java's RemotingCommand.

Members stand in alphabetical order, nulls are left out, ext fields are strings in wire order.
Reading takes any member order and ignores members that it does not know, as Java does.
Called by command.py and frames.py, on whatever thread; pure.
"""

import struct
from typing import Any

import orjson

from pyritemq.protocol.codes import LanguageCode
from pyritemq.protocol.errors import HeaderSyntaxError

_I32_FOUR = struct.Struct(">iiii")
_LANGUAGE_BY_NAME = {language.name: language.value for language in LanguageCode}
_NAME_BY_LANGUAGE = {language.value: language.name for language in LanguageCode}


def decode_header(
    data: bytes,
) -> tuple[int, int, int, int, int, str | None, dict[str, str] | None]:
    """Read code, language, version, opaque, flag, remark and ext fields (None if the member is
    not there). Raises HeaderSyntaxError."""
    try:
        members = orjson.loads(data)
    except orjson.JSONDecodeError as error:
        raise HeaderSyntaxError(f"header is not JSON: {error}") from None
    if type(members) is not dict:
        raise HeaderSyntaxError("JSON header is not an object")
    get = members.get
    code, version, opaque, flag = (
        get("code", 0),
        get("version", 0),
        get("opaque", 0),
        get("flag", 0),
    )
    try:
        _I32_FOUR.pack(code, version, opaque, flag)  # the quickest check of four types and ranges
    except struct.error:
        raise HeaderSyntaxError("a number of the JSON header is not a 32-bit integer") from None
    ext = get("extFields")
    if ext is not None:
        ext = _ext_fields(ext)
    return code, _language(get("language")), version, opaque, flag, _remark(get("remark")), ext


def encode_header(
    code: int,
    language: int,
    version: int,
    opaque: int,
    flag: int,
    remark: str | None,
    ext: dict[str, str] | None,
) -> bytes:
    """Write the header as fastjson does; ``ext`` None leaves the member out, {} writes it empty."""
    ext_member = b"" if ext is None else b'"extFields":%b,' % orjson.dumps(ext)
    remark_member = b"" if remark is None else b'"remark":%b,' % orjson.dumps(remark)
    language_name = _NAME_BY_LANGUAGE.get(language, "OTHER").encode()
    return (
        b'{"code":%d,%b"flag":%d,"language":"%b","opaque":%d,%b'
        b'"serializeTypeCurrentRPC":"JSON","version":%d}'
    ) % (code, ext_member, flag, language_name, opaque, remark_member, version)


def _language(value: object) -> int:
    """The code of a language's name: JAVA if none is said, OTHER for one unknown to Java too."""
    if type(value) is str:
        return _LANGUAGE_BY_NAME.get(value, LanguageCode.OTHER.value)
    if value is None:
        return LanguageCode.JAVA.value
    if type(value) is int and value in _NAME_BY_LANGUAGE:
        return value
    return LanguageCode.OTHER.value


def _remark(value: object) -> str | None:
    if value is None or type(value) is str:
        return value
    raise HeaderSyntaxError("JSON header member remark is not a string")


def _ext_fields(value: Any) -> dict[str, str]:  # noqa: ANN401 - parsed JSON
    if type(value) is not dict:
        raise HeaderSyntaxError("JSON header member extFields is not an object")
    for item in value.values():
        if type(item) is not str:
            return {key: _text(item) for key, item in value.items() if item is not None}
    return value


def _text(value: object) -> str:
    """Fastjson gives a number or boolean in a map of strings as its JSON text; so do we."""
    return value if type(value) is str else orjson.dumps(value).decode()
