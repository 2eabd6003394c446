"""What the official examples print, read back: which messages were sent, and which came.

Producers print SendResult, consumers print MessageExt; both name the unique key that the producing
client made, so the two sides can be compared message by message.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_SENT = re.compile(
    r"SendResult \[sendStatus=(?P<status>\w+), msgId=(?P<keys>[0-9A-F,]+), "
    r"offsetMsgId=(?P<ids>[0-9A-F,]+), messageQueue=MessageQueue \[topic=(?P<topic>\S+), "
    r"brokerName=(?P<broker>\S+), queueId=(?P<queue>\d+)\], queueOffset=(?P<offset>\d+)"
)
_RECEIVED = re.compile(
    r"MessageExt \[brokerName=(?P<broker>\S+), queueId=(?P<queue>\d+), .*?"
    r"queueOffset=(?P<offset>\d+), .*?msgId=(?P<id>[0-9A-F]+), .*?"
    r"topic='(?P<topic>[^']+)'.*?UNIQ_KEY=(?P<key>[0-9A-F]+)"
)


@dataclass(frozen=True)
class Message:
    """One message as either side saw it. The key is the producer's; the id tells the phy offset."""

    key: str
    message_id: str
    topic: str
    queue_id: int
    queue_offset: int


def sent_messages(output: str) -> list[Message]:
    """The messages that a producer was told are stored, batches taken apart."""
    messages: list[Message] = []
    for match in _SENT.finditer(output):
        if match["status"] != "SEND_OK":
            continue
        pairs = zip(match["keys"].split(","), match["ids"].split(","), strict=True)
        queue, first = int(match["queue"]), int(match["offset"])
        for index, (key, message_id) in enumerate(pairs):
            messages.append(Message(key, message_id, match["topic"], queue, first + index))
    return messages


def received_messages(output: str) -> list[Message]:
    """The messages that a consumer printed, in the order in which it printed them."""
    return [
        Message(m["key"], m["id"], m["topic"], int(m["queue"]), int(m["offset"]))
        for m in _RECEIVED.finditer(output)
    ]


def by_queue(messages: list[Message]) -> dict[int, list[int]]:
    """Queue id -> queue offsets, in the order of the messages."""
    queues: dict[int, list[int]] = {}
    for message in messages:
        queues.setdefault(message.queue_id, []).append(message.queue_offset)
    return queues
