"""The vectorised decoder gives, row by row, what the declaration of the record says."""

import datetime as dt
import zlib

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyritemq.protocol.record import (
    BORNHOST_V6,
    COMPRESSED,
    COMPRESSION_LZ4,
    COMPRESSION_ZLIB,
    COMPRESSION_ZSTD,
    MAGIC_V1,
    MAGIC_V2,
    STOREHOSTADDRESS_V6,
    decode_properties,
)
from pyritemq.protocol.record_layout import MessageRecord
from pyritemq.spark.columns import ALL_COLUMNS
from pyritemq.spark.decode import Rows, make_batch
from pyritemq.spark.gather import gather_binary
from pyritemq.spark.hosts import format_host
from pyritemq.spark.properties import split_properties
from pyritemq.spark.record_heads import BadRowError, read_heads

EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
i32 = st.integers(-(2**31), 2**31 - 1)
i64 = st.integers(-(2**63), 2**63 - 1)
times = st.integers(0, 4_000_000_000_000)
names = st.sampled_from(["KEYS", "TAGS", "UNIQ_KEY", "a", "b", "é"]) | st.text(max_size=3)
pairs = st.lists(st.tuples(names, st.text(max_size=20)), max_size=8).map(
    lambda items: "".join(f"{name}\x01{value}\x02" for name, value in items).encode()
)
texts = (
    pairs
    | st.binary(max_size=40)
    | st.lists(
        st.sampled_from([b"\x01", b"\x02", b"a", b"KEYS", "é".encode(), b"\xff"]), max_size=12
    ).map(b"".join)
)


def hosts(v6):
    return st.fixed_dictionaries(
        {"address": st.binary(min_size=16 if v6 else 4, max_size=16 if v6 else 4), "port": i32}
    )


@st.composite
def records(draw):
    sys_flag = draw(i32) & ~COMPRESSED
    v2 = draw(st.booleans())
    return {
        "magic": MAGIC_V2 if v2 else MAGIC_V1,
        "body_crc": draw(i32),
        "queue_id": draw(i32),
        "flag": draw(i32),
        "queue_offset": draw(i64),
        "sys_flag": sys_flag,
        "born_timestamp": draw(times),
        "born_host": draw(hosts(sys_flag & BORNHOST_V6)),
        "store_timestamp": draw(times),
        "store_host": draw(hosts(sys_flag & STOREHOSTADDRESS_V6)),
        "reconsume_times": draw(i32),
        "prepared_transaction_offset": draw(i64),
        "body": draw(st.binary(max_size=40)),
        "topic": draw(st.binary(max_size=300 if v2 else 127)),
        "properties": draw(texts),
    }


def pack(items, base):
    """Records one after the other, with some bytes in between."""
    buffer, positions, sizes = bytearray(b"\x00\x07"), [], []
    for item in items:
        data = MessageRecord.build({**item, "phy_offset": base + len(buffer)})
        positions.append(len(buffer))
        sizes.append(len(data))
        buffer += data + b"gap"
    return np.frombuffer(bytes(buffer), np.uint8), np.array(positions), np.array(sizes)


def expected_row(raw, position, size):
    record = MessageRecord.parse(raw[position : position + size])
    properties = decode_properties(record.properties)
    store = record.store_host.address + record.store_host.port.to_bytes(4, "big", signed=True)
    born = record.born_host.address + record.born_host.port.to_bytes(4, "big", signed=True)
    made_id = (store + record.phy_offset.to_bytes(8, "big")).hex().upper()
    return {
        "key": properties.get("KEYS"),
        "value": record.body,
        "topic": "topic",
        "brokerName": "broker-a",
        "queueId": record.queue_id,
        "queueOffset": record.queue_offset,
        "commitLogOffset": record.phy_offset,
        "messageId": properties.get("UNIQ_KEY", made_id),
        "tags": properties.get("TAGS"),
        "bornTimestamp": EPOCH + dt.timedelta(milliseconds=record.born_timestamp),
        "storeTimestamp": EPOCH + dt.timedelta(milliseconds=record.store_timestamp),
        "bornHost": format_host(born),
        "storeHost": format_host(store),
        "sysFlag": record.sys_flag,
        "flag": record.flag,
        "reconsumeTimes": record.reconsume_times,
        "preparedTransactionOffset": record.prepared_transaction_offset,
        "properties": list(properties.items()),
        "bodyCrc": record.body_crc,
    }


@settings(max_examples=50)  # 6 records each, on average
@given(st.lists(records(), min_size=1, max_size=12), st.integers(0, 2**40))
def test_every_column_equals_the_declaration(items, base):
    data, positions, sizes = pack(items, base)
    heads = read_heads(data, positions, sizes, base)
    topics = pa.repeat(pa.scalar("topic"), len(items))
    rows = Rows(data, heads, topics, "broker-a", heads["queue_offset"])
    batch = make_batch(rows, ALL_COLUMNS)
    batch.validate(full=True)
    raw = data.tobytes()
    assert batch.to_pylist() == [
        expected_row(raw, at, size)
        for at, size in zip(positions.tolist(), sizes.tolist(), strict=True)
    ]


@given(records(), st.data())
def test_a_damaged_record_is_refused_or_read_within_its_bounds(item, draw):
    """Whatever bytes lie there: no length is trusted that does not fit."""
    data, positions, sizes = pack([item], 0)
    damaged = bytearray(data.tobytes())
    for _ in range(draw.draw(st.integers(1, 4))):
        damaged[draw.draw(st.integers(0, len(damaged) - 1))] = draw.draw(st.integers(0, 255))
    data = np.frombuffer(bytes(damaged), np.uint8)
    try:
        heads = read_heads(data, positions, sizes, 0)
    except BadRowError:
        return
    ends = heads.properties_at + heads.properties_length
    assert (ends == positions + sizes).all()


@given(st.lists(texts, min_size=1, max_size=10))
def test_properties_are_split_as_java_splits_them(rows):
    pairs_ = split_properties(pa.array(rows, pa.binary()))
    expected = [decode_properties(row) for row in rows]
    assert [dict(row) for row in pairs_.as_map().to_pylist()] == expected
    assert [len(row) for row in pairs_.as_map().to_pylist()] == [len(row) for row in expected]
    assert pairs_.column("KEYS").to_pylist() == [row.get("KEYS") for row in expected]


@given(st.binary(max_size=60), st.data())
def test_gathered_pieces_are_the_slices(data, draw):
    bounds = st.tuples(st.integers(0, len(data)), st.integers(0, len(data)))
    pieces = [tuple(sorted(each)) for each in draw.draw(st.lists(bounds, max_size=8))]
    starts = np.array([start for start, _ in pieces], np.int64)
    lengths = np.array([end - start for start, end in pieces], np.int64)
    gathered = gather_binary(np.frombuffer(data, np.uint8), starts, lengths)
    gathered.validate(full=True)
    assert gathered.to_pylist() == [data[start:end] for start, end in pieces]


@pytest.mark.parametrize("cut", [1, 40, 87])
def test_a_record_that_does_not_fit_is_refused(cut):
    with pytest.raises(BadRowError, match="not whole"):
        read_heads(np.zeros(cut, np.uint8), np.array([0]), np.array([cut]), 0)


def compressed(body, kind):
    if kind in (0, COMPRESSION_ZLIB):
        return zlib.compress(body)
    sink = pa.BufferOutputStream()
    codec = {COMPRESSION_LZ4: "lz4", COMPRESSION_ZSTD: "zstd"}[kind]
    with pa.output_stream(sink, compression=codec) as stream:
        stream.write(body)
    return sink.getvalue().to_pybytes()


KINDS = (0, COMPRESSION_ZLIB, COMPRESSION_LZ4, COMPRESSION_ZSTD)
PLAIN = {
    "magic": MAGIC_V1, "body_crc": 0, "queue_id": 0, "flag": 0, "queue_offset": 0, "sys_flag": 0,
    "born_timestamp": 0, "store_timestamp": 0, "reconsume_times": 0, "body": b"plain",
    "born_host": {"address": b"aaaa", "port": 1}, "store_host": {"address": b"bbbb", "port": 2},
    "prepared_transaction_offset": 0, "topic": b"T", "properties": b"",
}  # fmt: skip


def values(items, *, inflate):
    data, positions, sizes = pack(items, 0)
    heads = read_heads(data, positions, sizes, 0)
    topics = pa.repeat(pa.scalar("T"), len(items))
    rows = Rows(data, heads, topics, "broker-a", heads["queue_offset"], inflate)
    return make_batch(rows, ("value", "sysFlag")).to_pylist()


def test_compressed_bodies_are_inflated_and_flagged_as_javas_decoder_does():
    bodies = [b"%d" % kind * 1000 for kind in KINDS]
    packed = [
        {**PLAIN, "body": compressed(body, kind), "sys_flag": COMPRESSED | kind}
        for body, kind in zip(bodies, KINDS, strict=True)
    ]
    inflated = [{"value": body, "sysFlag": kind} for body, kind in zip(bodies, KINDS, strict=True)]
    plain = {"value": b"plain", "sysFlag": 0}
    assert values([PLAIN, *packed, PLAIN], inflate=True) == [plain, *inflated, plain]
    raw = [{"value": item["body"], "sysFlag": item["sys_flag"]} for item in packed]
    assert values([PLAIN, *packed], inflate=False) == [plain, *raw]


@pytest.mark.parametrize("kind", [*KINDS, 0x7 << 8])
def test_a_body_that_cannot_be_inflated_is_refused(kind):
    bad = {**PLAIN, "body": b"no such thing", "sys_flag": COMPRESSED | kind}
    with pytest.raises(BadRowError) as refused:
        values([PLAIN, bad], inflate=True)
    assert refused.value.row == 1
