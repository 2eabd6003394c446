import tracemalloc

import pytest

from pyritemq.protocol.command import Command, SerializeType
from pyritemq.protocol.errors import FrameError, HeaderSyntaxError
from pyritemq.protocol.frames import FRAME_MAX, FrameDecoder

BOTH = pytest.mark.parametrize("serialize_type", list(SerializeType))
SMALLEST_JSON = b"\0\0\0\x06\0\0\0\x02{}"


def frame(body_size: int, serialize_type: int = 1) -> bytes:
    return Command(
        310, ext_fields={"k": "v"}, body=bytes(body_size), serialize_type=serialize_type
    ).encode()


@BOTH
def test_one_read_with_several_frames_gives_them_in_order(serialize_type: int) -> None:
    commands = [
        Command(10, opaque=n, body=bytes(n), serialize_type=serialize_type) for n in range(9)
    ]
    assert FrameDecoder().feed(b"".join(c.encode() for c in commands)) == commands


def test_serialisations_may_alternate_on_one_connection() -> None:
    commands = [Command(10, opaque=n, remark="r" * (n % 3), serialize_type=n % 2) for n in range(9)]
    for command in commands:
        command.remark = command.remark or None
    decoder = FrameDecoder()
    assert decoder.feed(b"".join(c.encode() for c in commands)) == commands
    assert decoder.pending_bytes == 0


def test_frames_smaller_than_a_binary_header_are_decoded_too() -> None:
    assert [c.code for c in FrameDecoder().feed(SMALLEST_JSON * 5)] == [0] * 5


@BOTH
def test_frame_of_the_largest_size_passes_and_one_byte_more_does_not(serialize_type: int) -> None:
    overhead = len(frame(0, serialize_type))
    largest = frame(1000 - overhead, serialize_type)
    assert len(FrameDecoder(frame_max=1000).feed(largest)) == 1
    with pytest.raises(FrameError):
        FrameDecoder(frame_max=1000).feed(frame(1001 - overhead, serialize_type))


def test_default_bound_is_javas() -> None:
    assert FRAME_MAX == 16777216
    assert FrameDecoder().feed((FRAME_MAX - 4).to_bytes(4)) == []
    with pytest.raises(FrameError):
        FrameDecoder().feed((FRAME_MAX - 3).to_bytes(4))


@pytest.mark.parametrize("length", [-1, -(1 << 31), 0, 3, (1 << 31) - 1])
@pytest.mark.parametrize("behind", [b"", bytes(4), bytes(100)])
def test_impossible_length_is_refused_as_soon_as_it_is_there(length: int, behind: bytes) -> None:
    decoder = FrameDecoder()
    with pytest.raises(FrameError):
        decoder.feed(length.to_bytes(4, signed=True) + behind)


def test_impossible_length_in_pieces_is_refused() -> None:
    decoder = FrameDecoder()
    assert decoder.feed(b"\x7f\xff") == []
    with pytest.raises(FrameError):
        decoder.feed(b"\xff\xff")


@pytest.mark.parametrize("type_byte", [0, 1, 2, 255])
def test_header_longer_than_its_frame_is_refused(type_byte: int) -> None:
    word = type_byte << 24 | 41
    with pytest.raises(FrameError):
        FrameDecoder().feed(b"\0\0\0\x2c" + word.to_bytes(4) + bytes(40))


@pytest.mark.parametrize("type_byte", [2, 127, 255])
def test_unknown_serialisation_is_refused(type_byte: int) -> None:
    with pytest.raises(FrameError):
        FrameDecoder().feed(b"\0\0\0\x2c" + bytes((type_byte, 0, 0, 21)) + bytes(40))


def test_ext_fields_longer_than_24_bits_do_not_pass_for_another_serialisation() -> None:
    """With a frame bound above 16 MiB, a type byte of 2 and matching ext length must not look like
    a binary header whose length has a carry."""
    ext_length = 0x2000000 - 0x1000015
    header = bytes(17) + ext_length.to_bytes(4) + bytes(ext_length)
    data = (4 + len(header)).to_bytes(4) + (0x2000000).to_bytes(4) + header
    with pytest.raises(FrameError):
        FrameDecoder(frame_max=1 << 26).feed(data)


def test_negative_ext_length_is_refused() -> None:
    header = bytes(17) + (-5).to_bytes(4, signed=True)
    word = 1 << 24 | 16
    with pytest.raises(HeaderSyntaxError):
        FrameDecoder().feed((4 + len(header)).to_bytes(4) + word.to_bytes(4) + header)


def test_claimed_length_allocates_nothing() -> None:
    tracemalloc.start()
    try:
        decoder = FrameDecoder()
        decoder.feed((FRAME_MAX - 4).to_bytes(4) + b"x" * 100)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 10_000
    assert decoder.pending_bytes == 104


def test_dripping_peer_costs_memory_for_what_it_sent_only() -> None:
    tracemalloc.start()
    try:
        decoder = FrameDecoder()
        decoder.feed((FRAME_MAX - 4).to_bytes(4))
        for _ in range(20_000):
            decoder.feed(b"x")
        current, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert decoder.pending_bytes == 20_004
    assert current < 40_000


def test_incomplete_frame_is_not_copied_for_each_read() -> None:
    decoder = FrameDecoder()
    decoder.feed((1 << 21).to_bytes(4) + bytes(1 << 20))
    decoder.feed(bytes(1 << 16))  # the buffer grows in steps: let it have room
    tracemalloc.start()
    try:
        decoder.feed(b"x")
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 10_000


def test_remark_that_looks_like_a_length_of_ext_fields_stays_a_remark() -> None:
    command = Command(0, remark="\0\0\0\x08abcd", serialize_type=1)
    assert FrameDecoder().feed(command.encode()) == [command]


def test_header_does_not_reach_into_the_next_frame() -> None:
    whole = Command(0, ext_fields={"key": "value"}, serialize_type=1).encode()
    shortened = (len(whole) - 4 - 5).to_bytes(4) + whole[4:]
    with pytest.raises(FrameError):
        FrameDecoder().feed(shortened + whole)


def test_large_frame_in_many_reads_arrives_whole() -> None:
    command = Command(310, body=bytes(range(256)) * 4096, serialize_type=1)
    data = command.encode() + SMALLEST_JSON
    decoder = FrameDecoder()
    received = [c for at in range(0, len(data), 65536) for c in decoder.feed(data[at : at + 65536])]
    assert received == [command, Command(0, version=0)]
    assert decoder.pending_bytes == 0


def test_frame_bound_holds_for_each_frame_not_for_the_read() -> None:
    assert len(FrameDecoder(frame_max=100).feed(frame(10) * 50)) == 50
