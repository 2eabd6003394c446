"""Splits the properties of many records at once: `name \\x01 value \\x02 …` to names and values.

The rule is Java's string2messageProperties, as protocol/record.py's decode_properties has it (a
property test holds the two equal): a pair without separator, name or value is passed over; of a
name that comes twice the last value counts, at the first one's place.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pyritemq.protocol.record import decode_properties
from pyritemq.spark.columns import PROPERTIES
from pyritemq.spark.gather import Positions, strings_between

_BITS: Final = 62  # names that fit into one signed 64-bit mask


@dataclass(slots=True)
class Pairs:
    """All pairs of a batch, row after row; row_starts has one entry more than there are rows."""

    names: pa.Array
    values: pa.Array
    row_starts: npt.NDArray[np.int32]
    codes: npt.NDArray[np.int32]  # which distinct name each pair has
    distinct: list[str]

    def as_map(self) -> pa.Array:
        return pa.MapArray.from_arrays(
            pa.array(self.row_starts), self.names, self.values, type=PROPERTIES
        )

    def column(self, name: str) -> pa.Array:
        """The value of one name in each row, null where it is missing."""
        count = len(self.row_starts) - 1
        if name not in self.distinct:
            return pa.nulls(count, pa.string())
        at = np.flatnonzero(self.codes == self.distinct.index(name))
        rows = np.searchsorted(self.row_starts, at, side="right") - 1
        if len(rows) == count:
            return self.values.take(pa.array(at))
        index = np.zeros(count, np.int64)
        index[rows] = at
        missing = np.ones(count, bool)
        missing[rows] = False
        return self.values.take(pa.array(index, mask=missing))


def split_properties(raw: pa.Array) -> Pairs:
    """Pairs of an Arrow binary array that has no nulls and no offset."""
    offsets = np.frombuffer(raw.buffers()[1], np.int32, len(raw) + 1)
    data = raw.buffers()[2]
    size = int(offsets[-1])
    if data is None or size == 0:
        return _pairs_of([{} for _ in range(len(raw))])
    text = np.frombuffer(data, np.uint8, size)
    if not _is_utf8(raw, text):
        return _pairs_of([decode_properties(item) for item in raw.to_pylist()])
    starts, middles, ends = _bounds(text, offsets)
    row_starts = np.searchsorted(starts, offsets[:-1]).astype(np.int32)
    row_starts = np.append(row_starts, np.int32(len(starts)))
    bounds = np.empty(4 * len(starts) + 1, np.int32)
    bounds[0:-1:4] = starts
    bounds[1::4] = middles
    bounds[2::4] = middles + 1
    bounds[3::4] = ends
    bounds[-1] = size
    names, values = strings_between(data, bounds, 0), strings_between(data, bounds, 2)
    encoded = names.dictionary_encode()
    codes = encoded.indices.to_numpy()
    pairs = Pairs(names, values, row_starts, codes, encoded.dictionary.to_pylist())
    if _names_repeat(pairs):
        return _pairs_of([decode_properties(item) for item in raw.to_pylist()])
    return pairs


def _is_utf8(raw: pa.Array, text: npt.NDArray[np.uint8]) -> bool:
    if text.max() < 0x80:
        return True
    try:
        pc.cast(raw, pa.string())
    except pa.ArrowInvalid:
        return False
    return True


def _bounds(
    text: npt.NDArray[np.uint8], offsets: npt.NDArray[np.int32]
) -> tuple[Positions, Positions, Positions]:
    """(name start, separator, value end) of each whole pair, in order.

    A pair ends at a \\x02 or at the end of its row.
    """
    marks = np.flatnonzero(text == 2)
    row_ends = offsets[1:]
    closed = (row_ends > offsets[:-1]) & (text[row_ends - 1] == 2)
    if closed.all():
        ends = marks
        starts = np.empty_like(ends)
        starts[:1] = 0
        starts[1:] = ends[:-1] + 1
    else:
        open_ends = row_ends[~closed]
        both = np.concatenate((open_ends, marks))
        order = np.argsort(both, kind="stable")  # a row's end before a mark at the same place
        ends = both[order]
        # the pair behind a mark starts one further on; behind a row's open end, right there
        after = ends + (order >= len(open_ends))
        starts = np.concatenate((offsets[:1], after[:-1])).astype(np.int64)
    separators = np.flatnonzero(text == 1)
    middles = separators
    if len(separators) != len(ends) or not ((separators >= starts) & (separators < ends)).all():
        found = np.searchsorted(separators, starts)
        middles = np.append(separators, len(text))[found]
    whole = (middles > starts) & (middles + 1 < ends)
    if whole.all():
        return starts, middles, ends
    return starts[whole], middles[whole], ends[whole]


def _names_repeat(pairs: Pairs) -> bool:
    """Whether a row has a name twice: then the sum of its names' bits is not their union."""
    full = np.flatnonzero(np.diff(pairs.row_starts))
    if not len(full):
        return False
    at = pairs.row_starts[full]
    for low in range(0, len(pairs.distinct), _BITS):
        inside = (pairs.codes >= low) & (pairs.codes < low + _BITS)
        bits = np.where(inside, np.int64(1) << (np.where(inside, pairs.codes - low, 0)), 0)
        counts = np.add.reduceat(inside.astype(np.int64), at)
        union = np.bitwise_or.reduceat(bits, at)
        if (np.bitwise_count(union.astype(np.uint64)) != counts).any():
            return True
    return False


def _pairs_of(rows: list[dict[str, str]]) -> Pairs:
    """Row by row: for what is not UTF-8 or has a name twice, which no client sends."""
    names = pa.array([name for row in rows for name in row], pa.string())
    values = pa.array([value for row in rows for value in row.values()], pa.string())
    row_starts = np.concatenate(([0], np.cumsum([len(row) for row in rows]))).astype(np.int32)
    encoded = names.dictionary_encode()
    codes = encoded.indices.to_numpy(zero_copy_only=False)
    return Pairs(names, values, row_starts, codes, encoded.dictionary.to_pylist())
