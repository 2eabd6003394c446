"""ConsumeQueueExt: what is packed is what the layout declares, whatever is put and taken back."""

from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st
from unit.storage.kit import MemoryDisk

from pyritemq.server.broker.filters.bit_maps import bit_map_test, bit_maps
from pyritemq.server.broker.filters.bloom import BloomFilter
from pyritemq.server.broker.filters.sql92 import compile_expression
from pyritemq.server.broker.filters.table import ConsumerFilterData
from pyritemq.storage.block_sizes import BlockSizes
from pyritemq.storage.consume_queue import ConsumeQueue
from pyritemq.storage.consume_queue_ext import ADDRESS_BASE, ConsumeQueueExts
from pyritemq.storage.consume_queue_ext import ExtUnit as FoundUnit
from pyritemq.storage.file_cache import FileCache
from pyritemq.storage.layouts import ExtUnit

FOLDER = Path("/store/consumequeue_ext")
I64 = st.integers(-(2**63), 2**63 - 1)
UNITS = st.lists(st.tuples(I64, I64, st.binary(max_size=60)), max_size=12)


def made(file_size):
    disk = MemoryDisk()
    files = FileCache(disk)
    folder = Path("/store/cq/T/3")
    queue = ConsumeQueue(b"T", 3, folder=folder, files=files, file_units=50, sizes=BlockSizes())
    return disk, queue, ConsumeQueueExts(disk, FOLDER, file_size=file_size, files=files)


def put_all(exts, queue, units):
    addresses = []
    for code, timestamp, bit_map in units:
        exts.bit_map_of = lambda topic, properties, bit_map=bit_map: bit_map
        addresses.append(exts.put(queue, code, timestamp, b"T", b""))
    return addresses


@given(st.lists(st.tuples(UNITS, st.booleans(), st.booleans()), max_size=8), st.integers(84, 400))
@settings(max_examples=150, deadline=None)
def test_packed_ext_units_are_what_the_layout_declares(batches, file_size):
    disk, queue, exts = made(file_size)
    kept = {}
    for units, is_written, is_published in batches:
        addresses = put_all(exts, queue, units)
        if is_written or is_published:
            exts.write()
        if is_published:
            exts.publish()
            kept.update(zip(addresses, units, strict=True))
        else:
            exts.roll_back()
    assert len(kept) == sum(len(units) for units, _, is_published in batches if is_published)
    for address, (code, timestamp, bit_map) in kept.items():
        declared = ExtUnit.build(
            {
                "size": 20 + len(bit_map),
                "tags_code": code,
                "store_timestamp": timestamp,
                "bit_map_size": len(bit_map),
                "bit_map": bit_map,
            }
        )
        offset = address - ADDRESS_BASE
        start = offset - offset % file_size
        file = disk.files[FOLDER / "T" / "3" / f"{start:020d}"]
        assert file.length == file_size
        assert file.read_at(offset - start, len(declared)) == declared
        assert exts.read(queue, address) == (code, timestamp, bit_map)
    follows_on(disk, kept, file_size)


def follows_on(disk, kept, file_size):
    """Each unit starts where the one before it ends, or a file later behind a size of -1."""
    at = 0
    for address in sorted(kept):
        offset = address - ADDRESS_BASE
        if offset != at:
            start = at - at % file_size
            assert offset == start + file_size
            if at > start:
                file = disk.files[FOLDER / "T" / "3" / f"{start:020d}"]
                assert file.read_at(at - start, 2) == b"\xff\xff"
        at = offset + 20 + len(kept[address][2])
        assert at % file_size <= file_size - 4


@given(st.binary(max_size=120), st.integers(0, 100))
@settings(max_examples=200, deadline=None)
def test_any_bytes_at_an_address_are_a_unit_or_none(data, offset):
    disk, queue, exts = made(200)
    disk.open(FOLDER / "T" / "3" / f"{0:020d}", create=True).write_at(0, data)
    found = exts.read(queue, ADDRESS_BASE + offset)
    assert found is None or len(found.bit_map) <= len(data)


EXPRESSIONS = ("a > 5", "b = 'x'", "a BETWEEN 2 AND 7 OR b IS NULL", "NOT (a = 3)")
PROPERTIES = st.fixed_dictionaries(
    {}, optional={"a": st.integers(0, 9).map(str), "b": st.just("x")}
)


@given(
    st.lists(st.tuples(st.sampled_from(EXPRESSIONS), st.integers(0, 20)), min_size=1, max_size=6),
    PROPERTIES,
    st.integers(0, 20),
)
@settings(max_examples=200, deadline=None)
def test_a_bit_map_never_hides_a_message_that_a_filter_matches(groups, properties, stored):
    bloom = BloomFilter(error_percent=20, expected=32)
    filters = [
        ConsumerFilterData(
            topic="T",
            consumer_group=f"g{number}",
            expression=text,
            expression_type="SQL92",
            compiled=compile_expression("SQL92", text),
            born_time=born,
            bloom_filter_data=bloom.generate(f"g{number}#T"),
            client_version=1,
        )
        for number, (text, born) in enumerate(groups)
    ]
    # the send lane knows the filters that were born when the message was stored
    known = [data for data in filters if data.born_time < stored]
    encoded = "".join(f"{name}\x01{value}\x02" for name, value in properties.items()).encode()
    bit_map_of = bit_maps(lambda topic: known, bit_num=bloom.bit_num, is_on=lambda: True)
    unit = FoundUnit(0, stored, bit_map_of(b"T", encoded))
    for data in filters:
        test = bit_map_test(data, bit_num=bloom.bit_num)
        assert test(unit) or not data.compiled.matches(properties)
    alone = known[:1]
    only = bit_maps(lambda topic: alone, bit_num=bloom.bit_num, is_on=lambda: True)
    if alone and not alone[0].compiled.matches(properties):
        unit = FoundUnit(0, stored, only(b"T", encoded))
        assert not bit_map_test(alone[0], bit_num=bloom.bit_num)(unit)
