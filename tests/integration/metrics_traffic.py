"""A little of everything that metrics count, for our broker and the real one alike."""

import json
import re

from integration.test_retry import send_back
from integration.test_transactions import COMMIT, ROLLBACK, end, prepare
from integration.wire import pull, send
from pyritemq.protocol.codes import RequestCode, ResponseCode
from pyritemq.protocol.record import decode_records

SETTINGS = {"messageDelayLevel": "1s 2s", "timerPrecisionMs": "100"}

ID = "UNIQ_KEY\x01id\x02"
"""Else the broker makes one, which is longer where it has an IPv6 address: sizes would differ."""

SAMPLE = re.compile(r"(\w+)(?:\{(.*)\})? (\S+)")
LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')
TAILS = ("_bucket", "_sum", "_count")


def parse(text):
    """(name, labels, value) of each sample, and the type of each metric."""
    samples, types = [], {}
    for line in text.splitlines():
        if line.startswith("# TYPE "):
            _, _, name, kind = line.split(" ")
            types[name] = kind
        elif line and not line.startswith("#"):
            name, labels, value = SAMPLE.match(line).groups()
            samples.append((name, dict(LABEL.findall(labels or "")), float(value)))
    return samples, types


def shape(text):
    """Each metric's type, the sets of labels that its samples have, and a histogram's bounds."""
    samples, types = parse(text)
    found = {name: {"type": kind, "labels": set(), "le": {}} for name, kind in types.items()}
    for name, labels, _ in samples:
        name = next((name.removesuffix(t) for t in TAILS if name.removesuffix(t) in types), name)
        bound = labels.pop("le", None)
        found[name]["labels"].add(tuple(sorted(labels)))
        if bound is not None:
            found[name]["le"][float(bound)] = bound
    return {
        name: {
            "type": one["type"],
            "labels": [list(labels) for labels in sorted(one["labels"])],
            "le": [str(bound) for bound in sorted(one["le"])],
        }
        for name, one in sorted(found.items())
    }


def counts(text):
    """What is counted, and how often: the same on every broker after the same traffic."""
    samples, types = parse(text)
    return sorted(
        [name, sorted(labels.items()), value]
        for name, labels, value in samples
        if types.get(name) == "counter" or name == "rocketmq_message_size_count"
    )


async def make_traffic(wire):
    """Send, read and administer; what is delayed comes out a second later."""
    topic = {"topic": "Topic", "defaultTopic": "TBW102", "readQueueNums": 4, "writeQueueNums": 4}
    topic |= {"perm": 6, "topicFilterType": "SINGLE_TAG", "topicSysFlag": 0, "order": "false"}
    await ok(wire.call(RequestCode.UPDATE_AND_CREATE_TOPIC, topic))
    group = json.dumps({"groupName": "g"}).encode()
    await ok(wire.call(RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, {}, group))
    await ok(wire.call(RequestCode.HEART_BEAT, {}, json.dumps(HEARTBEAT).encode()))
    for number in range(3):
        await ok(send(wire, "Topic", b"normal %d" % number, properties=ID))
    await ok(send(wire, "Topic", b"x" * 2000, properties=ID + "__SHARDINGKEY\x01k\x02"))
    await ok(send(wire, "Topic", b"delayed", properties=ID + "DELAY\x011\x02"))
    await ok(send(wire, "Topic", b"timed", properties=ID + "TIMER_DELAY_MS\x01500\x02"))
    await ok(send(wire, "Topic", b"far", properties=ID + "TIMER_DELAY_SEC\x01600\x02"))
    await ok(end(wire, await prepare(wire, b"committed"), COMMIT))
    await ok(end(wire, await prepare(wire, b"rolled back"), ROLLBACK))
    await prepare(wire, b"undecided")
    found = await ok(pull(wire, "Topic", group="g"))
    record = decode_records(bytes(found.body))[0]
    await ok(send_back(wire, record, level=-1))
    offset = {"consumerGroup": "g", "topic": "Topic", "queueId": 0, "commitOffset": 1}
    await ok(wire.call(RequestCode.UPDATE_CONSUMER_OFFSET, offset))


def is_complete(text):
    """Whether the delayed message and the timer that were sent have come out."""
    delayed = (
        "rocketmq_messages_out_total{" in text and 'consumer_group="SCHEDULE_CONSUMER"' in text
    )
    return delayed and "rocketmq_timer_dequeue_total{" in text


async def ok(call):
    reply = await call
    assert reply.code == ResponseCode.SUCCESS, reply.remark
    return reply


SUBSCRIPTION = {"topic": "Topic", "subString": "*", "tagsSet": [], "codeSet": [], "subVersion": 1}
HEARTBEAT = {
    "clientID": "c",
    "producerDataSet": [{"groupName": "G"}],
    "consumerDataSet": [
        {
            "groupName": "g",
            "consumeType": "CONSUME_PASSIVELY",
            "messageModel": "CLUSTERING",
            "consumeFromWhere": "CONSUME_FROM_FIRST_OFFSET",
            "unitMode": False,
            "subscriptionDataSet": [SUBSCRIPTION],
        }
    ],
}
