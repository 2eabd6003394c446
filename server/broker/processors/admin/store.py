"""A look into the store, and cleaning it.  Lane ADMIN."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyritemq.compat import fastjson
from pyritemq.protocol.codes import RequestCode, ResponseCode
from pyritemq.protocol.headers.admin import QueryConsumeQueueHeader
from pyritemq.server.broker.filters.bit_maps import bit_map_test
from pyritemq.server.lanes import Lane
from pyritemq.server.registry import Request, RequestRefused, broker_handlers
from pyritemq.storage.consume_queue import UNIT
from pyritemq.storage.consume_queue_ext import ADDRESS_MAX, EXT_HEAD

if TYPE_CHECKING:
    from pyritemq.protocol.command import Command
    from pyritemq.server.broker.broker import Broker
    from pyritemq.storage.consume_queue import ConsumeQueue
    from pyritemq.storage.consume_queue_ext import ExtUnit

UNITS_MAX = 10_000
"""Of one answer: about a megabyte of JSON.  Java gives as many as it is asked for."""

# Arguments of madvise, which Java passes through.
MADV_NORMAL, MADV_RANDOM = 0, 1

CHECK_IN_PROGRESS = 2

LMQ_PREFIX = "%LMQ%"
"""Names of light queues: topics that no table lists (MixAll)."""


@broker_handlers.handles(RequestCode.QUERY_CONSUME_QUEUE, QueryConsumeQueueHeader, lane=Lane.ADMIN)
def query_consume_queue(broker: Broker, request: Request[QueryConsumeQueueHeader]) -> Command:
    asked = request.header
    queue = _queue(broker, asked)
    if queue is None:
        raise RequestRefused(
            ResponseCode.SYSTEM_ERROR, f"{asked.queue_id}@{asked.topic} is not exist!"
        )
    if not queue.min_offset <= asked.index < queue.max_offset:
        return request.reply(
            remark=f"Index {asked.index} of {asked.queue_id}@{asked.topic} is not exist!"
        )
    body: dict[str, Any] = {
        **_subscription(broker, asked),
        "maxQueueIndex": queue.max_offset,
        "minQueueIndex": queue.min_offset,
        "queueData": _units(broker, queue, asked),
    }
    return request.reply(body=fastjson.dumps(body))


def _queue(broker: Broker, asked: QueryConsumeQueueHeader) -> ConsumeQueue | None:
    return broker.store.queues.find(asked.topic.encode(), asked.queue_id)


def _units(
    broker: Broker, queue: ConsumeQueue, asked: QueryConsumeQueueHeader
) -> list[dict[str, Any]]:
    count = max(0, min(asked.count, UNITS_MAX, queue.max_offset - asked.index))
    return [
        {
            "eval": False,
            "physicOffset": phy_offset,
            "physicSize": size,
            "tagsCode": code,
            **(_ext(broker, queue, asked, code) if code <= ADDRESS_MAX else {}),
        }
        for phy_offset, size, code in UNIT.iter_unpack(queue.units(asked.index, count))
    ]


def _ext(
    broker: Broker, queue: ConsumeQueue, asked: QueryConsumeQueueHeader, address: int
) -> dict[str, Any]:
    """What differs for a unit that names an ext unit."""
    exts = broker.store.exts
    unit = None if exts is None else exts.read(queue, address)
    if unit is None:
        return {"msg": f"Cq extend not exist!addr: {address}"}
    fields: dict[str, Any] = {
        "msgStoreTime": unit.store_timestamp,
        "size": EXT_HEAD.size + len(unit.bit_map),
        "tagsCode": unit.tags_code,
    }
    found: dict[str, Any] = {"tagsCode": unit.tags_code}
    if unit.bit_map:
        signed = [byte - 256 if byte > 127 else byte for byte in unit.bit_map]
        fields = {"filterBitMap": signed, **fields}
        found["bitMap"] = _bits(unit.bit_map)
    found["eval"] = _may_match(broker, asked, unit)
    found["extendDataJson"] = fastjson.dumps(fields).decode()
    return found


def _bits(bit_map: bytes) -> str:
    """The highest bit first, a line for each eight bytes (BitsArray.toString)."""
    return "".join(
        f"{bit_map[index]:08b}" + ("" if index % 8 else "\n")
        for index in reversed(range(len(bit_map)))
    )


def _may_match(broker: Broker, asked: QueryConsumeQueueHeader, unit: ExtUnit) -> bool:
    group = asked.consumer_group
    found = None if group is None else broker.consumers.find_subscription(group, asked.topic)
    if group is None or found is None:
        return False
    if found.is_tag_type:
        return found.tag_hashes is None or unit.tags_code in found.tag_hashes
    data = broker.filters.get(asked.topic, group)
    test = None if data is None else bit_map_test(data, bit_num=broker.filters.bit_num)
    return test is None or test(unit)


def _subscription(broker: Broker, asked: QueryConsumeQueueHeader) -> dict[str, Any]:
    if asked.consumer_group is None:
        return {}
    found = broker.consumers.find_subscription(asked.consumer_group, asked.topic)
    if found is None:
        return {"filterData": f"{asked.consumer_group}@{asked.topic} is not online!"}
    return {"filterData": "null", "subscriptionData": found.to_json()}


@broker_handlers.handles(RequestCode.GET_SYSTEM_TOPIC_LIST_FROM_BROKER, None, lane=Lane.ADMIN)
def get_system_topic_list_from_broker(broker: Broker, request: Request[None]) -> Command:
    return request.reply(body=fastjson.dumps({"topicList": sorted(broker.topics.system_topics)}))


@broker_handlers.handles(RequestCode.CLEAN_EXPIRED_CONSUMEQUEUE, None, lane=Lane.ADMIN)
def clean_expired_consume_queue(broker: Broker, request: Request[None]) -> Command:
    """Files go by themselves when the CommitLog's start moves; this takes whole queues, too."""
    broker.store.delete_expired_queues(keep=broker.topics.is_system_topic)
    return request.reply()


@broker_handlers.handles(RequestCode.DELETE_EXPIRED_COMMITLOG, None, lane=Lane.ADMIN)
def delete_expired_commit_log(broker: Broker, request: Request[None]) -> Command:
    """In the store's next rounds, whatever the hour; as in Java, the answer does not wait."""
    broker.store.expiry.delete_manually()
    return request.reply()


@broker_handlers.handles(RequestCode.CLEAN_UNUSED_TOPIC, None, lane=Lane.ADMIN)
def clean_unused_topic(broker: Broker, request: Request[None]) -> Command:
    """Delete queues of unknown topics; as in Java, the answer does not say how many there were."""
    unknown = [name for name in broker.store.topics() if name not in broker.topics]
    broker.store.delete_topics(
        name
        for name in unknown
        if not broker.topics.is_system_topic(name) and not name.startswith(LMQ_PREFIX)
    )
    return request.reply()


@broker_handlers.handles(RequestCode.SET_COMMITLOG_READ_MODE, None, lane=Lane.ADMIN)
def set_commit_log_read_mode(_: Broker, request: Request[None]) -> Command:
    """Advice to the kernel on how the CommitLog will be read; checked, but not passed on."""
    text = request.command.ext_fields.get("READ_AHEAD_MODE", "")
    if not text.isdecimal():
        raise RequestRefused(ResponseCode.SYSTEM_ERROR, "set commitlog readahead mode failed")
    if int(text) not in (MADV_NORMAL, MADV_RANDOM):
        raise RequestRefused(
            ResponseCode.INVALID_PARAMETER, "set commitlog readahead mode param value error"
        )
    return request.reply(remark=f"set commitlog readahead mode success, mode: {text}")


@broker_handlers.handles(RequestCode.EXPORT_ROCKSDB_CONFIG_TO_JSON, None, lane=Lane.ADMIN)
def export_rocksdb_config_to_json(_: Broker, request: Request[None]) -> Command:
    """The tables are JSON already; Java with its default tables says the same."""
    return request.reply(remark="export done.")


@broker_handlers.handles(RequestCode.CHECK_ROCKSDB_CQ_WRITE_PROGRESS, None, lane=Lane.ADMIN)
def check_rocksdb_cq_write_progress(_: Broker, request: Request[None]) -> Command:
    """Java answers that it has begun to look, whatever it will find, and logs the result."""
    return request.reply(body=fastjson.dumps({"checkStatus": CHECK_IN_PROGRESS}))


@broker_handlers.handles(RequestCode.POP_ROLLBACK, None, lane=Lane.ADMIN)
def pop_rollback(broker: Broker, request: Request[None]) -> Command:
    """Moves POP's records from RocksDB back to files, where they are here in the first place."""
    return request.reply()
