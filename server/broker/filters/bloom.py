"""The bloom filter that RocketMQ keeps beside each SQL subscription, bit for bit.

`consumerFilter.json` holds each group's bit positions, and a Java broker that starts on it drops
the whole file if their number or the filter's length is not its own.  Pure functions, called when a
group registers.  With enableCalcFilterBitMap each message has a bit map beside its ConsumeQueue
unit in which the positions of the groups are set whose filter it matches.
RocketMQ 5.5.0: BloomFilter, BloomFilterData, BitsArray; Guava's murmur3_128.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

_MASK = (1 << 64) - 1
_C1, _C2 = 0x87C37B91114253D5, 0x4CF5AD432745937F


@dataclass(frozen=True, slots=True)
class BloomFilterData:
    """Where one group's bits lie in a filter of `bit_num` bits."""

    bit_pos: tuple[int, ...]
    bit_num: int

    @property
    def mask(self) -> int:
        """The positions as one number; bit n of a bit map is bit n % 8 of its byte n // 8."""
        return sum(1 << position for position in set(self.bit_pos))

    def to_json(self) -> dict[str, Any]:
        return {"bitNum": self.bit_num, "bitPos": list(self.bit_pos)}

    @classmethod
    def from_json(cls, data: object) -> BloomFilterData | None:
        """None for what is absent or makes no sense: such data is not valid for any filter."""
        if not isinstance(data, dict) or not isinstance(data.get("bitPos"), list):
            return None
        positions = tuple(item for item in data["bitPos"] if isinstance(item, int))
        bit_num = data.get("bitNum")
        return cls(positions, bit_num if isinstance(bit_num, int) else 0)


class BloomFilter:
    """Sized for `expected` groups with at most `error_percent` false hits."""

    def __init__(self, *, error_percent: int, expected: int) -> None:
        if not 1 <= error_percent < 100:
            raise ValueError("maxErrorRateOfBloomFilter must lie between 1 and 99")
        if expected < 1:
            raise ValueError("expectConsumerNumUseFilter must be greater than 0")
        rate = error_percent / 100.0
        self.hash_count = math.ceil(_log(0.5, rate))
        bits = math.ceil(expected * _log(2, 1 / rate) * _log(2, math.e))
        self.bit_num = 8 * math.ceil(bits / 8)

    def generate(self, text: str) -> BloomFilterData:
        """The positions of a text: one hash, taken apart and added up."""
        hash64 = murmur3_64(text.encode())
        low, high = hash64 & 0xFFFFFFFF, hash64 >> 32
        positions = (
            _not_negative(low + number * high) % self.bit_num
            for number in range(1, self.hash_count + 1)
        )
        return BloomFilterData(tuple(positions), self.bit_num)

    def is_valid(self, data: BloomFilterData | None) -> bool:
        """Whether the positions were made by a filter like this one."""
        return (
            data is not None
            and data.bit_num == self.bit_num
            and len(data.bit_pos) == self.hash_count
        )


def _log(base: float, value: float) -> float:
    return math.log(value) / math.log(base)


def _not_negative(value: int) -> int:
    """A Java int with all bits flipped if it is negative."""
    value &= 0xFFFFFFFF
    return value ^ 0xFFFFFFFF if value >> 31 else value


def murmur3_64(data: bytes) -> int:
    """The first half of MurmurHash3 x64 128 with seed 0, unsigned (Guava: asLong)."""
    first = second = 0
    whole = len(data) & ~15
    for start in range(0, whole, 16):
        low = int.from_bytes(data[start : start + 8], "little")
        high = int.from_bytes(data[start + 8 : start + 16], "little")
        first ^= _mix_low(low)
        first = (_rotate(first, 27) + second) * 5 + 0x52DCE729 & _MASK
        second ^= _mix_high(high)
        second = (_rotate(second, 31) + first) * 5 + 0x38495AB5 & _MASK
    tail = data[whole:]
    first ^= _mix_low(int.from_bytes(tail[:8], "little")) ^ len(data)
    second ^= _mix_high(int.from_bytes(tail[8:], "little")) ^ len(data)
    first = first + second & _MASK
    second = second + first & _MASK
    return _finish(first) + _finish(second) & _MASK


def _mix_low(block: int) -> int:
    return _rotate(block * _C1 & _MASK, 31) * _C2 & _MASK


def _mix_high(block: int) -> int:
    return _rotate(block * _C2 & _MASK, 33) * _C1 & _MASK


def _rotate(value: int, bits: int) -> int:
    return (value << bits | value >> 64 - bits) & _MASK


def _finish(value: int) -> int:
    value = (value ^ value >> 33) * 0xFF51AFD7ED558CCD & _MASK
    value = (value ^ value >> 33) * 0xC4CEB9FE1A85EC53 & _MASK
    return value ^ value >> 33
