"""The registration body in both of its forms."""

import contextlib
import zlib

from hypothesis import given
from hypothesis import strategies as st

from pyritemq.compat.register_body import (
    DataVersion,
    RegisterBodyError,
    RegisterBrokerBody,
    TopicConfig,
)

names = st.text(st.characters(exclude_categories=["Cs", "Zs"]), min_size=1).filter(
    lambda name: " " not in name
)
ints = st.integers(0, (1 << 31) - 1)
longs = st.integers(0, (1 << 63) - 1)
attributes = st.dictionaries(names, names, max_size=3)
versions = st.builds(DataVersion, timestamp=longs, counter=longs, state_version=longs)


@st.composite
def topics(draw):
    """The compressed form has no room for order and topicSysFlag: these stay as they are."""
    table = draw(st.dictionaries(names, st.tuples(ints, ints, ints, attributes), max_size=4))
    return {
        name: TopicConfig(name, read, write, perm, attributes=attrs)
        for name, (read, write, perm, attrs) in table.items()
    }


@st.composite
def mappings(draw):
    table = draw(st.dictionaries(names, st.tuples(names, st.dictionaries(ints, ints)), max_size=2))
    return {
        topic: {
            "bname": broker,
            "currIdMap": ids,
            "dirty": draw(st.booleans()),
            "epoch": draw(longs),
            "scope": "__global__",
            "topic": topic,
            "totalQueues": draw(ints),
        }
        for topic, (broker, ids) in table.items()
    }


bodies = st.builds(
    RegisterBrokerBody,
    topics=topics(),
    data_version=versions,
    filter_servers=st.lists(names, max_size=2),
    queue_mappings=mappings(),
)


@given(bodies, st.booleans())
def test_body_round_trips_in_both_forms(body, compressed):
    encoded = body.encode(compressed=compressed)
    assert RegisterBrokerBody.decode(encoded, compressed=compressed) == body


@given(bodies, st.integers(0, 10_000))
def test_compressed_body_cut_anywhere_is_a_body_or_one_clean_error(body, cut):
    inflated = zlib.decompress(body.encode(compressed=True))
    shortened = zlib.compress(inflated[: cut % (len(inflated) + 1)])
    with contextlib.suppress(RegisterBodyError):
        assert RegisterBrokerBody.decode(shortened, compressed=True) == body


@given(st.binary(max_size=300), st.booleans())
def test_garbage_is_one_clean_error_or_a_body(data, compressed):
    with contextlib.suppress(RegisterBodyError):
        RegisterBrokerBody.decode(data, compressed=compressed)
    with contextlib.suppress(RegisterBodyError):
        RegisterBrokerBody.decode(zlib.compress(data), compressed=True)
