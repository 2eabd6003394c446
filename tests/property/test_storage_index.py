"""The index against its declaration, putKey one by one, and a look at every record."""

from itertools import groupby
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given
from hypothesis import strategies as st
from unit.storage.kit import MemoryDisk, SetClock, open_store

from pyritemq.compat.java_hash import java_string_hash
from pyritemq.protocol.record import decode_record
from pyritemq.storage import MessageToStore
from pyritemq.storage.index_file import IndexFile
from pyritemq.storage.index_keys import KeyHasher, RecordKeys, index_hash
from pyritemq.storage.layouts import index_file_layout

SLOTS, ITEMS = 7, 40
LAYOUT = index_file_layout(SLOTS, ITEMS)
ROOT = Path("/store")

words = st.text(st.characters(exclude_characters="\x00\x01\x02 ", codec="utf-8"), min_size=1)
some_keys = st.sampled_from(["a", "b", "ab", "key", "ключ", "Tag"])


def as_java_hashes(text):
    value = abs(java_string_hash(text))
    return value if value < 1 << 31 else 0


@given(topic=words, unique=words, keys=st.lists(words, max_size=3), tags=words)
def test_hashes_put_together_from_parts_are_javas(topic, unique, keys, tags):
    properties = f"UNIQ_KEY\x01{unique}\x02KEYS\x01{' '.join(keys)}\x02TAGS\x01{tags}\x02"
    record = RecordKeys(0, topic.encode(), properties.encode(), 0, 0)
    expected = [as_java_hashes(f"{topic}#{key}") for key in (unique, *keys)]
    expected.append(as_java_hashes(f"{topic}#T#{tags}"))
    hasher = KeyHasher()
    assert hasher.hashes(record) == expected
    assert hasher.hashes(record) == expected  # from memory this time
    assert index_hash(topic, unique, None) == expected[0]
    assert index_hash(topic, tags, "T") == expected[-1]


def test_hash_without_a_positive_counterpart_is_0():
    rest = ((1 << 31) - java_string_hash("T#AAAAAAA")) % (1 << 32)
    digits = [rest // 31**place % 31 for place in reversed(range(7))]
    key = "".join(chr(ord("A") + digit) for digit in digits)
    assert java_string_hash(f"T#{key}") == -(1 << 31)
    assert index_hash("T", key, None) == 0
    record = RecordKeys(0, b"T", f"KEYS\x01{key}\x02".encode(), 0, 0)
    assert KeyHasher().hashes(record) == [0]


class OneByOne:
    """IndexFile.putKey, written down plainly."""

    def __init__(self):
        self.header = {"begin": 0, "end": 0, "begin_offset": 0, "end_offset": 0, "used": 0}
        self.slots = [0] * SLOTS
        self.items = [(0, 0, 0, 0)]

    def put(self, key_hash, phy_offset, timestamp):
        header, slot = self.header, key_hash % SLOTS
        before = self.slots[slot]
        seconds = max((timestamp - header["begin"]) // 1000, 0) if header["begin"] > 0 else 0
        self.slots[slot] = len(self.items)
        if len(self.items) == 1:
            header |= {"begin": timestamp, "begin_offset": phy_offset}
        self.items.append((key_hash, phy_offset, min(seconds, (1 << 31) - 1), before))
        header["used"] += before == 0
        header |= {"end": timestamp, "end_offset": phy_offset}


entries = st.tuples(st.integers(0, 30), st.integers(0, 1 << 40), st.integers(1, 1 << 43))


@given(st.lists(st.lists(entries, max_size=8), max_size=4))
def test_file_is_as_declared_and_as_put_one_by_one(batches):
    disk = MemoryDisk()
    file = IndexFile.create(disk, ROOT / "1", slots=SLOTS, items=ITEMS, before=None)
    plain = OneByOne()
    for batch in batches:
        file.put(batch)
        for entry in batch:
            plain.put(*entry)
    parsed = LAYOUT.parse(bytes(disk.files[ROOT / "1"].buffer))
    if plain.header["end"]:
        header = (*plain.header.values(), len(plain.items))
        assert tuple(list(parsed.header.values())[1:]) == header == tuple(file.header)
    assert list(parsed.slots) == plain.slots
    items = [tuple(list(item.values())[1:]) for item in parsed["items"][: len(plain.items)]]
    assert items == plain.items
    for key_hash in range(31):
        newest_first = [item[1] for item in reversed(plain.items[1:]) if item[0] == key_hash]
        found: list[int] = []
        file.select(found, key_hash, 100, begin=-1, end=1 << 62)
        assert found == [offset for offset, _ in groupby(newest_first)]


@given(st.binary(max_size=1200), st.integers(0, 30))
def test_damaged_file_ends_every_search(noise, key_hash):
    disk = MemoryDisk()
    file = disk.open(ROOT / "1", create=True)
    file.resize(LAYOUT.sizeof())
    file.write_at(0, noise[: LAYOUT.sizeof()])
    index = IndexFile(file, slots=SLOTS, items=ITEMS)
    found: list[int] = []
    index.select(found, key_hash, 5, begin=0, end=1 << 62)
    assert len(found) <= 5


messages = st.tuples(
    st.sampled_from(["T", "U"]),
    st.lists(some_keys, max_size=3),
    some_keys | st.just(""),
    some_keys | st.just(""),
    st.integers(0, 2500),
)


@given(st.lists(messages, max_size=60), st.integers(0, 60), st.integers(1, 70), st.data())
def test_query_finds_what_looking_at_every_record_finds(sent, indexed, count_max, data):
    """Wherever the builder has come to; times in whole seconds, since items know no others."""
    clock = SetClock(1_000_000)
    with TemporaryDirectory() as folder:
        store = open_store(Path(folder), clock, query_count_max=1000, index_slots=SLOTS)
        stored = []
        for topic, keys, unique, tags, pause in sent:
            clock.ms += pause // 1000 * 1000
            named = {"KEYS": " ".join(keys), "UNIQ_KEY": unique, "TAGS": tags}
            text = "".join(f"{name}\x01{value}\x02" for name, value in named.items() if value)
            (result,) = store.put_batch([MessageToStore(topic.encode(), 0, b"b", text.encode())])
            stored.append((topic, {*keys, unique}, tags, clock.ms, result.phy_offset))
        store.index.catch_up(records_max=indexed)
        topic, key = data.draw(st.sampled_from(["T", "U"])), data.draw(some_keys)
        index_type = data.draw(st.sampled_from([None, "K", "U", "T"]))
        begin = 1_000_000 + data.draw(st.integers(0, 20)) * 1000
        end = begin + data.draw(st.integers(0, 100)) * 1000
        expected = [
            offset
            for name, keys, tags, stored_at, offset in stored
            if name == topic
            and (tags == key if index_type == "T" else key in keys)
            and begin <= stored_at <= end
        ]
        found = store.query(topic, key, count_max, begin=begin, end=end, index_type=index_type)
        offsets = [decode_record(record, 0).phy_offset for record in found.records]
        assert offsets == expected[-count_max:]
        store.close()
