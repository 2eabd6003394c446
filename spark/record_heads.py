"""The fixed part of many records at once: numpy in, numpy out.

Every row is checked as recovery checks a record, but for its CRC: magic, its own offset, and
lengths that fill it exactly. Nothing of a row is used as a length or a position before that.
The layout is protocol/record_layout.py's; a property test holds the two equal.
"""

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from pyritemq.protocol.record import BORNHOST_V6, MAGIC_V1, MAGIC_V2, STOREHOSTADDRESS_V6
from pyritemq.spark.gather import AnyArray, Bytes, Positions, gather_fixed

_V6_EXTRA: Final = 12  # an IPv6 address is so much longer
HEAD_SIZE: Final = 88  # with two IPv4 hosts
RECORD_MIN: Final = HEAD_SIZE + 1 + 2  # an empty body, topic and properties


def _head_dtype(born_size: int, store_size: int) -> np.dtype[Any]:
    return np.dtype(
        [
            ("total_size", ">i4"),
            ("magic", ">i4"),
            ("body_crc", ">i4"),
            ("queue_id", ">i4"),
            ("flag", ">i4"),
            ("queue_offset", ">i8"),
            ("phy_offset", ">i8"),
            ("sys_flag", ">i4"),
            ("born_timestamp", ">i8"),
            ("born_host", f"V{born_size}"),
            ("store_timestamp", ">i8"),
            ("store_host", f"V{store_size}"),
            ("reconsume_times", ">i4"),
            ("prepared_transaction_offset", ">i8"),
            ("body_length", ">i4"),
        ]
    )


_HEADS: Final = {
    flags: _head_dtype(20 if flags & BORNHOST_V6 else 8, 20 if flags & STOREHOSTADDRESS_V6 else 8)
    for flags in (0, BORNHOST_V6, STOREHOSTADDRESS_V6, BORNHOST_V6 | STOREHOSTADDRESS_V6)
}
_HEAD: Final = _HEADS[0]
_AFTER_HOSTS: Final = (
    "store_timestamp",
    "reconsume_times",
    "prepared_transaction_offset",
    "body_length",
)
_HOSTS: Final = ("born_host", "store_host")
_I16: Final = np.dtype(">i2")


@dataclass(slots=True)
class Heads:
    """Fields of rows that passed every check, made when they are asked for."""

    fields: "Fields"
    body_at: Positions
    topic_at: Positions
    topic_length: Positions
    properties_at: Positions
    properties_length: Positions

    def __getitem__(self, name: str) -> AnyArray:
        return self.fields[name]


class Fields:
    """Columns of a head in this machine's byte order. Hosts are 20 bytes: IPv4's fill 8 of them."""

    def __init__(self, raw: AnyArray) -> None:
        self._raw = raw
        self._longer: list[tuple[Positions, AnyArray]] = []  # rows whose hosts are IPv6
        self._made: dict[str, AnyArray] = {}

    def replace(self, rows: Positions, raw: AnyArray) -> None:
        """These rows have a longer head: their fields behind the first host lie further on."""
        self._longer.append((rows, raw))

    def __getitem__(self, name: str) -> AnyArray:
        if name not in self._made:
            is_host = name in _HOSTS
            column = self._raw[name]
            made = _widen(column) if is_host else column.astype(column.dtype.newbyteorder("="))
            for rows, raw in self._longer if is_host or name in _AFTER_HOSTS else ():
                made[rows] = _widen(raw[name]) if is_host else raw[name]
            self._made[name] = made
        return self._made[name]


class BadRowError(Exception):
    """A row does not check: its number, and why. The caller knows file and position."""

    def __init__(self, row: int, reason: str) -> None:
        super().__init__(row, reason)
        self.row = row
        self.reason = reason


def read_heads(data: Bytes, positions: Positions, sizes: Positions, base: int | None) -> Heads:
    """Heads of the records at positions; base is the CommitLog offset of the data's first byte,
    or None for records that came over the wire.

    Raises BadRowError.
    """
    outside = (positions < 0) | (sizes < RECORD_MIN) | (positions + sizes > len(data))
    _refuse(outside, "the record is not whole, or not in the file")
    raw = gather_fixed(data, positions, _HEAD)
    magic = raw["magic"]
    _refuse((magic != MAGIC_V1) & (magic != MAGIC_V2), "magic code of no message")
    _refuse(raw["total_size"] != sizes, "the size differs from the queue's")
    if base is not None:
        _refuse(raw["phy_offset"] != positions + base, "the record says that it lies elsewhere")
    fields = Fields(raw)
    head_sizes = np.full(len(positions), HEAD_SIZE, np.int64)
    _read_v6(data, positions, sizes, fields, head_sizes)
    return _texts(data, positions, sizes, fields, head_sizes)


def _widen(hosts: AnyArray) -> AnyArray:
    wide = np.zeros((len(hosts), 20), np.uint8)
    wide[:, : hosts.dtype.itemsize] = (
        np.ascontiguousarray(hosts).view(np.uint8).reshape(len(hosts), hosts.dtype.itemsize)
    )
    return wide


def _read_v6(
    data: Bytes,
    positions: Positions,
    sizes: Positions,
    fields: Fields,
    head_sizes: Positions,
) -> None:
    """Read the rows again whose hosts are longer, and so whose later fields lie further on."""
    kinds = fields["sys_flag"] & (BORNHOST_V6 | STOREHOSTADDRESS_V6)
    if not kinds.any():
        return
    for flags, dtype in _HEADS.items():
        rows = np.flatnonzero(kinds == flags)
        if flags == 0 or not len(rows):
            continue
        short = np.zeros(len(positions), bool)
        short[rows] = sizes[rows] < dtype.itemsize + 3
        _refuse(short, "the record is shorter than its head")
        fields.replace(rows, gather_fixed(data, positions[rows], dtype))
        head_sizes[rows] = dtype.itemsize


def _texts(
    data: Bytes,
    positions: Positions,
    sizes: Positions,
    fields: Fields,
    head_sizes: Positions,
) -> Heads:
    """Where body, topic and properties lie; refuses lengths that do not add up."""
    wrong = "the lengths within the record do not add up"
    ends = positions + sizes
    body_at = positions + head_sizes
    body_length = fields["body_length"].astype(np.int64)
    two_bytes = fields["magic"] == MAGIC_V2
    topic_at = body_at + body_length + 1 + two_bytes
    _refuse((body_length < 0) | (topic_at + 2 > ends), wrong)
    topic_length = data[topic_at - 1].astype(np.int8).astype(np.int64)
    if two_bytes.any():
        rows = np.flatnonzero(two_bytes)
        topic_length[rows] = gather_fixed(data, topic_at[rows] - 2, _I16)
    properties_at = topic_at + topic_length + 2
    _refuse((topic_length < 0) | (properties_at > ends), wrong)
    properties_length = gather_fixed(data, properties_at - 2, _I16).astype(np.int64)
    _refuse((properties_length < 0) | (properties_at + properties_length != ends), wrong)
    return Heads(fields, body_at, topic_at, topic_length, properties_at, properties_length)


def _refuse(bad: npt.NDArray[np.bool_], reason: str) -> None:
    if bad.any():
        raise BadRowError(int(bad.argmax()), reason)
