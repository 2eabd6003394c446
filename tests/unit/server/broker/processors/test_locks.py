"""LOCK_BATCH_MQ and UNLOCK_BATCH_MQ."""

import json

import pytest

from pyritemq.protocol.codes import RequestCode, ResponseCode
from pyritemq.protocol.command import Command


def batch(code, client_id, *queue_ids):
    queues = [{"brokerName": "broker-a", "queueId": i, "topic": "T"} for i in queue_ids]
    body = {"clientId": client_id, "consumerGroup": "g", "mqSet": queues, "onlyThisBroker": False}
    return Command(code, body=json.dumps(body).encode())


def locked(call, client_id, *queue_ids):
    reply = call(batch(RequestCode.LOCK_BATCH_MQ, client_id, *queue_ids))
    assert (reply.code, reply.remark) == (0, None)
    return [queue["queueId"] for queue in json.loads(bytes(reply.body))["lockOKMQSet"]]


def test_reply_lists_the_locked_queues_in_javas_json(call):
    reply = call(batch(RequestCode.LOCK_BATCH_MQ, "c1", 3))
    assert bytes(reply.body) == (
        b'{"lockOKMQSet":[{"brokerName":"broker-a","queueId":3,"topic":"T"}]}'
    )


def test_queues_of_another_client_are_not_locked_until_unlocked(call):
    assert locked(call, "c1", 0, 1) == [0, 1]
    assert locked(call, "c2", 1, 2) == [2]
    assert call(batch(RequestCode.UNLOCK_BATCH_MQ, "c1", 0, 1)).code == 0
    assert locked(call, "c2", 1, 2) == [1, 2]


def test_a_consumer_that_died_is_succeeded_after_a_minute(call, clock):
    locked(call, "c1", 0)
    clock.advance(60.001)
    assert locked(call, "c2", 0) == [0]


def test_empty_set_is_locked_to_nothing(call):
    assert locked(call, "c1") == []


@pytest.mark.parametrize(
    "body", [b"", b"[]", b"{}", b'{"clientId":"c","consumerGroup":"g","mqSet":[{}]}', b"nonsense"]
)
def test_unreadable_body_is_a_system_error_without_traceback(call, caplog, body):
    reply = call(Command(RequestCode.LOCK_BATCH_MQ, body=body))
    assert reply.code == ResponseCode.SYSTEM_ERROR
    assert "handler failed" not in caplog.text
