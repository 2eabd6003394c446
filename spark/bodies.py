"""Inflates compressed bodies: zlib, lz4 (frames) and zstd, as Java's CompressorFactory writes them.

Row by row, for compressed rows only: the codec's own work outweighs the loop.
"""

import zlib
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pyritemq.protocol.record import (
    COMPRESSED,
    COMPRESSION_LZ4,
    COMPRESSION_MASK,
    COMPRESSION_ZLIB,
    COMPRESSION_ZSTD,
)
from pyritemq.spark.gather import AnyArray
from pyritemq.spark.record_heads import BadRowError

INFLATED_MAX: Final = 64 << 20
"""Ours: no message may grow beyond this, or a few bytes could fill a worker's memory. A client
compresses bodies that its own limit (4 MiB by default) admits."""

_ARROW_CODECS: Final = {COMPRESSION_LZ4: "lz4", COMPRESSION_ZSTD: "zstd"}


def inflate(body: bytes, sys_flag: int) -> bytes:
    """The body as its producer gave it. Raises ValueError with the reason."""
    kind = sys_flag & COMPRESSION_MASK
    if kind in (0, COMPRESSION_ZLIB):  # clients before 4.9.3 knew zlib only, and set no bits
        return _inflate_zlib(body)
    codec = _ARROW_CODECS.get(kind)
    if codec is None:
        raise ValueError(f"compression {kind >> 8} is unknown")
    try:
        with pa.input_stream(pa.BufferReader(body), compression=codec) as stream:
            inflated: bytes = stream.read(INFLATED_MAX + 1)
    except OSError as error:
        raise ValueError(f"the body is no {codec}: {error}") from error
    return _bounded(inflated)


def _inflate_zlib(body: bytes) -> bytes:
    stream = zlib.decompressobj()
    try:
        inflated = stream.decompress(body, INFLATED_MAX + 1)
    except zlib.error as error:
        raise ValueError(f"the body is no zlib: {error}") from error
    if not stream.eof and len(inflated) <= INFLATED_MAX:
        raise ValueError("the compressed body ends early")
    return _bounded(inflated)


def _bounded(inflated: bytes) -> bytes:
    if len(inflated) > INFLATED_MAX:
        raise ValueError(f"the body inflates to more than {INFLATED_MAX} bytes")
    return inflated


def inflate_rows(values: pa.Array, sys_flags: AnyArray) -> pa.Array:
    """Values with the compressed ones inflated. Raises BadRowError."""
    rows: npt.NDArray[np.intp] = np.flatnonzero(sys_flags & COMPRESSED)
    if not len(rows):
        return values
    inflated: list[bytes] = []
    for row in rows.tolist():
        try:
            inflated.append(inflate(values[row].as_py(), int(sys_flags[row])))
        except ValueError as error:
            raise BadRowError(row, str(error)) from error
    order = np.arange(len(values), dtype=np.int64)
    order[rows] = np.arange(len(values), len(values) + len(rows))
    return pa.concat_arrays([values, pa.array(inflated, pa.binary())]).take(pa.array(order))
