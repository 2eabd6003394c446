"""Hosts and message ids of many records as Arrow strings."""

import socket
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pyritemq.spark.gather import AnyArray

_DIGITS: Final = np.frombuffer(b"0123456789ABCDEF", np.uint8)


def format_host(raw: bytes) -> str:
    """`address:port` of a packed host: 8 bytes for IPv4, 20 for IPv6, whose address is bracketed"""
    port = int.from_bytes(raw[-4:], "big", signed=True)
    if len(raw) == 8:
        return f"{socket.inet_ntop(socket.AF_INET, raw[:4])}:{port}"
    return f"[{socket.inet_ntop(socket.AF_INET6, raw[:16])}]:{port}"


def host_column(hosts: AnyArray, is_v6: npt.NDArray[np.bool_]) -> pa.Array:
    """Strings of rows × 20 bytes. Few hosts send many messages: each is formatted once."""
    if not is_v6.any():
        return _formatted(hosts, 8)
    if is_v6.all():
        return _formatted(hosts, 20)
    both = pa.concat_arrays([_formatted(hosts[~is_v6], 8), _formatted(hosts[is_v6], 20)])
    order = np.empty(len(hosts), np.int64)
    order[~is_v6] = np.arange(int((~is_v6).sum()))
    order[is_v6] = np.arange(int((~is_v6).sum()), len(hosts))
    return both.take(pa.array(order))


def _formatted(hosts: AnyArray, size: int) -> pa.Array:
    packed = np.ascontiguousarray(hosts[:, :size])
    if size == 8:  # numbers are told apart quicker than bytes
        encoded = pa.array(packed.view(np.uint64).ravel()).dictionary_encode()
        values = [value.tobytes() for value in encoded.dictionary.to_numpy()]
        return pa.array(map(format_host, values), pa.string()).take(encoded.indices)
    column = pa.Array.from_buffers(pa.binary(size), len(hosts), [None, pa.py_buffer(packed)])
    encoded = column.dictionary_encode()
    texts = pa.array([format_host(raw) for raw in encoded.dictionary.to_pylist()], pa.string())
    return texts.take(encoded.indices)


def offset_message_ids(
    store_hosts: AnyArray, is_v6: npt.NDArray[np.bool_], phy_offsets: AnyArray
) -> pa.Array:
    """Java's offsetMsgId: the store host and the CommitLog offset in hexadecimal digits."""
    result: npt.NDArray[np.object_] = np.empty(len(store_hosts), object)
    offsets = phy_offsets.astype(">i8").view(np.uint8).reshape(-1, 8)
    for size, rows in ((8, np.flatnonzero(~is_v6)), (20, np.flatnonzero(is_v6))):
        if len(rows):
            raw = np.concatenate((store_hosts[rows, :size], offsets[rows]), axis=1)
            result[rows] = _hex(raw)
    return pa.array(result, pa.string())


def _hex(raw: AnyArray) -> npt.NDArray[np.str_]:
    digits = np.empty((raw.shape[0], raw.shape[1] * 2), np.uint8)
    digits[:, 0::2] = _DIGITS[raw >> 4]
    digits[:, 1::2] = _DIGITS[raw & 15]
    texts: npt.NDArray[np.bytes_] = digits.view(f"S{digits.shape[1]}").ravel()
    return texts.astype(str)
