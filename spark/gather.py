"""Picks pieces out of a large buffer into Arrow arrays and numpy arrays, without a loop over rows.

Two tricks carry the speed (2 shared cores, 576-byte bodies, 2026-11-18):
  fixed-size pieces  a numpy view whose items start at every byte (stride 1), indexed by position:
                     25 M rows/s, against 3 M for an index of rows × bytes;
  variable pieces    an Arrow binary_view, 16 bytes a row that point into the buffer, cast to
                     binary: 12 M rows/s, against 1-2 M for a join of slices.
"""

from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Bytes = npt.NDArray[np.uint8]
Positions = npt.NDArray[np.int64]
AnyArray = npt.NDArray[Any]

_INLINE_MAX: Final = 12  # a view holds values of up to 12 bytes itself
_VIEW: Final = np.dtype([("length", "<i4"), ("prefix", "V4"), ("buffer", "<i4"), ("at", "<i4")])


def gather_fixed(data: Bytes, positions: Positions, dtype: np.dtype[Any]) -> AnyArray:
    """One item of dtype from each position; all positions + item size lie within the data."""
    count = max(len(data) - dtype.itemsize + 1, 0)
    item = np.dtype(f"V{dtype.itemsize}")
    every = np.ndarray(shape=(count,), dtype=item, buffer=data, strides=(1,))
    # not every.take(positions): that would first copy the whole overlapping view
    return np.ascontiguousarray(every[positions]).view(dtype)


def gather_binary(data: Bytes, starts: Positions, lengths: Positions) -> pa.Array:
    """The pieces [start, start + length) as an Arrow binary array; the data is below 2 GiB."""
    views = np.zeros(len(starts), _VIEW)
    views["length"] = lengths
    long = lengths > _INLINE_MAX
    if long.all():
        views["prefix"] = gather_fixed(data, starts, np.dtype("V4"))
        views["at"] = starts
    else:
        views["prefix"][long] = gather_fixed(data, starts[long], np.dtype("V4"))
        views["at"][long] = starts[long]
        _put_inline(views, data, starts, lengths, np.flatnonzero(~long))
    buffers = [None, pa.py_buffer(views), pa.py_buffer(data)]
    return pa.Array.from_buffers(pa.binary_view(), len(starts), buffers).cast(pa.binary())


def _put_inline(
    views: AnyArray, data: Bytes, starts: Positions, lengths: Positions, rows: Positions
) -> None:
    """Short values lie in the view itself, filled up with zeroes."""
    columns = np.arange(_INLINE_MAX)
    inside = columns < lengths[rows, None]
    at = np.where(inside, starts[rows, None] + columns, 0)
    raw = views.view(np.uint8).reshape(-1, _VIEW.itemsize)
    raw[rows, 4:] = np.where(inside, data[at] if len(data) else 0, 0)


def strings_between(data: pa.Buffer, bounds: npt.NDArray[np.int32], first: int) -> pa.Array:
    """Every fourth piece between adjacent bounds, from the first-th on, as Arrow strings.

    Bounds ascend, so they are the offsets of an array that has the pieces in between as values too;
    take copies the wanted ones.
    """
    count = len(bounds) - 1
    whole = pa.StringArray.from_buffers(count, pa.py_buffer(bounds), data)
    return whole.take(pa.array(np.arange(first, count, 4, dtype=np.int64)))
