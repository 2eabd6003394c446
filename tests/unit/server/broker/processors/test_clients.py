"""Heartbeats, unregistration, client checks and connection lists, as Java's broker answers them."""

import json
from pathlib import Path

import pytest

from pyritemq.protocol.codes import RequestCode, ResponseCode
from pyritemq.protocol.command import Command, decode_frame

GOLDEN = Path(__file__).parents[4] / "golden"


def golden_frames(file, code):
    vectors = json.loads((GOLDEN / file).read_text())
    return [
        decode_frame(bytes.fromhex(vector["frame_hex"])[4:])
        for vector in vectors
        if vector["code"] == code and vector["direction"] == "request"
    ]


def heartbeat(*, client_id="c1", group="g", topics=("T",), producers=(), **more):
    subscriptions = [{"topic": topic, "subString": "*", "subVersion": 1} for topic in topics]
    consumer = {
        "groupName": group,
        "consumeType": "CONSUME_PASSIVELY",
        "messageModel": "CLUSTERING",
        "consumeFromWhere": "CONSUME_FROM_FIRST_OFFSET",
        "subscriptionDataSet": subscriptions,
    }
    body = {
        "clientID": client_id,
        "consumerDataSet": [consumer] if group else [],
        "producerDataSet": [{"groupName": name} for name in producers],
        **more,
    }
    return Command(RequestCode.HEART_BEAT, version=499, opaque=7, body=json.dumps(body).encode())


def list_of(group):
    return Command(RequestCode.GET_CONSUMER_LIST_BY_GROUP, ext_fields={"consumerGroup": group})


@pytest.mark.parametrize("file", ["client-4.9.8.json", "client-5.5.0.json"])
def test_heartbeats_of_real_clients_are_taken(call, file):
    frames = golden_frames(file, RequestCode.HEART_BEAT)
    assert frames
    for command in frames:
        assert call(command).code == ResponseCode.SUCCESS


def test_reply_says_that_version_2_is_understood(call):
    reply = call(heartbeat())
    assert reply.ext_fields == {"IS_SUPPORT_HEART_BEAT_V2": "true", "IS_SUB_CHANGE": "true"}
    assert (reply.code, reply.remark, bytes(reply.body)) == (0, None, b"")


def test_joining_consumer_is_notified_before_it_is_answered(call, channel, new_channel):
    call(heartbeat())
    (notice,) = channel.posted
    assert notice.code == RequestCode.NOTIFY_CONSUMER_IDS_CHANGED
    other = new_channel()
    call(heartbeat(client_id="c2"), other)
    assert [len(channel.posted), len(other.posted)] == [2, 1]


def test_group_with_notification_off_is_left_alone(call, channel):
    body = b'{"groupName":"g","notifyConsumerIdsChangedEnable":false}'
    call(Command(RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, body=body))
    call(heartbeat())
    assert channel.posted == []


def test_heartbeat_makes_the_retry_topic_and_tells_name_servers(call, broker):
    body = b'{"groupName":"g","retryQueueNums":3}'
    call(Command(RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, body=body))
    call(heartbeat())
    topic = broker.topics.get("%RETRY%g")
    assert (topic.read_queue_nums, topic.write_queue_nums, topic.perm) == (3, 3, 6)
    assert broker.registration.told == ["%RETRY%g"]


def test_retry_topic_of_an_ordered_topic_is_ordered(call, broker):
    call(heartbeat())
    broker.topics.create_on_send_back("T", queue_nums=1, order=True)
    call(heartbeat())
    assert broker.topics.get("%RETRY%g").order


def test_bad_group_name_is_passed_over(call, broker):
    assert call(heartbeat(group="bad group", producers=["p"])).code == 0
    assert broker.consumers.get("bad group") is None
    assert broker.producers.clients("p") is not None


def test_pull_consumers_can_be_rejected(call, broker):
    broker.config.reject_pull_consumer_enable = True
    command = heartbeat()
    command.body = bytes(command.body).replace(b"CONSUME_PASSIVELY", b"CONSUME_ACTIVELY")
    assert call(command).code == 0
    assert broker.consumers.get("g") is None


@pytest.mark.parametrize("body", [b"", b"notjson", b"[]", b'{"consumerDataSet":[{}]}'])
def test_unreadable_heartbeat_is_a_system_error_without_traceback(call, caplog, body):
    reply = call(Command(RequestCode.HEART_BEAT, body=body))
    assert reply.code == ResponseCode.SYSTEM_ERROR
    assert reply.remark.startswith("the body cannot be read: ")
    assert caplog.text == ""


def sub_change(reply):
    return reply.ext_fields["IS_SUB_CHANGE"]


def test_version_2_heartbeat_reports_a_changed_fingerprint_once(call):
    assert sub_change(call(heartbeat(heartbeatFingerprint=5))) == "false"
    assert sub_change(call(heartbeat(heartbeatFingerprint=5, withoutSub=True))) == "false"
    assert sub_change(call(heartbeat(heartbeatFingerprint=6, topics=("T", "U")))) == "true"
    assert sub_change(call(heartbeat(heartbeatFingerprint=6, topics=("T", "U")))) == "false"


def test_version_2_after_version_1_is_a_change(call):
    call(heartbeat())
    assert sub_change(call(heartbeat(heartbeatFingerprint=5))) == "true"


def test_short_heartbeat_keeps_the_subscriptions(call, broker):
    call(heartbeat(heartbeatFingerprint=5))
    call(heartbeat(heartbeatFingerprint=5, withoutSub=True, topics=()))
    assert broker.consumers.find_subscription("g", "T") is not None


def test_short_heartbeat_after_a_restart_is_asked_for_the_subscriptions(call):
    """A broker that was restarted knows no subscriptions; with Java's answer it never would."""
    assert sub_change(call(heartbeat(heartbeatFingerprint=5, withoutSub=True))) == "true"


def test_connection_that_ended_meanwhile_does_not_stay_registered(call, broker, channel):
    channel.closed = True
    call(heartbeat(producers=["p"]))
    assert broker.consumers.get("g") is None
    assert broker.producers.clients("p") is None


def test_unregistered_client_leaves_both_groups(call, broker):
    call(heartbeat(producers=["p"]))
    ext_fields = {"clientID": "c1", "producerGroup": "p", "consumerGroup": "g"}
    reply = call(Command(RequestCode.UNREGISTER_CLIENT, ext_fields=ext_fields))
    assert (reply.code, reply.ext_fields) == (0, {})
    assert broker.producers.clients("p") is None
    assert call(list_of("g")).code == ResponseCode.SYSTEM_ERROR


def test_consumer_list_names_the_clients(call, new_channel):
    call(heartbeat())
    call(heartbeat(client_id="c2"), new_channel())
    assert bytes(call(list_of("g")).body) == b'{"consumerIdList":["c1","c2"]}'


def test_consumer_list_of_nobody_has_javas_remark(call):
    reply = call(list_of("nog"))
    assert (reply.code, reply.remark) == (1, "no consumer for this group, nog")


def test_consumer_connections_are_javas_json(call):
    call(heartbeat())
    command = Command(RequestCode.GET_CONSUMER_CONNECTION_LIST, ext_fields={"consumerGroup": "g"})
    assert bytes(call(command).body) == (
        b'{"connectionSet":[{"clientAddr":"127.0.0.1:50000","clientId":"c1","language":"JAVA",'
        b'"version":499}],"consumeFromWhere":"CONSUME_FROM_FIRST_OFFSET",'
        b'"consumeType":"CONSUME_PASSIVELY","messageModel":"CLUSTERING","subscriptionTable":'
        b'{"T":{"classFilterMode":false,"codeSet":[],"expressionType":"TAG","subString":"*",'
        b'"subVersion":1,"tagsSet":[],"topic":"T"}}}'
    )
    command.ext_fields = {"consumerGroup": "nog"}
    reply = call(command)
    assert (reply.code, reply.remark) == (206, "the consumer group[nog] not online")


def test_producer_connections_are_javas_json(call):
    call(heartbeat(group=None, producers=["p"]))
    command = Command(RequestCode.GET_PRODUCER_CONNECTION_LIST, ext_fields={"producerGroup": "p"})
    assert bytes(call(command).body) == (
        b'{"connectionSet":[{"clientAddr":"127.0.0.1:50000","clientId":"c1","language":"JAVA",'
        b'"version":499}]}'
    )
    command.ext_fields = {"producerGroup": "nog"}
    reply = call(command)
    assert (reply.code, reply.remark) == (1, "the producer group[nog] not exist")


def check(expression_type):
    subscription = {"topic": "T", "subString": "a > 1", "expressionType": expression_type}
    body = json.dumps({"clientId": "c", "group": "g", "subscriptionData": subscription})
    return Command(RequestCode.CHECK_CLIENT_CONFIG, body=body.encode())


def test_tag_subscriptions_pass_the_client_check(call):
    assert call(check("TAG")).code == 0
    assert call(check(None)).code == 0
    assert call(Command(RequestCode.CHECK_CLIENT_CONFIG)).code == 0


def test_sql92_is_refused_in_javas_words(call):
    reply = call(check("SQL92"))
    assert (reply.code, reply.remark) == (
        1,
        "The broker does not support consumer to filter message by SQL92",
    )
