"""The Java 5.5.0 broker and this store take turns on one folder, by clean stops and by kill -9.

Each side reads back, byte for byte, every record that the other one or itself ever wrote. The Java
broker is asked over its own wire, so no client and no name server take part.
"""

import json
import os
import socket

import pytest
from click.testing import CliRunner
from unit.storage.kit import SetClock, kill, open_store, read_queue

from pyritemq.compat.java_hash import tags_code
from pyritemq.conformance.processes import free_broker_port
from pyritemq.conformance.servers.java import BROKER_READY, READY_SECONDS, start_broker
from pyritemq.protocol.codes import RequestCode, ResponseCode
from pyritemq.protocol.command import Command
from pyritemq.protocol.frames import FrameDecoder
from pyritemq.protocol.headers.pull import PullMessageHeader
from pyritemq.protocol.headers.send import SendMessageHeader
from pyritemq.protocol.record import TRANSACTION_PREPARED, decode_record, decode_records
from pyritemq.server.cli import main
from pyritemq.storage import GetStatus, MessageToStore

pytestmark = pytest.mark.java

QUEUES = 3
LONG_GROUP = "%RETRY%" + "g" * 130  # only a retry topic may be longer than 127 bytes
TOPICS = ("Plain", LONG_GROUP)
SIZES = {"commit_log_file_size": 1 << 18, "consume_queue_file_units": 100}
SUBSCRIPTION_FLAG = 4
NOW = 1_790_000_000_000


class Wire:
    """One connection to a broker, one request at a time."""

    def __init__(self, port):
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=20)
        self._decoder = FrameDecoder()

    def ask(self, code, ext, body=b""):
        self._socket.sendall(Command(code, ext_fields=ext, body=body).encode())
        while True:  # the broker may tell of a change in between, which is a request of its own
            for reply in self._decoder.feed(self._socket.recv(1 << 20)):
                if reply.is_response:
                    return reply

    def close(self):
        self._socket.close()


@pytest.fixture
def java_broker(tmp_path):
    """Start the Java broker on the test's folder and connect; the test ends it as it likes."""
    wires, children = [], []

    def start():
        port = free_broker_port()
        properties = {
            "listenPort": port,
            "brokerIP1": "127.0.0.1",
            "mappedFileSizeCommitLog": SIZES["commit_log_file_size"],
            "mappedFileSizeConsumeQueue": SIZES["consume_queue_file_units"] * 20,
        }
        children.append(start_broker(tmp_path, properties=properties))
        children[-1].wait_for_line(BROKER_READY, timeout=READY_SECONDS)
        wires.append(Wire(port))
        return children[-1], wires[-1]

    yield start
    for wire in wires:
        wire.close()
    for child in children:
        child.kill()


def write_topics(root):
    table = {
        topic: {
            "topicName": topic,
            "perm": 6,
            "readQueueNums": QUEUES,
            "writeQueueNums": QUEUES,
            "topicFilterType": "SINGLE_TAG",
            "topicSysFlag": 0,
            "order": False,
        }
        for topic in TOPICS
    }
    version = {"counter": 1, "stateVersion": 0, "timestamp": NOW}
    (root / "config").mkdir(parents=True)
    text = json.dumps({"topicConfigTable": table, "dataVersion": version})
    (root / "config" / "topics.json").write_text(text)


def put_some(store, rounds):
    """Messages of every kind that the store knows, enough to roll both sorts of files."""
    for number in range(rounds):
        batch = []
        for topic in TOPICS:
            tag = ("", "TagA", "标签")[number % 3]
            properties = f"KEYS\x01k{number}\x02" + (f"TAGS\x01{tag}\x02" if tag else "")
            batch.append(
                MessageToStore(
                    topic.encode(),
                    number % QUEUES,
                    os.urandom(number % 1500),
                    properties.encode(),
                    tags_code=tags_code(tag),
                    flag=number,
                    born_timestamp=NOW - number,
                    born_host=bytes(range(8 if number % 2 else 20)),
                    store_host=bytes(8 if number % 5 else 20),
                    reconsume_times=number % 4,
                )
            )
        batch.append(MessageToStore(b"Plain", 0, b"half", sys_flag=TRANSACTION_PREPARED))
        store.put_batch(batch)


def read_ours(store):
    """Each queue's records as bytes, and its tags codes."""
    queues = {}
    for topic in TOPICS:
        for queue_id in range(QUEUES):
            offset, parts, queue = 0, [], store.queues.find(topic.encode(), queue_id)
            while (found := store.get(topic, queue_id, offset, count_max=32)).count:
                assert found.status is GetStatus.FOUND
                parts += [bytes(piece) for piece in found.slices]
                offset = found.next_begin_offset
            codes = [queue.unit(number)[2] for number in range(offset)]
            queues[topic, queue_id] = (b"".join(parts), codes)
    return queues


def pull(wire, topic, queue_id, offset, subscription="*"):
    header = PullMessageHeader(
        consumer_group="readers",
        topic=topic,
        queue_id=queue_id,
        queue_offset=offset,
        max_msg_nums=32,
        sys_flag=SUBSCRIPTION_FLAG,
        commit_offset=0,
        suspend_timeout_millis=0,
        subscription=subscription,
        sub_version=0,
    )
    return wire.ask(RequestCode.PULL_MESSAGE, header.encode())


def read_java(wire):
    """The same out of the Java broker; records only."""
    queues = {}
    for topic in TOPICS:
        for queue_id in range(QUEUES):
            offset, parts = 0, []
            while (reply := pull(wire, topic, queue_id, offset)).code == ResponseCode.SUCCESS:
                parts.append(bytes(reply.body))
                offset = int(reply.ext_fields["nextBeginOffset"])
            assert reply.code in (ResponseCode.PULL_NOT_FOUND, ResponseCode.PULL_OFFSET_MOVED)
            queues[topic, queue_id] = b"".join(parts)
    return queues


def send_some(wire, count):
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
            properties=f"UNIQ_KEY\x01{number:032X}\x02TAGS\x01TagB",
        )
        body = os.urandom(3000)
        reply = wire.ask(RequestCode.SEND_MESSAGE_V2, header.encode_v2(), body)
        assert reply.code == ResponseCode.SUCCESS, reply.remark


def by_time(wire, timestamp, boundary):
    ext = {"topic": "Plain", "queueId": "0", "timestamp": str(timestamp), "boundaryType": boundary}
    reply = wire.ask(RequestCode.SEARCH_OFFSET_BY_TIMESTAMP, ext)
    return int(reply.ext_fields["offset"])


def test_java_and_pyritemq_take_turns_on_one_store(tmp_path, java_broker):
    root, clock = tmp_path / "store", SetClock(NOW)
    write_topics(root)
    store = open_store(root, clock, **SIZES)
    for _ in range(4):
        put_some(store, 200)
        clock.ms += 1000
    ours = read_ours(store)
    assert sum(len(codes) for _, codes in ours.values()) == 1600
    times = [(NOW + 500 * step, side) for step in range(-1, 9) for side in ("LOWER", "UPPER")]
    offsets = [store.offset_by_time("Plain", 0, *time) for time in times]
    store.close()

    # Java starts after our clean stop, reads everything, and writes on top
    broker, wire = java_broker()
    assert read_java(wire) == {key: records for key, (records, _) in ours.items()}
    assert [by_time(wire, *time) for time in times] == offsets
    tagged = pull(wire, "Plain", 1, 0, subscription="TagA")
    assert {decode_record(tagged.body, 0).properties.split(b"\x02")[1]} == {b"TAGS\x01TagA"}
    send_some(wire, 150)
    java = read_java(wire)
    broker.stop(timeout=60)

    # we start after Java's clean stop, read everything, write on top, and die
    clock.ms = NOW + 10_000
    store = open_store(root, clock, **SIZES)
    ours = read_ours(store)
    assert {key: records for key, (records, _) in ours.items()} == java
    assert ours["Plain", 0][1][-1] == tags_code("TagB")
    put_some(store, 200)
    store.queues.write_out()
    put_some(store, 200)
    ours = read_ours(store)
    kill(store)

    # Java recovers from our crash, writes on top, and dies too
    broker, wire = java_broker()
    assert read_java(wire) == {key: records for key, (records, _) in ours.items()}
    send_some(wire, 150)
    java = read_java(wire)
    broker.kill()

    # we recover from Java's crash
    store = open_store(root, clock, **SIZES)
    assert {key: records for key, (records, _) in read_ours(store).items()} == java
    put_some(store, 10)
    store.close()


def test_java_serves_a_store_that_was_repaired(tmp_path, java_broker):
    root, clock = tmp_path / "store", SetClock(NOW)
    write_topics(root)
    store = open_store(root, clock, **SIZES)
    put_some(store, 600)
    lost = [store.queues.find(b"Plain", 1).unit(number) for number in (20, 100)]
    store.close()
    for phy_offset, size, _ in lost:
        start = phy_offset - phy_offset % SIZES["commit_log_file_size"]
        with open(root / "commitlog" / f"{start:020d}", "r+b") as file:
            file.seek(phy_offset - start)
            file.write(b"\xff" * min(size, 90))
    assert CliRunner().invoke(main, ["store", "repair", str(root)]).exit_code == 0

    store = open_store(root, clock, **SIZES)
    offsets = [record.queue_offset for record in read_queue(store, "Plain", 1)]
    assert offsets == [number for number in range(200) if number not in (20, 100)]
    ours = {key: records for key, (records, _) in read_ours(store).items()}
    store.close()
    _, wire = java_broker()
    java = read_java(wire)
    # Java passes over a lost message together with some that the same pull would have found
    assert set(decode_records(java.pop(("Plain", 1)))) < set(decode_records(ours.pop(("Plain", 1))))
    assert java == ours
    send_some(wire, 3)
