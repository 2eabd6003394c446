"""Round trips of commands in both serialisations, splits of the stream, and garbage."""

import json
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from pyritemq.protocol.codes import LanguageCode
from pyritemq.protocol.command import Command, decode_frame
from pyritemq.protocol.errors import ProtocolError
from pyritemq.protocol.frames import FrameDecoder

i16 = st.integers(-(1 << 15), (1 << 15) - 1)
i32 = st.integers(-(1 << 31), (1 << 31) - 1)
text = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)


@st.composite
def commands(draw: Any) -> Command:
    serialize_type = draw(st.sampled_from([0, 1]))
    return Command(
        draw(i16 if serialize_type else i32),
        language=draw(st.sampled_from(list(LanguageCode))).value,
        version=draw(i16 if serialize_type else i32),
        opaque=draw(i32),
        flag=draw(i32),
        remark=draw(st.none() | text.filter(bool)),
        ext_fields=draw(st.none() | st.dictionaries(text, text, max_size=6)),
        body=draw(st.binary(max_size=60)),
        serialize_type=serialize_type,
    )


@given(commands())
def test_every_command_survives_the_wire(command: Command) -> None:
    frame = command.encode()
    decoded = decode_frame(frame[4:])
    assert decoded == command
    assert list(decoded.ext_fields) == list(command.ext_fields)
    assert decoded.encode() == frame
    assert FrameDecoder().feed(frame) == [command]


@given(st.lists(commands(), max_size=6), st.data())
def test_any_split_of_the_stream_gives_the_same_commands(
    sent: list[Command], data: st.DataObject
) -> None:
    stream = b"".join(command.encode() for command in sent)
    cuts = data.draw(st.lists(st.integers(0, len(stream)), max_size=12).map(sorted))
    decoder = FrameDecoder()
    received: list[Command] = []
    for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True):
        received += decoder.feed(stream[start:end])
        assert decoder.pending_bytes <= len(stream)
    assert received == sent
    assert decoder.pending_bytes == 0


def exercise(decoder: FrameDecoder, data: bytes) -> None:
    """Feed and look at everything that is decoded late; only ProtocolError may come of it."""
    try:
        for command in decoder.feed(data):
            command.ext_fields  # noqa: B018 - the property decodes
            command.encode()
    except ProtocolError:
        pass


@given(st.lists(st.binary(max_size=80), max_size=5))
@example([bytes(200)])
def test_garbage_gives_nothing_but_a_protocol_error(reads: list[bytes]) -> None:
    decoder = FrameDecoder()
    for data in reads:
        exercise(decoder, data)


@given(st.sampled_from([0, 1]), st.binary(max_size=120), st.binary(max_size=8))
def test_well_framed_garbage_gives_nothing_but_a_protocol_error(
    serialize_type: int, header: bytes, body: bytes
) -> None:
    word = serialize_type << 24 | len(header)
    payload = word.to_bytes(4) + header + body
    exercise(FrameDecoder(), len(payload).to_bytes(4) + payload)


@settings(max_examples=200)
@given(commands(), st.data())
def test_frame_with_a_flipped_byte_gives_nothing_but_a_protocol_error(
    command: Command, data: st.DataObject
) -> None:
    frame = bytearray(command.encode())
    at = data.draw(st.integers(0, len(frame) - 1))
    frame[at] = data.draw(st.integers(0, 255))
    exercise(FrameDecoder(frame_max=4096), bytes(frame) + bytes(64))


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(text, inner, max_size=3),
    max_leaves=8,
)


@given(
    st.dictionaries(
        st.sampled_from(
            ["code", "flag", "opaque", "version", "remark", "language", "extFields", "other"]
        ),
        json_values,
    )
)
def test_json_header_of_any_shape_gives_nothing_but_a_protocol_error(members: Any) -> None:
    header = json.dumps(members).encode()
    exercise(FrameDecoder(), (4 + len(header)).to_bytes(4) + len(header).to_bytes(4) + header)
