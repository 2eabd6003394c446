"""LOCK_BATCH_MQ and UNLOCK_BATCH_MQ, on the client lane: which consumer may read a queue in order.

As AdminBrokerProcessor of 5.5.0 with lockInStrictMode=false; a strict lock would ask the replicas
of this broker as well, and there are none yet.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from pyritemq.compat import fastjson
from pyritemq.protocol.codes import RequestCode, ResponseCode
from pyritemq.server.broker.state.queue_locks import MessageQueue
from pyritemq.server.lanes import Lane
from pyritemq.server.registry import RequestRefused, broker_handlers

if TYPE_CHECKING:
    from pyritemq.protocol.command import Command
    from pyritemq.server.broker.broker import Broker
    from pyritemq.server.registry import Request


class LockBatch(NamedTuple):
    """A LOCK_BATCH_MQ or UNLOCK_BATCH_MQ body."""

    consumer_group: str
    client_id: str
    queues: list[MessageQueue]


@broker_handlers.handles(RequestCode.LOCK_BATCH_MQ, None, lane=Lane.CLIENT)
def lock_batch_mq(broker: Broker, request: Request[None]) -> Command:
    batch = _decode(request)
    locked = broker.queue_locks.lock_batch(batch.consumer_group, batch.queues, batch.client_id)
    body = fastjson.dumps({"lockOKMQSet": [*map(queue_to_json, locked)]})
    return request.reply(body=body)


@broker_handlers.handles(RequestCode.UNLOCK_BATCH_MQ, None, lane=Lane.CLIENT)
def unlock_batch_mq(broker: Broker, request: Request[None]) -> Command:
    batch = _decode(request)
    broker.queue_locks.unlock_batch(batch.consumer_group, batch.queues, batch.client_id)
    return request.reply()


def queue_to_json(queue: MessageQueue) -> dict[str, Any]:
    """Java's MessageQueue, in fastjson's order."""
    return {"brokerName": queue.broker_name, "queueId": queue.queue_id, "topic": queue.topic}


def _decode(request: Request[None]) -> LockBatch:
    try:
        return decode_lock_batch(request.command.body)
    except (ValueError, TypeError, AttributeError, LookupError) as error:
        raise RequestRefused(
            ResponseCode.SYSTEM_ERROR, f"the body cannot be read: {error}"
        ) from None


def decode_lock_batch(body: bytes | memoryview) -> LockBatch:
    """Read a body; one of another shape raises what `_decode` catches."""
    data = fastjson.loads(body)
    group, client_id = data.get("consumerGroup"), data.get("clientId")
    if not isinstance(group, str) or not isinstance(client_id, str):
        raise ValueError("consumerGroup or clientId is missing")
    queues = [
        MessageQueue(str(item["topic"]), str(item.get("brokerName")), int(item["queueId"]))
        for item in data.get("mqSet") or ()
    ]
    return LockBatch(group, client_id, list(dict.fromkeys(queues)))
