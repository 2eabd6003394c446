"""ConsumeQueueExt between the servers: each reads the bit maps that the other one made.

Both are asked over their own wire, so no client and no name server of Java's takes part.
"""

from __future__ import annotations

import json
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from unit.storage.test_java_store import Wire

from pyritemq.conformance.processes import free_broker_port
from pyritemq.conformance.servers import java
from pyritemq.conformance.servers.cluster import pyrite_cluster
from pyritemq.protocol.codes import RequestCode, ResponseCode
from pyritemq.protocol.headers.send import SendMessageHeader
from pyritemq.protocol.record import decode_records

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SETTINGS: dict[str, object] = {
    "enablePropertyFilter": "true",
    "enableConsumeQueueExt": "true",
    "enableCalcFilterBitMap": "true",
    "mappedFileSizeConsumeQueueExt": 1000,  # twenty units or so: several files
    "mappedFileSizeCommitLog": 1 << 20,
}
TOPIC = "Ext"
COUNT = 40
FILTERS = {"above": "a > 5", "tagged": "TAGS = 'T1' OR a = 0"}


@contextmanager
def ours(folder: Path) -> Iterator[Wire]:
    with pyrite_cluster(folder, properties=SETTINGS) as cluster:
        wire = Wire(int(cluster.broker.rpartition(":")[2]))
        yield wire
        wire.close()
        cluster.children[0].stop(timeout=30)


@contextmanager
def javas(folder: Path) -> Iterator[Wire]:
    port = free_broker_port()
    properties = {"listenPort": port, "brokerIP1": "127.0.0.1", **SETTINGS}
    with java.start_broker(folder, properties=properties) as broker:
        broker.wait_for_line(java.BROKER_READY, timeout=java.READY_SECONDS)
        wire = Wire(port)
        yield wire
        wire.close()
        broker.stop(timeout=60)


def subscribe(wire: Wire) -> None:
    groups = [
        {
            "groupName": group,
            "consumeType": "CONSUME_PASSIVELY",
            "messageModel": "CLUSTERING",
            "consumeFromWhere": "CONSUME_FROM_FIRST_OFFSET",
            "unitMode": False,
            "subscriptionDataSet": [
                {
                    "topic": TOPIC,
                    "subString": text,
                    "tagsSet": [],
                    "codeSet": [],
                    "subVersion": 7,
                    "expressionType": "SQL92",
                }
            ],
        }
        for group, text in FILTERS.items()
    ]
    body = {"clientID": "client", "consumerDataSet": groups, "producerDataSet": []}
    reply = wire.ask(RequestCode.HEART_BEAT, {}, json.dumps(body).encode())
    assert reply.code == ResponseCode.SUCCESS, reply.remark


def send(wire: Wire, start: int) -> None:
    for number in range(start, start + COUNT):
        header = SendMessageHeader(
            producer_group="writers",
            topic=TOPIC,
            default_topic="TBW102",
            default_topic_queue_nums=1,
            queue_id=0,
            sys_flag=0,
            born_timestamp=0,
            flag=0,
            properties=f"a\x01{number % 10}\x02TAGS\x01T{number % 3}\x02",
        )
        reply = wire.ask(RequestCode.SEND_MESSAGE_V2, header.encode_v2(), b"%d" % number)
        assert reply.code == ResponseCode.SUCCESS, reply.remark


def units(wire: Wire, group: str) -> list[dict[str, Any]]:
    ext = {"topic": TOPIC, "queueId": "0", "index": "0", "count": "1000", "consumerGroup": group}
    reply = wire.ask(RequestCode.QUERY_CONSUME_QUEUE, ext)
    found: list[dict[str, Any]] = json.loads(bytes(reply.body))["queueData"]
    for unit in found:
        unit["extendDataJson"] = json.loads(unit["extendDataJson"])
    return found


def pulled(wire: Wire, group: str, end: int) -> list[int]:
    offset, found = 0, []
    while offset < end:
        ext = {
            "consumerGroup": group,
            "topic": TOPIC,
            "queueId": "0",
            "queueOffset": str(offset),
            "maxMsgNums": "32",
            "sysFlag": "0",
            "commitOffset": "0",
            "suspendTimeoutMillis": "0",
            "subVersion": "7",
        }
        reply = wire.ask(RequestCode.PULL_MESSAGE, ext)
        if reply.code == ResponseCode.SUCCESS:
            found += [int(record.body) for record in decode_records(bytes(reply.body))]
        assert int(reply.ext_fields["nextBeginOffset"]) > offset, reply.remark
        offset = int(reply.ext_fields["nextBeginOffset"])
    return found


def check(wire: Wire, count: int) -> dict[str, list[dict[str, Any]]]:
    """Every group is given what it asks for; returns what the server tells of the units."""
    numbers = range(count)
    above = [number for number in numbers if number % 10 > 5]
    tagged = [number for number in numbers if number % 3 == 1 or number % 10 == 0]
    assert pulled(wire, "above", count) == above
    assert pulled(wire, "tagged", count) == tagged
    found = {group: units(wire, group) for group in FILTERS}
    for group, matching in (("above", above), ("tagged", tagged)):
        hits = {number for number, unit in enumerate(found[group]) if unit["eval"]}
        assert {*matching} <= hits
        assert len(hits) < count  # the bit maps tell of some that need not be read
    return found


def test_java_reads_our_bit_maps_and_we_read_javas(tmp_path: Path) -> None:
    with ours(tmp_path) as wire:
        send(wire, 0)  # makes the topic; before the filters: no bit map tells of these
        subscribe(wire)
        send(wire, COUNT)
        first = check(wire, 2 * COUNT)
    with javas(tmp_path) as wire:
        subscribe(wire)
        assert check(wire, 2 * COUNT) == first
        send(wire, 2 * COUNT)
        second = check(wire, 3 * COUNT)
    with ours(tmp_path) as wire:
        subscribe(wire)
        third = check(wire, 3 * COUNT)
        send(wire, 3 * COUNT)
        check(wire, 4 * COUNT)
    for group in FILTERS:
        assert [unit["eval"] for unit in third[group]] == [unit["eval"] for unit in second[group]]
        # a start looks again at the last messages: those from before the filters get bit maps too
        assert third[group][COUNT:] == second[group][COUNT:]
    assert len(list((tmp_path / "store" / "consumequeue_ext" / TOPIC / "0").iterdir())) > 3
