"""The Python client (the C++ client beneath it) behind line-JSON on stdin and stdout.

docs/conformance.md has the commands. Runs alone: nothing of PyriteMQ is on its path.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

Json = dict[str, Any]

sys.path.insert(0, str(Path(__file__).parent / "lib"))
replies = os.fdopen(os.dup(1), "w", encoding="utf-8")
os.dup2(2, 1)  # whatever the library prints must not meet the replies

from rocketmq.client import Message, Producer, PushConsumer, SendStatus  # noqa: E402
from rocketmq.exceptions import RocketMQException  # noqa: E402
from rocketmq.ffi import MessageModel, dll  # noqa: E402

FEATURES = [
    "send", "async", "oneway", "selector", "batch", "tags", "order", "broadcast", "retry", "delay",
    "timer", "options",
]  # fmt: skip

BODY_SHOWN_MAX = 4096
SEND_MS = 15000
WORKERS = 64
PROPERTIES = [
    "TAGS", "KEYS", "DELAY", "UNIQ_KEY", "RETRY_TOPIC", "ORIGIN_MESSAGE_ID", "REAL_TOPIC",
    "REAL_QID", "MIN_OFFSET", "MAX_OFFSET", "CONSUME_START_TIME", "WAIT", "TIMER_DELAY_SEC",
    "TIMER_DELAY_MS", "TIMER_DELIVER_MS", "TIMER_OUT_MS", "INSTANCE_ID", "CLUSTER",
    "RECONSUME_TIME", "fail", "failDelay", "sleepMs", "suspendMs", "throw",
]  # fmt: skip
"""A received message tells a property by name only: these are asked for."""


class Unsupported(Exception):  # noqa: N818 - the protocol's own word
    """What the client cannot do at all: the case is shown as not applicable."""


class Inbox:
    """What came to a client, in its order; a reader waits until there is enough of it."""

    def __init__(self) -> None:
        self._items: list[Json] = []
        self._changed = threading.Condition()

    def add(self, item: Json) -> None:
        with self._changed:
            self._items.append(item)
            self._changed.notify_all()

    def wait(self, request: Json) -> list[Json]:
        start = request.get("from", 0)
        wanted = start + request["atLeast"]
        with self._changed:
            self._changed.wait_for(
                lambda: len(self._items) >= wanted, timeout=request["withinMs"] / 1000
            )
            return self._items[start:]


producers: dict[str, Any] = {}
consumers: dict[str, tuple[Any, Inbox]] = {}
gone: list[Any] = []
"""What was shut down is kept: destroying it while one of its threads lives aborts the process."""


def read(wanted: Json) -> Any:
    for field in ("flag", "waitStoreMsgOK"):
        if field in wanted:
            raise Unsupported(f"message with {field}")
    message = Message(wanted["topic"])
    message.set_body("x" * wanted["bodySize"] if "bodySize" in wanted else wanted["body"])
    if "tags" in wanted:
        message.set_tags(wanted["tags"])
    if "keys" in wanted:
        message.set_keys(wanted["keys"])
    if "delayLevel" in wanted:
        message.set_delay_time_level(wanted["delayLevel"])
    for name, value in (wanted.get("properties") or {}).items():
        text = str(value).lower() if isinstance(value, bool) else str(value)
        message.set_property(name, text)
    return message


def text(value: bytes | None) -> str | None:
    return value.decode("utf-8", "replace") if value else None


def show(message: Any) -> Json:
    body = message.body or b""
    properties = {name: text(message.get_property(name)) for name in PROPERTIES}
    shown = {
        "topic": message.topic,
        "tags": text(message.tags),
        "keys": text(message.keys),
        "properties": {name: value for name, value in properties.items() if value is not None},
        "queueId": message.queue_id,
        "queueOffset": message.queue_offset,
        "msgId": message.id,
        "offsetMsgId": None,
        "reconsumeTimes": message.reconsume_times,
        "bornTimestamp": message.born_timestamp,
        "storeTimestamp": message.store_timestamp,
        "bodySize": len(body),
    }
    if len(body) <= BODY_SHOWN_MAX:
        shown["body"] = body.decode("utf-8", "replace")
    return shown


STATUSES = {
    SendStatus.OK: "SEND_OK",
    SendStatus.FLUSH_DISK_TIMEOUT: "FLUSH_DISK_TIMEOUT",
    SendStatus.FLUSH_SLAVE_TIMEOUT: "FLUSH_SLAVE_TIMEOUT",
    SendStatus.SLAVE_NOT_AVAILABLE: "SLAVE_NOT_AVAILABLE",
}


def sent(result: Any) -> Json:
    return {
        "status": STATUSES[result.status],
        "msgId": result.msg_id,
        "queueOffset": result.offset,
        "transactionId": None,
        "recallHandle": None,
    }


def start_producer(request: Json) -> None:
    for kind in ("transactional", "trace"):
        if request.get(kind):
            raise Unsupported(f"{kind} producer")
    options = dict(request.get("options") or {})
    producer = Producer(request["group"], timeout=int(options.pop("sendMsgTimeout", SEND_MS)))
    if "maxMessageSize" in options:
        producer.set_max_message_size(int(options.pop("maxMessageSize")))
    if options:
        raise Unsupported(f"producer option {', '.join(options)}")
    producer.set_namesrv_addr(request["namesrv"])
    dll.SetProducerInstanceName(producer._handle, request["producer"].encode())
    producer.start()
    producers[request["producer"]] = producer


def send(request: Json, wanted: Json | None = None) -> Json | None:
    producer = producers[request["producer"]]
    message = read(wanted or request["message"])
    mode = request.get("mode", "sync")
    if "timeoutMs" in request:
        raise Unsupported("send with timeoutMs")
    if "queue" in request or "hashKey" in request:
        return send_selected(producer, message, mode, request)
    if mode == "oneway":
        producer.send_oneway(message)
        return None
    if mode == "async":
        return send_async(producer, message)
    return sent(producer.send_sync(message))


def send_selected(producer: Any, message: Any, mode: str, request: Json) -> Json | None:
    """To the queue that was named, or to one for the key; the selector gets a number of queues."""
    named = request.get("queue")
    key = named["queueId"] if named else sum(str(request["hashKey"]).encode())

    def choose(count: int, _message: object, _argument: object) -> int:
        return key % count

    if mode == "oneway":
        producer.send_oneway_orderly(message, key, queue_selector=choose)
        return None
    if mode == "async":
        raise Unsupported("async send with a selector")
    return sent(producer.send_orderly(message, key, queue_selector=choose))


def send_async(producer: Any, message: Any) -> Json:
    done = threading.Event()
    outcome: list[Any] = []

    def told(result: object) -> None:
        outcome.append(result)
        done.set()

    producer.send_async(message, told, told)
    if not done.wait(60):
        raise RocketMQException("the callback never came")
    if isinstance(outcome[0], Exception):
        raise outcome[0]
    return sent(outcome[0])


def send_many(request: Json) -> list[Json | None]:
    return [send(request, wanted) for wanted in request["messages"]]


def send_batch(request: Json) -> Json:
    if "queue" in request or request.get("mode", "sync") != "sync":
        raise Unsupported("batch to a queue, or with a callback")
    messages = [read(wanted) for wanted in request["messages"]]
    return sent(producers[request["producer"]].send_batch(messages))


def shutdown_producer(request: Json) -> None:
    producer = producers.pop(request["producer"], None)
    if producer is not None:
        gone.append(producer)
        producer.shutdown()


def start_consumer(request: Json) -> None:
    for kind in ("trace", "replyWith"):
        if request.get(kind):
            raise Unsupported(f"consumer with {kind}")
    if any("sql" in wanted for wanted in request["topics"]):
        raise Unsupported("SQL92 filter")
    options = dict(request.get("options") or {})
    # There is no call for it. The topics of cases are new, so their first offset is the last too.
    if options.pop("consumeFromWhere", "") == "CONSUME_FROM_TIMESTAMP":
        raise Unsupported("start from a time")
    broadcast = options.pop("messageModel", "") == "BROADCASTING"
    model = MessageModel.BROADCASTING if broadcast else MessageModel.CLUSTERING
    orderly = request.get("mode") == "orderly"
    consumer = PushConsumer(request["group"], orderly=orderly, message_model=model)
    if "consumeMessageBatchMaxSize" in options:
        consumer.set_message_batch_max_size(int(options.pop("consumeMessageBatchMaxSize")))
    if options:
        raise Unsupported(f"consumer option {', '.join(options)}")
    consumer.set_namesrv_addr(request["namesrv"])
    consumer.set_instance_name(request["consumer"])
    inbox = Inbox()
    for wanted in request["topics"]:
        consumer.subscribe(wanted["topic"], listener(inbox), wanted["expression"])
    consumer.start()
    consumers[request["consumer"]] = consumer, inbox


def listener(inbox: Inbox) -> Callable[[Any], None]:
    def listen(message: Any) -> None:
        shown = show(message)
        inbox.add({**shown, "batchSize": 1, "receivedAt": int(time.time() * 1000)})
        properties = shown["properties"]
        if "sleepMs" in properties:
            time.sleep(int(properties["sleepMs"]) / 1000)
        if message.reconsume_times < int(properties.get("fail", 0)):
            raise ValueError("the listener failed")

    return listen


def shutdown_consumer(request: Json) -> None:
    found = consumers.pop(request["consumer"], None)
    if found is not None:
        gone.append(found)
        found[0].shutdown()


ACTIONS: dict[str, Callable[[Json], Any]] = {
    "producer.start": start_producer,
    "producer.send": send,
    "producer.sendMany": send_many,
    "producer.sendBatch": send_batch,
    "producer.shutdown": shutdown_producer,
    "consumer.start": start_consumer,
    "consumer.received": lambda request: consumers[request["consumer"]][1].wait(request),
    "consumer.shutdown": shutdown_consumer,
    # The client has no call for it: its own timer does it every five seconds.
    "consumer.persist": lambda request: None,
}

writing = threading.Lock()


def write(reply: Json) -> None:
    with writing:
        replies.write(json.dumps(reply) + "\n")
        replies.flush()


def serve(request: Json) -> None:
    try:
        if request["do"] not in ACTIONS:
            raise Unsupported(request["do"])
        write({"id": request["id"], "result": ACTIONS[request["do"]](request)})
    except Exception as error:  # noqa: BLE001 - whatever the client raises is the answer
        said = {"type": type(error).__name__, "message": str(error)}
        write({"id": request["id"], "error": said})


if __name__ == "__main__":
    write({"hello": {"client": "rocketmq-python", "features": FEATURES}})
    workers = ThreadPoolExecutor(WORKERS)
    for line in sys.stdin:
        workers.submit(serve, json.loads(line))
    os._exit(0)  # clients leave threads behind
