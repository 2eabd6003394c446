"""Header serialisation 1, ROCKETMQ: the compact binary form of a command header.

    code i16 | language u8 | version i16 | opaque i32 | flag i32
    | remark: length i32, UTF-8 | ext fields: length i32, then entries
    entry: key length i16, key UTF-8, value length i32, value UTF-8

Java: RocketMQSerializable, 5.5.0. Called by command.py and frames.py, on whatever thread; pure.
Text that is not UTF-8 is read with U+FFFD in its place, as Java reads it. An empty value stays an
empty string here, where Java's reader turns it into null: fields.py treats both alike.
"""

from struct import Struct

from pyritemq.protocol.errors import HeaderSyntaxError

_FIXED = Struct(">hBhiii")  # as far as the remark's length
_FIXED_OUT = Struct(">HBHiii")
_I32 = Struct(">i")
_KEY_LENGTH = Struct(">h")

HEADER_LENGTH_MIN = _FIXED.size + _I32.size


def decode_header(
    buffer: bytes, start: int, end: int
) -> tuple[int, int, int, int, int, str | None, bytes]:
    """Read a header in ``buffer[start:end]``: code, language, version, opaque, flag, remark and
    the ext fields still encoded. Raises HeaderSyntaxError."""
    if end - start < HEADER_LENGTH_MIN:
        raise HeaderSyntaxError(f"binary header of {end - start} bytes is too short")
    code, language, version, opaque, flag, remark_length = _FIXED.unpack_from(buffer, start)
    remark_start = start + _FIXED.size
    ext_start = remark_start + remark_length + 4
    if remark_length < 0 or ext_start > end:
        raise HeaderSyntaxError(f"remark length {remark_length} exceeds the header")
    (ext_length,) = _I32.unpack_from(buffer, ext_start - 4)
    if ext_length != end - ext_start:
        raise HeaderSyntaxError(f"ext fields length {ext_length} does not fill the header")
    remark = None
    if remark_length:
        remark = str(buffer[remark_start : remark_start + remark_length], "utf-8", "replace")
    return code, language, version, opaque, flag, remark, bytes(buffer[ext_start:end])


def encode_header(
    code: int,
    language: int,
    version: int,
    opaque: int,
    flag: int,
    remark: str | None,
    ext: bytes,
) -> bytes:
    """Code and version are cut to 16 bits, as Java cuts them."""
    text = remark.encode() if remark else b""
    fixed = _FIXED_OUT.pack(
        code & 0xFFFF, language & 0xFF, version & 0xFFFF, opaque, flag, len(text)
    )
    return b"".join((fixed, text, _I32.pack(len(ext)), ext))


def decode_ext(raw: bytes) -> dict[str, str]:
    """Read the ext entries, in wire order. Raises HeaderSyntaxError."""
    ext: dict[str, str] = {}
    key_length_at = _KEY_LENGTH.unpack_from
    value_length_at = _I32.unpack_from
    pos, end = 0, len(raw)
    while pos < end:
        if pos + 6 > end:
            raise HeaderSyntaxError("ext fields end within an entry")
        key_end = pos + 2 + key_length_at(raw, pos)[0]
        if not pos + 2 <= key_end <= end - 4:
            raise HeaderSyntaxError("ext field key length exceeds the header")
        value_start = key_end + 4
        value_end = value_start + value_length_at(raw, key_end)[0]
        if not value_start <= value_end <= end:
            raise HeaderSyntaxError("ext field value length exceeds the header")
        key = raw[pos + 2 : key_end].decode("utf-8", "replace")
        ext[key] = raw[value_start:value_end].decode("utf-8", "replace")
        pos = value_end
    return ext


def encode_ext(ext: dict[str, str]) -> bytes:
    """Write the entries in the order of the dict."""
    parts: list[bytes] = []
    key_length, value_length = _KEY_LENGTH.pack, _I32.pack
    for key, value in ext.items():
        key_bytes, value_bytes = key.encode(), value.encode()
        parts += (
            key_length(len(key_bytes)),
            key_bytes,
            value_length(len(value_bytes)),
            value_bytes,
        )
    return b"".join(parts)
