"""The index and the Java 5.5.0 broker: the same bytes from the same messages, turns on one folder.

Index files are small here, so that a few hundred messages fill several.
"""

import os
import shutil

import pytest
from unit.storage.kit import SetClock, kill, open_store
from unit.storage.test_java_store import NOW, QUEUES, Wire, write_topics

from pyritemq.conformance.processes import free_broker_port
from pyritemq.conformance.servers.java import BROKER_READY, READY_SECONDS, start_broker
from pyritemq.protocol.codes import RequestCode, ResponseCode
from pyritemq.protocol.headers.message import QueryMessageHeader
from pyritemq.protocol.headers.send import SendMessageHeader
from pyritemq.protocol.record import decode_record
from pyritemq.storage import MessageToStore

pytestmark = pytest.mark.java

SIZES = {"commit_log_file_size": 1 << 18, "index_slots": 97, "index_items": 300}
SIZES["consume_queue_file_units"] = 100
KEYS = ("order", "客户 😀", "a  b", "x" * 300)


@pytest.fixture
def java_broker(tmp_path):
    """Start the Java broker on the test's folder and connect; the test ends it as it likes."""
    running = []

    def start():
        port = free_broker_port()
        properties = {
            "listenPort": port,
            "brokerIP1": "127.0.0.1",
            "mappedFileSizeCommitLog": SIZES["commit_log_file_size"],
            "mappedFileSizeConsumeQueue": SIZES["consume_queue_file_units"] * 20,
            "maxHashSlotNum": SIZES["index_slots"],
            "maxIndexNum": SIZES["index_items"],
        }
        broker = start_broker(tmp_path, properties=properties)
        running.append(broker)
        broker.wait_for_line(BROKER_READY, timeout=READY_SECONDS)
        wire = Wire(port)
        running.append(wire)
        return broker, wire

    yield start
    for item in running:
        item.close() if isinstance(item, Wire) else item.kill()


def properties_of(source, number):
    tags = "\x02TAGS\x01TagA" if number % 2 else ""
    keys = f"{source}{number} {KEYS[number % 4]}"
    return f"UNIQ_KEY\x01{source}{number:030X}\x02KEYS\x01{keys}{tags}"


def send_to(wire, source, count):
    for number in range(count):
        header = SendMessageHeader(
            producer_group="writers",
            topic="Plain",
            default_topic="TBW102",
            default_topic_queue_nums=4,
            queue_id=number % QUEUES,
            sys_flag=0,
            born_timestamp=NOW,
            flag=0,
            properties=properties_of(source, number),
        )
        reply = wire.ask(RequestCode.SEND_MESSAGE_V2, header.encode_v2(), os.urandom(900))
        assert reply.code == ResponseCode.SUCCESS, reply.remark


def put_into(store, source, count):
    for number in range(count):
        properties = properties_of(source, number).encode()
        store.put_batch([MessageToStore(b"Plain", 0, os.urandom(900), properties)])


def ask_java(wire, key, index_type=None):
    header = QueryMessageHeader(
        topic="Plain",
        key=key,
        max_num=64,
        begin_timestamp=0,
        end_timestamp=1 << 62,
        index_type=index_type,
    )
    return wire.ask(RequestCode.QUERY_MESSAGE, header.encode())


def ask_ours(store, key, index_type=None):
    found = store.query("Plain", key, 64, begin=0, end=1 << 62, index_type=index_type)
    return b"".join(found.records)


def index_files(root):
    return [path.read_bytes() for path in sorted((root / "index").iterdir())]


def test_index_built_from_javas_commit_log_is_javas_index_byte_for_byte(tmp_path, java_broker):
    root = tmp_path / "store"
    write_topics(root)
    broker, wire = java_broker()
    send_to(wire, "J", 300)
    replies = {
        key: ask_java(wire, key).body for key in ("J7", "order", "客户", "😀", "b", "x" * 300)
    }
    tagged = ask_java(wire, "TagA", "T").body
    broker.stop(timeout=60)
    java = index_files(root)
    assert len(java) >= 3

    # on Java's files
    store = open_store(root, SetClock(NOW), **SIZES)
    assert not store.index.lag_bytes
    assert {key: ask_ours(store, key) for key in replies} == replies
    assert ask_ours(store, "TagA", "T") == tagged
    store.close()

    # and without them: first from the CommitLog alone, then from an index of our own
    shutil.rmtree(root / "index")
    store = open_store(root, SetClock(NOW), **SIZES)
    assert store.index.lag_bytes
    assert {key: ask_ours(store, key) for key in replies} == replies
    store.index.catch_up()
    assert {key: ask_ours(store, key) for key in replies} == replies
    store.close()
    assert index_files(root) == java


def test_java_and_pyritemq_take_turns_on_one_index(tmp_path, java_broker):
    root = tmp_path / "store"
    write_topics(root)
    store = open_store(root, SetClock(NOW), **SIZES)
    put_into(store, "P", 150)
    ours = {key: ask_ours(store, key) for key in ("P3", "P149", "order", "客户")}
    store.close()

    broker, wire = java_broker()
    assert {key: ask_java(wire, key).body for key in ours} == ours
    send_to(wire, "J", 150)
    java = {key: ask_java(wire, key).body for key in (*ours, "J3", "J149")}
    assert all(java.values())
    broker.stop(timeout=60)

    store = open_store(root, SetClock(NOW + 10_000), **SIZES)
    assert {key: ask_ours(store, key) for key in java} == java
    put_into(store, "Q", 100)
    store.index.catch_up()
    store.flush()
    kill(store)

    # Java drops what was not synced and does not build it again; what it finds is right
    broker, wire = java_broker()
    reply = ask_java(wire, "P3")
    assert reply.code == ResponseCode.SUCCESS
    assert decode_record(reply.body, 0).topic == "Plain"
    send_to(wire, "K", 20)
    broker.kill()

    # we do build it again
    store = open_store(root, SetClock(NOW + 20_000), **SIZES)
    for key in ("P3", "J3", "Q99", "K19"):
        assert ask_ours(store, key)
    store.index.catch_up()
    for key in ("P3", "J3", "Q99", "K19"):
        assert ask_ours(store, key)
    store.close()
