"""Topic and group administration, as the Java broker answers it."""

import json

import pytest

from pyritemq.compat import fastjson
from pyritemq.protocol.codes import RequestCode
from pyritemq.protocol.command import Command

NOT_CLEARED = "not set any response code"
ILLEGAL = "The specified topic: T 3, contains illegal characters, allowing only ^[%|a-zA-Z0-9_-]+$"


def create(topic="T", **more):
    fields = {
        "topic": topic,
        "defaultTopic": "TBW102",
        "readQueueNums": "2",
        "writeQueueNums": "3",
        "perm": "6",
        "topicFilterType": "SINGLE_TAG",
        "topicSysFlag": "0",
        "order": "false",
        **more,
    }
    return Command(RequestCode.UPDATE_AND_CREATE_TOPIC, ext_fields=fields)


def ask(code, **fields):
    return Command(code, ext_fields=fields)


def answer(reply):
    return reply.code, reply.remark


def body_of(reply):
    return fastjson.loads(reply.body)


def test_created_topic_is_registered_before_the_answer(call, broker):
    reply = call(create(attributes="+message.type=NORMAL"))
    assert answer(reply) == (0, NOT_CLEARED)
    topic = broker.topics.get("T")
    assert (topic.read_queue_nums, topic.write_queue_nums, topic.perm) == (2, 3, 6)
    assert topic.attributes == {"message.type": "NORMAL"}
    assert broker.registration.told == ["T"]
    assert broker.registration.settled_after == [1]


def test_same_again_changes_nothing(call, broker):
    call(create())
    version = broker.topics.snapshot.data_version
    assert answer(call(create())) == (0, NOT_CLEARED)
    assert broker.topics.snapshot.data_version == version
    assert broker.registration.told == ["T"]


@pytest.mark.parametrize(
    ("command", "code", "remark"),
    [
        (create("T 3"), 29, ILLEGAL),
        (create("TBW102"), 29, "The topic[TBW102] is conflict with system topic."),
        (create("rmq_sys_x"), 29, "The topic[rmq_sys_x] is conflict with system topic."),
        (
            create(attributes="message.type=NORMAL"),
            1,
            "add/alter attribute format is wrong: message.type",
        ),
        (create(attributes="nonsense"), 1, "delete attribute format is wrong: nonsense"),
        (create(attributes="+message.type=MIXED"), 29, "MIXED message type is not supported."),
        (create(attributes="+reserve.time=1"), 1, "Update topic reserveTime not supported"),
        (create(topicFilterType="XX"), 1, "topicFilterType = [XX] value invalid"),
    ],
)
def test_refusals_are_javas(call, broker, command, code, remark):
    assert answer(call(command)) == (code, remark)
    assert broker.registration.told == []


def test_system_topics_may_be_changed_where_the_check_is_off(call, broker):
    broker.config.validate_system_topic_when_update_topic = False
    assert call(create("TBW102", writeQueueNums="1")).code == 0
    assert broker.topics.get("TBW102").write_queue_nums == 1


def test_mixed_type_is_taken_where_allowed(call, broker):
    broker.config.enable_mixed_message_type = True
    assert call(create(attributes="+message.type=MIXED")).code == 0


def test_deleted_topic_takes_offsets_and_pop_retry_topics_along(call, broker):
    call(create())
    retry_topics = ("%RETRY%g_T", "%RETRY%g+T")
    for topic in retry_topics:
        broker.topics.create_on_send_back(topic, queue_nums=1)
    broker.offsets.commit("g", "T", 0, 5)
    broker.store.queues = {("T", 0): [1], ("%RETRY%g_T", 0): [1], ("Other", 0): [1]}
    reply = call(ask(RequestCode.DELETE_TOPIC_IN_BROKER, topic="T"))
    assert answer(reply) == (0, None)
    assert "T" not in broker.topics
    assert not any(topic in broker.topics for topic in retry_topics)
    assert broker.offsets.query("g", "T", 0) == -1
    assert broker.store.queues.keys() == {("Other", 0)}


@pytest.mark.parametrize(
    ("topic", "code", "remark"),
    [
        ("TBW102", 29, "The topic[TBW102] is conflict with system topic."),
        (" ", 29, "The specified topic is blank."),
        ("absent", 0, None),
    ],
)
def test_answers_to_other_deletions(call, topic, code, remark):
    reply = call(ask(RequestCode.DELETE_TOPIC_IN_BROKER, topic=topic))
    assert answer(reply) == (code, remark)


def test_topic_config_is_javas_json(call):
    call(create(attributes="+message.type=NORMAL"))
    reply = call(ask(RequestCode.GET_TOPIC_CONFIG, topic="T", lo="true"))
    assert bytes(reply.body) == (
        b'{"attributes":{"message.type":"NORMAL"},"order":false,"perm":6,"readQueueNums":2,'
        b'"topicFilterType":"SINGLE_TAG","topicName":"T","topicSysFlag":0,"writeQueueNums":3}'
    )
    reply = call(ask(RequestCode.GET_TOPIC_CONFIG, topic="nope"))
    assert answer(reply) == (17, "No topic in this broker. topic: nope")


def test_all_topics_come_at_once_for_old_tools(call, broker):
    reply = call(Command(RequestCode.GET_ALL_TOPIC_CONFIG))
    table = broker.topics.snapshot.table
    assert reply.ext_fields == {"totalTopicNum": str(len(table))}
    assert list(body_of(reply)) == [
        "dataVersion",
        "mappingDataVersion",
        "topicConfigTable",
        "topicQueueMappingDetailMap",
        "topicQueueMappingInfoMap",
    ]
    assert body_of(reply)["topicConfigTable"].keys() == table.keys()


def test_pages_of_topics_add_up_and_start_again_after_a_change(call, broker):
    names = sorted(broker.topics.snapshot.table)
    version = json.dumps(broker.topics.snapshot.data_version.to_json())

    def page(start, known=version):
        fields = {"topicSeq": str(start), "maxTopicNum": "5", "dataVersion": known}
        reply = call(ask(RequestCode.GET_ALL_TOPIC_CONFIG, **fields))
        return list(body_of(reply)["topicConfigTable"])

    assert page(0) == names[:5]
    assert page(5) == names[5:10]
    assert page(len(names)) == []
    assert page(5, known='{"counter":99}') == names[:5]
    assert page(5, known="") == names[:5]
    assert page(5, known="x") == names[:5]


def test_topic_stats_have_queues_as_keys(call, broker):
    call(create())
    broker.store.queues["T", 0] = [100, 200]
    broker.store.min_offsets["T", 0] = 1
    reply = call(ask(RequestCode.GET_TOPIC_STATS_INFO, topic="T"))
    empty = b'{"lastUpdateTimestamp":0,"maxOffset":0,"minOffset":0}'
    assert bytes(reply.body) == (
        b'{"offsetTable":{{"brokerName":"broker-a","queueId":0,"topic":"T"}:'
        b'{"lastUpdateTimestamp":200,"maxOffset":2,"minOffset":1},'
        b'{"brokerName":"broker-a","queueId":1,"topic":"T"}:' + empty + b","
        b'{"brokerName":"broker-a","queueId":2,"topic":"T"}:' + empty + b'},"topicPutTps":0.0}'
    )
    reply = call(ask(RequestCode.GET_TOPIC_STATS_INFO, topic="nope"))
    assert answer(reply) == (17, "topic[nope] not exist")


def put_group(body):
    return Command(RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, body=body)


def test_group_is_created_and_shown_in_javas_json(call):
    assert answer(call(put_group(b'{"groupName":"g2","retryQueueNums":3}'))) == (0, None)
    reply = call(ask(RequestCode.GET_SUBSCRIPTIONGROUP_CONFIG, group="g2"))
    assert bytes(reply.body) == (
        b'{"attributes":{},"brokerId":0,"consumeBroadcastEnable":true,"consumeEnable":true,'
        b'"consumeFromMinEnable":true,"consumeMessageOrderly":false,"consumeTimeoutMinute":15,'
        b'"groupName":"g2","groupRetryPolicy":{"type":"CUSTOMIZED"},"groupSysFlag":0,'
        b'"notifyConsumerIdsChangedEnable":true,"retryMaxTimes":16,"retryQueueNums":3,'
        b'"whichBrokerWhenConsumeSlowly":1}'
    )


def test_refused_groups(call, broker):
    reply = call(put_group(b'{"groupName":"g 2"}'))
    assert reply.code == 29
    assert reply.remark.startswith("The specified group: g 2, contains illegal characters")
    assert answer(call(put_group(b"{}"))) == (29, "The specified group is blank.")
    reply = call(put_group(b'{"groupName":"g3","attributes":{"zz":"1"}}'))
    assert answer(reply) == (
        1,
        "only add attribute is supported while creating topic. key: z",
    )
    assert call(put_group(b"[")).code == 1
    assert answer(call(put_group(b""))) == (0, None)
    assert "g3" not in broker.groups


def test_unknown_group_with_an_impossible_name(call):
    reply = call(ask(RequestCode.GET_SUBSCRIPTIONGROUP_CONFIG, group="bad group"))
    assert answer(reply) == (26, "No group in this broker")


def test_all_groups(call, broker):
    reply = call(Command(RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG))
    assert reply.ext_fields == {"totalGroupNum": "8"}
    assert list(body_of(reply)) == ["dataVersion", "forbiddenTable", "subscriptionGroupTable"]
    fields = {"groupSeq": "0", "maxGroupNum": "3", "dataVersion": ""}
    reply = call(ask(RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG, **fields))
    names = sorted(broker.groups.snapshot.table)
    assert list(body_of(reply)["subscriptionGroupTable"]) == names[:3]


def test_deleted_group_keeps_its_offsets_unless_asked(call, broker):
    call(create())
    for clean in ("false", "true"):
        broker.groups.find("g")
        broker.offsets.commit("g", "T", 0, 5)
        fields = {"groupName": "g", "cleanOffset": clean}
        assert answer(call(ask(RequestCode.DELETE_SUBSCRIPTIONGROUP, **fields))) == (0, None)
        assert "g" not in broker.groups
        assert (broker.offsets.query("g", "T", 0) == -1) == (clean == "true")
