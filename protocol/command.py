"""Command: one remoting command, request or reply, and its two encodings.

A frame is a length word, a word with the serialisation type in its top byte and the header length
in the other three, the header, the body. Commands are made by the loop (frames.py) and by handlers
on lane threads; one command is used by one thread at a time. Pure: no socket, no clock.

The ext fields of a binary frame stay encoded until someone asks for ``ext_fields``; a broken entry
therefore shows as HeaderSyntaxError there, not at frame decode.
"""

from enum import IntEnum
from struct import Struct

from pyritemq.protocol import json_header, rocketmq_header
from pyritemq.protocol.codes import LanguageCode
from pyritemq.protocol.errors import FrameError

# Java's broker says JAVA and its MQVersion ordinal in every reply; clients gate features on the
# number, so a drop-in says the same. 513 is the ordinal of V5_5_0.
OUR_LANGUAGE = LanguageCode.JAVA.value
OUR_VERSION = 513

FLAG_RESPONSE = 1
FLAG_ONEWAY = 2

_WORDS = Struct(">II")
_WORD = Struct(">I")


class SerializeType(IntEnum):
    """The top byte of a frame's second word."""

    JSON = 0
    ROCKETMQ = 1


class Command:
    """A request or a reply. Plain and mutable; whoever holds it owns it."""

    __slots__ = (
        "_ext",
        "_ext_absent",
        "_ext_raw",
        "body",
        "code",
        "flag",
        "language",
        "opaque",
        "remark",
        "serialize_type",
        "version",
    )

    code: int
    language: int
    version: int
    opaque: int
    flag: int
    remark: str | None
    body: bytes | memoryview
    serialize_type: int
    _ext: dict[str, str] | None  # decoded, or None while _ext_raw has not been looked at
    _ext_raw: bytes  # binary entries as received; of no meaning once _ext is set
    _ext_absent: bool  # no extFields member on the wire: an empty dict is then not written

    def __init__(
        self,
        code: int,
        *,
        language: int = OUR_LANGUAGE,
        version: int = OUR_VERSION,
        opaque: int = 0,
        flag: int = 0,
        remark: str | None = None,
        ext_fields: dict[str, str] | None = None,
        body: bytes | memoryview = b"",
        serialize_type: int = 0,
    ) -> None:
        self.code = code
        self.language = language
        self.version = version
        self.opaque = opaque
        self.flag = flag
        self.remark = remark
        self.body = body
        self.serialize_type = serialize_type
        self._ext = ext_fields
        self._ext_raw = b""
        self._ext_absent = ext_fields is None

    @property
    def ext_fields(self) -> dict[str, str]:
        """The ext fields in wire order. Raises HeaderSyntaxError if the entries do not parse."""
        ext = self._ext
        if ext is None:
            raw = self._ext_raw
            ext = self._ext = rocketmq_header.decode_ext(raw) if raw else {}
        return ext

    @ext_fields.setter
    def ext_fields(self, ext: dict[str, str]) -> None:
        self._ext = ext
        self._ext_absent = False

    @property
    def ext_raw(self) -> bytes | None:
        """The binary entries as received, or None once decoded or if they never were binary."""
        return self._ext_raw if self._ext is None else None

    @property
    def is_response(self) -> bool:
        return self.flag & FLAG_RESPONSE != 0

    @property
    def is_oneway(self) -> bool:
        return self.flag & FLAG_ONEWAY != 0

    def make_reply(
        self,
        code: int = 0,
        remark: str | None = None,
        ext_fields: dict[str, str] | None = None,
        body: bytes | memoryview = b"",
    ) -> "Command":
        """A reply to this request: its opaque, its serialisation, our language and version."""
        return Command(
            code,
            opaque=self.opaque,
            flag=FLAG_RESPONSE,
            remark=remark,
            ext_fields=ext_fields,
            body=body,
            serialize_type=self.serialize_type,
        )

    def encode(self) -> bytes:
        """The whole frame, length word included."""
        body = self.body
        head = self.encode_head(len(body))
        return b"".join((head, body)) if body else head

    def encode_head(self, body_length: int) -> bytes:
        """The frame up to the body, its length word counting ``body_length`` bytes to follow."""
        header = self._encode_header()
        header_length = len(header)
        words = _WORDS.pack(
            4 + header_length + body_length, self.serialize_type << 24 | header_length
        )
        return words + header

    def _encode_header(self) -> bytes:
        ext = self._ext
        if self.serialize_type == 0:
            json_ext = None if self._ext_absent and not self.ext_fields else self.ext_fields
            return json_header.encode_header(
                self.code,
                self.language,
                self.version,
                self.opaque,
                self.flag,
                self.remark,
                json_ext,
            )
        return rocketmq_header.encode_header(
            self.code,
            self.language,
            self.version,
            self.opaque,
            self.flag,
            self.remark,
            self._ext_raw if ext is None else rocketmq_header.encode_ext(ext),
        )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Command):
            return NotImplemented
        return self._members() == other._members()

    __hash__ = None  # type: ignore[assignment]  # mutable

    def __repr__(self) -> str:
        return (
            f"Command(code={self.code}, opaque={self.opaque}, flag={self.flag}, "
            f"remark={self.remark!r}, ext_fields={self.ext_fields!r}, body={len(self.body)} bytes)"
        )

    def _members(self) -> tuple[object, ...]:
        return (
            self.code,
            self.language,
            self.version,
            self.opaque,
            self.flag,
            self.remark,
            self.ext_fields,
            bytes(self.body),
            self.serialize_type,
        )


def decode_frame(frame: bytes | memoryview) -> Command:
    """Decode one frame without its length word. Raises FrameError or HeaderSyntaxError."""
    data = bytes(frame)
    if len(data) < 4:
        raise FrameError(f"frame of {len(data)} bytes has no header word")
    (word,) = _WORD.unpack_from(data)
    header_end = 4 + (word & 0xFFFFFF)
    if header_end > len(data):
        raise FrameError(f"bad header length: {header_end - 4}")
    return decode_at(data, 4, header_end, len(data), word >> 24)


def decode_at(data: bytes, start: int, header_end: int, end: int, serialize_type: int) -> Command:
    """Decode the command whose header is ``data[start:header_end]`` and body the rest to ``end``.

    Callers have checked the bounds. Raises FrameError or HeaderSyntaxError.
    """
    command = Command.__new__(Command)
    ext: dict[str, str] | None
    if serialize_type == 1:
        (code, language, version, opaque, flag, remark, raw) = rocketmq_header.decode_header(
            data, start, header_end
        )
        ext, absent = None, not raw
    elif serialize_type == 0:
        code, language, version, opaque, flag, remark, ext = json_header.decode_header(
            data[start:header_end]
        )
        raw, absent = b"", ext is None
    else:
        raise FrameError(f"unknown serialisation type {serialize_type}")
    command.code = code
    command.language = language
    command.version = version
    command.opaque = opaque
    command.flag = flag
    command.remark = remark
    command.body = data[header_end:end]
    command.serialize_type = serialize_type
    command._ext = ext
    command._ext_raw = raw
    command._ext_absent = absent
    return command
