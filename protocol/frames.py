"""FrameDecoder: cut the byte stream of one connection into commands.

The loop owns one decoder per connection and feeds it each socket read. Frames that lie whole within
a read are decoded in place; only an incomplete tail is kept, and it grows by what has arrived,
never by what a length word claims. After an error the stream has lost its place: close it.
"""

from struct import Struct

from pyritemq.protocol.command import Command, decode_at
from pyritemq.protocol.errors import FrameError

FRAME_MAX = 16 * 1024 * 1024  # Java: com.rocketmq.remoting.frameMaxLength

_WORDS = Struct(">iI")
_LENGTH = Struct(">i")


class FrameDecoder:
    """Incremental: any split of the stream gives the same commands."""

    __slots__ = ("_frame_max", "_needed", "_tail")

    def __init__(self, frame_max: int = FRAME_MAX) -> None:
        self._frame_max = frame_max
        self._tail = bytearray()
        self._needed = 0  # bytes that the first frame of the tail takes, or 0 if not known yet

    @property
    def pending_bytes(self) -> int:
        """How many bytes of an incomplete frame are held."""
        return len(self._tail)

    def feed(self, data: bytes) -> list[Command]:
        """Take one read, return the commands that it completes. Raises ProtocolError; what came
        before the bad frame in the same read is then lost with the connection."""
        tail = self._tail
        if tail:
            tail += data
            if len(tail) < self._needed:
                return []
            data = bytes(tail)
            tail.clear()
            self._needed = 0
        commands: list[Command] = []
        pos = self._decode_whole_frames(data, commands)
        if pos < len(data):
            tail += memoryview(data)[pos:]
        return commands

    def _decode_whole_frames(self, data: bytes, commands: list[Command]) -> int:
        """Append the commands of all whole frames; return where the incomplete one begins."""
        pos, size = 0, len(data)
        while size - pos >= 4:
            (length,) = _LENGTH.unpack_from(data, pos)
            self._check_length(length)
            end = pos + 4 + length
            if end > size:
                self._needed = 4 + length
                break
            word = int.from_bytes(data[pos + 4 : pos + 8])
            header_end = pos + 8 + (word & 0xFFFFFF)
            if header_end > end:
                raise FrameError(f"bad header length: {word & 0xFFFFFF}")
            commands.append(decode_at(data, pos + 8, header_end, end, word >> 24))
            pos = end
        return pos

    def _check_length(self, length: int) -> None:
        # Netty's LengthFieldBasedFrameDecoder counts the length word itself against the bound.
        if not 4 <= length <= self._frame_max - 4:
            raise FrameError(f"bad frame length: {length}")
