"""Who reads what and how far; moving groups; asking clients: AdminBrokerProcessor's answers."""

from __future__ import annotations

import json

import pytest

from pyritemq.compat import fastjson
from pyritemq.compat.versions import CURRENT_VERSION
from pyritemq.protocol.codes import LanguageCode, RequestCode, ResponseCode
from pyritemq.protocol.command import Command
from pyritemq.server.broker.state.topics import TopicConfig
from pyritemq.server.connection import PeerGone

TOPIC, GROUP = "T", "g"
LONG_MAX = 0x7FFFFFFFFFFFFFFF


def ask(code: RequestCode, body: bytes = b"", **fields: object) -> Command:
    ext_fields = {name: str(value) for name, value in fields.items()}
    return Command(code, ext_fields=ext_fields, body=body)


def answer(reply: Command) -> object:
    assert reply.code == ResponseCode.SUCCESS, reply.remark
    return fastjson.loads(reply.body)


def by_queue(table: dict) -> dict[tuple[str, str, int], object]:
    return {(key["topic"], key["brokerName"], key["queueId"]): v for key, v in table.items()}


def heartbeat(*, topics=(TOPIC,), group=GROUP, producers=(), version=CURRENT_VERSION) -> Command:
    consumer = {
        "groupName": group,
        "consumeType": "CONSUME_PASSIVELY",
        "messageModel": "CLUSTERING",
        "consumeFromWhere": "CONSUME_FROM_LAST_OFFSET",
        "subscriptionDataSet": [{"topic": t, "subString": "*", "subVersion": 1} for t in topics],
    }
    body = {
        "clientID": "c1",
        "consumerDataSet": [consumer] if group else [],
        "producerDataSet": [{"groupName": name} for name in producers],
    }
    return Command(RequestCode.HEART_BEAT, version=version, body=json.dumps(body).encode())


@pytest.fixture
def topic(broker):
    """Two queues: three messages stored at 100, 200, 300, and one at 500."""
    broker.topics.update(TopicConfig(TOPIC, read_queue_nums=2, write_queue_nums=2))
    broker.store.queues = {(TOPIC, 0): [100, 200, 300], (TOPIC, 1): [500]}
    broker.groups.find(GROUP)
    return TOPIC


class Answering:
    """A client's connection that answers calls as the test says."""

    def __init__(self, react):
        self.remote_address = "192.0.2.9:1"
        self.closed = False
        self.react = react
        self.asked = []
        self.posted = []

    def post(self, *commands):
        self.posted.extend(commands)

    def call(self, command, *, timeout_s):
        self.asked.append(command)
        return self.react(command)


# -- consume stats ---------------------------------------------------------------------------------


def consume_stats(**fields: object) -> Command:
    return ask(RequestCode.GET_CONSUME_STATS, consumerGroup=GROUP, **fields)


def test_consume_stats_show_how_far_a_group_is_in_each_queue(call, broker, topic):
    broker.offsets.commit(GROUP, TOPIC, 0, 2)
    broker.offsets.commit_pull(GROUP, TOPIC, 0, 3)
    stats = answer(call(consume_stats()))
    assert stats["consumeTps"] == 0.0
    assert by_queue(stats["offsetTable"]) == {
        (TOPIC, "broker-a", 0): {
            "brokerOffset": 3,
            "consumerOffset": 2,
            "lastTimestamp": 200,
            "pullOffset": 3,
        },
        (TOPIC, "broker-a", 1): {
            "brokerOffset": 1,
            "consumerOffset": 0,
            "lastTimestamp": 0,
            "pullOffset": 0,
        },
    }


def test_consume_stats_leave_out_topics_that_an_online_group_does_not_subscribe_to(
    call, broker, topic
):
    broker.offsets.commit(GROUP, TOPIC, 0, 2)
    call(heartbeat(topics=("Other",)))
    assert answer(call(consume_stats()))["offsetTable"] == {}
    assert answer(call(consume_stats(topic=TOPIC)))["offsetTable"] == {}
    assert len(answer(call(consume_stats(topicList=f"{TOPIC};Gone")))["offsetTable"]) == 2


def test_broker_consume_stats_sum_up_all_groups(call, broker, topic):
    broker.offsets.commit(GROUP, TOPIC, 0, 1)
    stats = answer(call(ask(RequestCode.GET_BROKER_CONSUME_STATS, isOrder="false")))
    assert (stats["totalDiff"], stats["brokerAddr"]) == (3, "192.0.2.1:10911")
    of_group = [entry[GROUP] for entry in stats["consumeStatsList"] if GROUP in entry]
    assert [len(topic_stats["offsetTable"]) for topic_stats in of_group[0]] == [2]
    ordered = answer(call(ask(RequestCode.GET_BROKER_CONSUME_STATS, isOrder="true")))
    assert ordered["totalDiff"] == 0


def test_time_span_of_each_queue(call, broker, clock, topic):
    broker.offsets.commit(GROUP, TOPIC, 0, 2)
    spans = answer(call(ask(RequestCode.QUERY_CONSUME_TIME_SPAN, topic=TOPIC, group=GROUP)))
    first = spans["consumeTimeSpanSet"][0]
    assert (first["minTimeStamp"], first["maxTimeStamp"]) == (100, 300)
    assert (first["consumeTimeStamp"], first["delayTime"]) == (200, clock.ms - 300)
    missing = call(ask(RequestCode.QUERY_CONSUME_TIME_SPAN, topic="Gone", group=GROUP))
    assert (missing.code, missing.remark) == (
        ResponseCode.TOPIC_NOT_EXIST,
        "topic[Gone] not exist",
    )


# -- who reads what --------------------------------------------------------------------------------


def test_groups_of_a_topic_are_those_online_and_those_with_offsets(call, broker, topic):
    call(heartbeat(group="online"))
    broker.offsets.commit("gone", TOPIC, 0, 1)
    found = answer(call(ask(RequestCode.QUERY_TOPIC_CONSUME_BY_WHO, topic=TOPIC)))
    assert found == {"groupList": ["gone", "online"]}


def test_topics_of_a_group(call, broker):
    broker.offsets.commit(GROUP, "B", 0, 1)
    broker.offsets.commit(GROUP, "A", 0, 1)
    found = answer(call(ask(RequestCode.QUERY_TOPICS_BY_CONSUMER, group=GROUP)))
    assert found == {"brokerAddr": "192.0.2.1:10911", "topicList": ["A", "B"]}


def test_subscription_of_a_group(call):
    call(heartbeat())
    found = answer(call(ask(RequestCode.QUERY_SUBSCRIPTION_BY_CONSUMER, group=GROUP, topic=TOPIC)))
    assert found["subscriptionData"]["subString"] == "*"
    none = answer(call(ask(RequestCode.QUERY_SUBSCRIPTION_BY_CONSUMER, group="x", topic=TOPIC)))
    assert none == {"group": "x", "topic": TOPIC}


def test_producers_are_listed_by_group_with_when_they_were_last_seen(call, clock, channel):
    call(heartbeat(group=None, producers=("P",)))
    seen = clock.ms
    clock.advance(5)
    found = answer(call(ask(RequestCode.GET_ALL_PRODUCER_INFO)))
    [producer] = found["data"]["P"]
    assert (producer["clientId"], producer["remoteIP"]) == ("c1", channel.remote_address)
    assert producer["lastUpdateTimestamp"] == seen


# -- moving groups ---------------------------------------------------------------------------------


def reset(**fields: object) -> Command:
    given = {"topic": TOPIC, "group": GROUP, "timestamp": 0, "isForce": "true", **fields}
    return ask(RequestCode.INVOKE_BROKER_TO_RESET_OFFSET, **given)


@pytest.mark.parametrize(
    ("timestamp", "expected"), [(0, [0, 0]), (250, [2, 0]), (400, [3, 0]), (-1, [3, 1])]
)
def test_reset_by_time_moves_all_queues(call, broker, topic, timestamp, expected):
    table = by_queue(answer(call(reset(timestamp=timestamp)))["offsetTable"])
    assert [table[TOPIC, "broker-a", queue_id] for queue_id in (0, 1)] == expected
    assert [broker.offsets.query(GROUP, TOPIC, queue_id) for queue_id in (0, 1)] == expected
    assert broker.offsets.take_reset(GROUP, TOPIC, 0) == expected[0]


def test_reset_of_one_queue_to_an_offset(call, broker, topic):
    table = by_queue(answer(call(reset(queueId=0, offset=2)))["offsetTable"])
    assert table == {(TOPIC, "broker-a", 0): 2}
    assert not broker.offsets.has_reset(GROUP, TOPIC, 1)


def test_reset_outside_the_queue_is_refused(call, broker, topic):
    reply = call(reset(queueId=0, offset=9))
    assert (reply.code, reply.remark) == (
        ResponseCode.SYSTEM_ERROR,
        "Target offset 9 not in consume queue range [0-3]",
    )
    assert not broker.offsets.has_reset(GROUP, TOPIC, 0)


def test_reset_needs_topic_and_group(call, topic):
    reply = call(reset(topic="Gone"))
    assert (reply.code, reply.remark) == (
        ResponseCode.TOPIC_NOT_EXIST,
        "Topic Gone does not exist",
    )
    reply = call(reset(group="nobody"))
    assert (reply.code, reply.remark) == (
        ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST,
        "Group nobody does not exist",
    )


@pytest.fixture
def through_clients(broker, topic):
    broker.config.use_server_side_reset_offset = False
    for queue_id in (0, 1):
        broker.offsets.commit(GROUP, TOPIC, queue_id, 1)


def test_reset_through_clients_pushes_the_offsets(call, channel, through_clients):
    call(heartbeat())
    channel.posted.clear()
    table = by_queue(answer(call(reset(timestamp=250)))["offsetTable"])
    [pushed] = channel.posted
    assert (pushed.code, pushed.is_oneway) == (RequestCode.RESET_CONSUMER_CLIENT_OFFSET, True)
    assert by_queue(fastjson.loads(pushed.body)["offsetTable"]) == table
    assert table == {(TOPIC, "broker-a", 0): 2, (TOPIC, "broker-a", 1): 0}
    assert pushed.ext_fields["group"] == GROUP


def test_reset_through_clients_without_force_only_goes_back(call, through_clients):
    call(heartbeat())
    table = by_queue(answer(call(reset(timestamp=250, isForce="false")))["offsetTable"])
    assert table[TOPIC, "broker-a", 0] == 1


def test_cpp_tools_get_the_offsets_as_a_list(call, channel, through_clients):
    call(heartbeat())
    channel.posted.clear()
    command = reset(timestamp=-1)
    command.language = LanguageCode.CPP
    call(command)
    rows = fastjson.loads(channel.posted[0].body)["offsetTable"]
    assert [row["offset"] for row in rows] == [3, 1]


def test_reset_through_clients_needs_one_online_and_young_enough(call, channel, through_clients):
    reply = call(reset())
    assert reply.code == ResponseCode.CONSUMER_NOT_ONLINE
    assert reply.remark.startswith("Consumer not online, so can not reset offset, Group: g")
    call(heartbeat(version=1))
    reply = call(reset())
    assert reply.remark == "the client does not support this feature. version=V3_0_0_ALPHA1"


def test_clone_copies_offsets_of_one_topic_or_of_all(call, broker, topic):
    broker.topics.update(TopicConfig("U"))
    broker.offsets.commit(GROUP, TOPIC, 0, 2)
    broker.offsets.commit(GROUP, "U", 0, 5)
    call(ask(RequestCode.CLONE_GROUP_OFFSET, srcGroup=GROUP, destGroup="h", topic=TOPIC))
    assert [broker.offsets.query("h", name, 0) for name in (TOPIC, "U")] == [2, -1]
    call(ask(RequestCode.CLONE_GROUP_OFFSET, srcGroup=GROUP, destGroup="i"))
    assert [broker.offsets.query("i", name, 0) for name in (TOPIC, "U")] == [2, 5]


def test_clone_of_an_online_group_keeps_to_its_subscriptions(call, broker, topic):
    broker.offsets.commit(GROUP, TOPIC, 0, 2)
    call(heartbeat(topics=("Other",)))
    request = {"srcGroup": GROUP, "destGroup": "h", "topic": TOPIC}
    call(ask(RequestCode.CLONE_GROUP_OFFSET, **request))
    assert broker.offsets.query("h", TOPIC, 0) == -1
    call(ask(RequestCode.CLONE_GROUP_OFFSET, offline="true", **request))
    assert broker.offsets.query("h", TOPIC, 0) == 2


def test_correction_offsets_are_the_least_of_the_other_groups(call, broker, topic):
    broker.offsets.commit("a", TOPIC, 0, 3)
    broker.offsets.commit("b", TOPIC, 0, 2)
    broker.offsets.commit("left-out", TOPIC, 0, 0)
    fields = {"topic": TOPIC, "compareGroup": "none", "filterGroups": "left-out"}
    found = answer(call(ask(RequestCode.QUERY_CORRECTION_OFFSET, **fields)))
    assert found == {"correctionOffsets": {0: 2}}
    assert broker.offsets.query("left-out", TOPIC, 0) == 0
    fields["compareGroup"] = "left-out"
    found = answer(call(ask(RequestCode.QUERY_CORRECTION_OFFSET, **fields)))
    assert found == {"correctionOffsets": {0: LONG_MAX}}


def test_all_offsets_come_as_the_file_has_them(call, broker):
    broker.offsets.commit(GROUP, TOPIC, 0, 2)
    found = answer(call(ask(RequestCode.GET_ALL_CONSUMER_OFFSET)))
    assert found["offsetTable"] == {"T@g": {0: 2}}


# -- asked of the client ---------------------------------------------------------------------------


def running_info(client_id: str = "c1") -> Command:
    return ask(
        RequestCode.GET_CONSUMER_RUNNING_INFO,
        consumerGroup=GROUP,
        clientId=client_id,
        jstackEnable="true",
    )


def test_running_info_is_the_clients_own_answer(call):
    client = Answering(lambda asked: Command(0, remark="ok", flag=1, body=b'{"properties":{}}'))
    call(heartbeat(), client)
    reply = call(running_info())
    assert (reply.code, reply.remark, bytes(reply.body)) == (0, "ok", b'{"properties":{}}')
    [asked] = client.asked
    assert asked.code == RequestCode.GET_CONSUMER_RUNNING_INFO
    assert asked.ext_fields["jstackEnable"] == "true"


def test_running_info_of_a_client_that_is_not_there(call):
    reply = call(running_info("c9"))
    assert (reply.code, reply.remark) == (
        ResponseCode.SYSTEM_ERROR,
        "The Consumer <g> <c9> not online",
    )


def test_running_info_of_a_client_that_is_too_old(call):
    call(heartbeat(version=1), Answering(None))
    assert "too low to finish, please upgrade it to V3_1_8_SNAPSHOT" in call(running_info()).remark


def raising(error: Exception):
    def react(_: Command) -> Command:
        raise error

    return Answering(react)


def test_running_info_says_when_the_client_does_not_answer(call):
    call(heartbeat(), raising(TimeoutError()))
    reply = call(running_info())
    assert reply.code == ResponseCode.CONSUME_MSG_TIMEOUT
    assert reply.remark.startswith("consumer <g> <c1> Timeout: RemotingTimeoutException")


def test_running_info_says_when_the_client_goes_away(call):
    call(heartbeat(), raising(PeerGone("192.0.2.9:1")))
    reply = call(running_info())
    assert reply.code == ResponseCode.SYSTEM_ERROR
    assert reply.remark.startswith("invoke consumer <g> <c1> Exception: ")


def consume_directly(message_id: str) -> Command:
    return ask(
        RequestCode.CONSUME_MESSAGE_DIRECTLY,
        consumerGroup=GROUP,
        clientId="c1",
        msgId=message_id,
        topic=TOPIC,
    )


def test_a_message_is_handed_to_a_consumer_with_its_record(call, broker, topic):
    broker.store.record_at = {64: memoryview(b"record")}.get
    client = Answering(lambda asked: Command(0, flag=1, body=b'{"consumeResult":"CR_SUCCESS"}'))
    call(heartbeat(), client)
    reply = call(consume_directly("7F000001" + "00002A9F" + "0000000000000040"))
    assert fastjson.loads(reply.body) == {"consumeResult": "CR_SUCCESS"}
    [asked] = client.asked
    assert bytes(asked.body) == b"record"
    assert asked.ext_fields["brokerName"] == "broker-a"
    assert (asked.ext_fields["topicSysFlag"], asked.ext_fields["groupSysFlag"]) == ("0", "0")


@pytest.mark.parametrize("message_id", ["", "xyz", "7F00000100002A9F0000000000000041"])
def test_a_message_that_is_not_there_is_not_handed_on(call, broker, message_id):
    broker.store.record_at = {}.get
    client = Answering(None)
    call(heartbeat(), client)
    assert call(consume_directly(message_id)).code == ResponseCode.SYSTEM_ERROR
    assert client.asked == []


def status(**fields: object) -> Command:
    given = {"topic": TOPIC, "group": GROUP, **fields}
    return ask(RequestCode.INVOKE_BROKER_TO_GET_CONSUMER_STATUS, **given)


def test_consumer_status_gathers_what_each_client_says(call):
    body = b'{"messageQueueTable":{{"brokerName":"broker-a","queueId":0,"topic":"T"}:7}}'
    call(heartbeat(), Answering(lambda asked: Command(0, flag=1, body=body)))
    table = answer(call(status()))["consumerTable"]
    assert by_queue(table["c1"]) == {(TOPIC, "broker-a", 0): 7}
    assert answer(call(status(clientAddr="c9")))["consumerTable"] == {}


@pytest.mark.parametrize(
    "client",
    [raising(TimeoutError()), Answering(lambda asked: Command(0, flag=1, body=b"not json"))],
    ids=["silent", "garbage"],
)
def test_consumer_status_leaves_out_clients_that_do_not_answer(call, client):
    call(heartbeat(), client)
    assert answer(call(status()))["consumerTable"] == {}


def test_consumer_status_needs_somebody_online(call):
    reply = call(status())
    assert reply.code == ResponseCode.SYSTEM_ERROR
    assert reply.remark == "No Any Consumer online in the consumer group: [g]"
