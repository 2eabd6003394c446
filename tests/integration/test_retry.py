"""Messages that consumers could not consume: retry topics, dead letters and all refusals.

Replies and stored properties were compared with a RocketMQ 5.5.0 broker given the same requests.
"""

import signal
from dataclasses import replace
from types import SimpleNamespace

import pytest
import trio

from integration.server_process import ServerProcess
from integration.wire import Wire, pull, send, send_fields
from pyritemq.compat.message_id import make_message_id
from pyritemq.compat.versions import version_ordinal
from pyritemq.protocol.codes import RequestCode, ResponseCode
from pyritemq.protocol.record import decode_properties, decode_records
from pyritemq.server.broker.processors.retries import group_of_retry_topic, reconsume_times_max
from pyritemq.server.broker.state.groups import SubscriptionGroupConfig
from pyritemq.server.broker.state.queue_locks import MessageQueue

SHORT_LEVELS = "0s 0s 0s 0s 0s 1h"
SCHEDULE = "SCHEDULE_TOPIC_XXXX"


@pytest.fixture
async def server(start_server, stop_server):
    server = await start_server(messageDelayLevel=SHORT_LEVELS)
    yield server
    await stop_server(server)


@pytest.fixture
async def wire(server):
    return await server.connect()


async def read(wire, topic, offset=0, queue_id=0):
    """The record at an offset, waited for."""
    reply = await pull(wire, topic, queue_id, offset, wait_ms=10_000)
    assert reply.code == ResponseCode.SUCCESS, reply.remark
    return decode_records(bytes(reply.body))[0]


async def count(wire, topic, queue_id=0):
    reply = await wire.call(RequestCode.GET_MAX_OFFSET, {"topic": topic, "queueId": queue_id})
    return int(reply.ext_fields["offset"])


async def first_message(wire, **options):
    await send(wire, "Topic", b"body", **options)
    return await read(wire, "Topic")


async def send_back(wire, record, *, group="g", level=0, times_max=16, **more):
    fields = {
        "offset": record.phy_offset,
        "group": group,
        "delayLevel": level,
        "originMsgId": "id",
        "originTopic": "Topic",
        "unitMode": "false",
        "maxReconsumeTimes": times_max,
        **more,
    }
    given = {name: value for name, value in fields.items() if value is not None}
    return await wire.call(RequestCode.CONSUMER_SEND_MSG_BACK, given)


@pytest.mark.slow
async def test_what_was_taken_back_survives_kill_9(tmp_path):
    """Acknowledged before the kill, due after it: nothing is lost, and nothing comes twice."""
    properties = {"messageDelayLevel": "1s 1s 3s"}
    bodies = [b"m%d" % index for index in range(32)]
    with ServerProcess(tmp_path, properties) as server:
        async with (await Wire.connect(server.address)).stream as stream:
            wire = Wire(stream)
            for body in bodies:
                await send(wire, "Topic", body)
            for record in decode_records(bytes((await pull(wire, "Topic")).body)):
                assert (await send_back(wire, record)).code == ResponseCode.SUCCESS
            server.end(signal.SIGKILL)
    with ServerProcess(tmp_path, properties) as server:
        async with (await Wire.connect(server.address)).stream as stream:
            wire, found = Wire(stream), []
            with trio.fail_after(30):
                while len(found) < len(bodies):
                    reply = await pull(wire, "%RETRY%g", 0, len(found), wait_ms=10_000)
                    found += [record.body for record in decode_records(bytes(reply.body))]
        assert server.end(signal.SIGTERM) == 0
    assert found == bodies


def alter_group(server, **changes):
    groups = server.broker.broker.groups
    groups.update(replace(SubscriptionGroupConfig(group_name="g"), **changes))


async def test_a_message_sent_back_comes_again_in_the_retry_topic(wire):
    record = await first_message(wire, properties="TAGS\x01A\x02KEYS\x01k\x02")
    reply = await send_back(wire, record)
    assert (reply.code, reply.remark, reply.ext_fields) == (ResponseCode.SUCCESS, None, {})
    again = await read(wire, "%RETRY%g")
    assert (again.body, again.reconsume_times) == (b"body", 1)
    assert (again.born_timestamp, again.born_host) == (record.born_timestamp, record.born_host)
    properties = decode_properties(again.properties)
    assert properties.pop("UNIQ_KEY") == decode_properties(record.properties)["UNIQ_KEY"]
    assert properties == {
        "TAGS": "A",
        "KEYS": "k",
        "MSG_REGION": "DefaultRegion",
        "TRACE_ON": "true",
        "CLUSTER": "DefaultCluster",
        "RETRY_TOPIC": "Topic",
        "WAIT": "false",
        "DELAY": "3",
        "ORIGIN_MESSAGE_ID": make_message_id(record.store_host, record.phy_offset),
        "REAL_TOPIC": "%RETRY%g",
        "REAL_QID": "0",
    }


async def test_tags_still_select_messages_in_the_retry_topic(wire):
    record = await first_message(wire, properties="TAGS\x01A\x02")
    await send_back(wire, record)
    await read(wire, "%RETRY%g")
    assert (await pull(wire, "%RETRY%g", tags="A")).code == ResponseCode.SUCCESS
    assert (await pull(wire, "%RETRY%g", tags="B")).code == ResponseCode.PULL_RETRY_IMMEDIATELY


async def test_each_attempt_waits_a_level_longer_and_keeps_the_origin(wire):
    first = record = await first_message(wire)
    for attempt, level in enumerate((3, 4, 5, 6)):
        assert (await send_back(wire, record)).code == ResponseCode.SUCCESS
        assert await count(wire, SCHEDULE, level - 1) == 1, f"attempt {attempt}"
        if level < 6:
            record = await read(wire, "%RETRY%g", attempt)
            assert record.reconsume_times == attempt + 1
            properties = decode_properties(record.properties)
            assert properties["RETRY_TOPIC"] == "Topic"
            origin = make_message_id(first.store_host, first.phy_offset)
            assert properties["ORIGIN_MESSAGE_ID"] == origin


async def test_the_consumer_may_choose_the_level(wire):
    record = await first_message(wire)
    await send_back(wire, record, level=6)
    assert await count(wire, SCHEDULE, 5) == 1


async def test_a_message_that_was_tried_often_enough_is_buried(wire):
    record = await first_message(wire)
    for attempt in range(2):
        await send_back(wire, record, times_max=2)
        record = await read(wire, "%RETRY%g", attempt)
    assert (await send_back(wire, record, times_max=2)).code == ResponseCode.SUCCESS
    dead = await read(wire, "%DLQ%g")
    assert (dead.body, dead.reconsume_times) == (b"body", 3)
    properties = decode_properties(dead.properties)
    assert (properties["DELAY"], properties["RETRY_TOPIC"]) == ("0", "Topic")
    assert await count(wire, "%RETRY%g") == 2


async def test_dead_letters_are_read_as_the_permission_of_their_topic_allows(wire):
    """As mqadmin updateTopicPerm sets it; older brokers made these topics write-only."""
    await send_back(wire, await first_message(wire), level=-1)
    await read(wire, "%DLQ%g")
    for perm, code in ((2, ResponseCode.NO_PERMISSION), (6, ResponseCode.SUCCESS)):
        fields = {"topic": "%DLQ%g", "defaultTopic": "TBW102", "perm": perm, "order": "false"}
        fields |= {"readQueueNums": 1, "writeQueueNums": 1, "topicFilterType": "SINGLE_TAG"}
        assert (await wire.call(RequestCode.UPDATE_AND_CREATE_TOPIC, fields)).code == 0
        assert (await pull(wire, "%DLQ%g")).code == code


async def test_what_comes_back_is_counted_by_its_first_topic(server, wire):
    record = await first_message(wire)
    await send_back(wire, record)
    await send_back(wire, await read(wire, "%RETRY%g"))
    tally = server.broker.broker.stats._find("SNDBCK_PUT_NUMS", "Topic@g")
    assert tally.nums == 2


async def test_a_negative_level_buries_at_once(wire):
    record = await first_message(wire)
    await send_back(wire, record, level=-1)
    assert (await read(wire, "%DLQ%g")).reconsume_times == 1


async def test_the_group_says_how_often_if_the_client_does_not(server, wire):
    alter_group(server, retry_max_times=0)
    record = await first_message(wire)
    await send_back(wire, record, times_max=None)
    assert await count(wire, "%DLQ%g") == 1


def test_clients_before_3_4_9_have_no_say_in_how_often():
    group = SubscriptionGroupConfig(group_name="g", retry_max_times=5)
    for version, expected in (("V3_4_8", 5), ("V3_4_9", 7)):
        request = SimpleNamespace(command=SimpleNamespace(version=version_ordinal(version)))
        assert reconsume_times_max(request, group, 7) == expected
        assert reconsume_times_max(request, group, None) == 5


async def test_retry_and_dead_letter_topics_have_the_queues_that_java_gives_them(server, wire):
    alter_group(server, retry_queue_nums=3)
    record = await first_message(wire)
    await send_back(wire, record, unitMode="true")
    await send_back(wire, record, level=-1)
    topics = server.broker.broker.topics
    retry, dlq = topics.get("%RETRY%g"), topics.get("%DLQ%g")
    assert (retry.read_queue_nums, retry.write_queue_nums, retry.perm) == (3, 3, 6)
    assert (dlq.read_queue_nums, dlq.write_queue_nums, dlq.perm) == (1, 1, 6)
    assert (retry.topic_sys_flag, dlq.topic_sys_flag) == (2, 0)


async def test_messages_spread_over_the_retry_queues(server, wire):
    alter_group(server, retry_queue_nums=2)
    record = await first_message(wire)
    for _ in range(40):
        await send_back(wire, record, level=6)
    waiting = decode_records(bytes((await pull(wire, SCHEDULE, 5)).body))
    queues = {decode_properties(each.properties)["REAL_QID"] for each in waiting}
    assert queues == {"0", "1"}


async def test_a_group_without_retry_queues_forgets_what_comes_back(server, wire):
    alter_group(server, retry_queue_nums=0)
    record = await first_message(wire)
    reply = await send_back(wire, record, level=-1)
    assert (reply.code, reply.remark) == (ResponseCode.SUCCESS, None)
    assert "%DLQ%g" not in server.broker.broker.topics
    assert "%RETRY%g" not in server.broker.broker.topics


async def test_an_unknown_group_is_refused(start_server, stop_server):
    server = await start_server(autoCreateSubscriptionGroup="false")
    wire = await server.connect()
    reply = await send_back(wire, SimpleNamespace(phy_offset=0), group="nobody")
    assert reply.code == ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST
    assert reply.remark.startswith("subscription group not exist, nobody \nSee https://")
    reply = await send(wire, "%RETRY%nobody", b"x")
    assert reply.code == ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST
    await stop_server(server)


async def test_a_read_only_broker_takes_nothing_back(server, wire):
    record = await first_message(wire)
    server.broker.config.broker_permission = 4
    reply = await send_back(wire, record)
    assert reply.code == ResponseCode.NO_PERMISSION
    assert reply.remark == "the broker[127.0.0.1] sending message is forbidden"


async def test_a_retry_topic_that_is_not_writable_takes_nothing_back(server, wire):
    record = await first_message(wire)
    topics = server.broker.broker.topics
    topics.create_on_send_back("%RETRY%g", queue_nums=1, perm=4)
    reply = await send_back(wire, record)
    assert reply.code == ResponseCode.NO_PERMISSION
    assert reply.remark == "the topic[%RETRY%g] sending message is forbidden"


@pytest.mark.parametrize("offset", [1, -5, 10**12, 2**63 - 1])
async def test_an_offset_where_no_message_starts_is_refused(wire, offset):
    await first_message(wire)
    reply = await send_back(wire, SimpleNamespace(phy_offset=offset))
    assert reply.code == ResponseCode.SYSTEM_ERROR
    assert reply.remark == f"look message by offset failed, {offset}"


@pytest.mark.parametrize("field", ["offset", "group", "delayLevel"])
async def test_a_missing_field_is_a_system_error(wire, field):
    record = await first_message(wire)
    reply = await send_back(wire, record, **{field: None})
    assert (reply.code, reply.remark) == (1, f"the custom field <{field}> is null")


async def test_a_store_that_takes_nothing_says_so(server, wire, monkeypatch):
    record = await first_message(wire)
    monkeypatch.setattr(server.broker.broker.store, "_failure", Exception("disk"))
    reply = await send_back(wire, record)
    assert (reply.code, reply.remark) == (ResponseCode.SYSTEM_ERROR, "SERVICE_NOT_AVAILABLE")
    monkeypatch.undo()


async def resend(wire, body, *, times, times_max=None, level=1):
    """What a consumer does when it cannot send a message back: it sends it again itself."""
    fields = send_fields("%RETRY%g", properties=f"DELAY\x01{level}\x02RETRY_TOPIC\x01Topic\x02")
    fields["j"] = times
    if times_max is not None:
        fields["l"] = times_max
    return await wire.call(RequestCode.SEND_MESSAGE_V2, fields, body)


async def test_a_message_that_the_consumer_sends_again_is_delayed_for_the_retry_topic(wire):
    assert (await resend(wire, b"again", times=3)).code == ResponseCode.SUCCESS
    record = await read(wire, "%RETRY%g")
    assert (record.body, record.reconsume_times) == (b"again", 3)
    assert decode_properties(record.properties)["RETRY_TOPIC"] == "Topic"


@pytest.mark.parametrize(("times", "times_max"), [(17, None), (4, 3)])
async def test_it_is_buried_when_it_was_tried_more_often_than_allowed(wire, times, times_max):
    reply = await resend(wire, b"dead", times=times, times_max=times_max)
    assert reply.ext_fields["queueId"] == "0"
    dead = await read(wire, "%DLQ%g")
    assert dead.reconsume_times == times
    assert decode_properties(dead.properties)["DELAY"] == "-1"
    assert await count(wire, SCHEDULE, 0) == 0


async def test_the_last_attempt_that_is_allowed_is_not_buried(wire):
    await resend(wire, b"x", times=3, times_max=3)
    assert (await read(wire, "%RETRY%g")).reconsume_times == 3


async def test_a_group_that_consumes_in_order_buries_what_it_sends(server, wire):
    """It tries again itself, and sends a message only when it has given up."""
    queue = MessageQueue("Topic", "broker-a", 0)
    server.broker.broker.queue_locks.lock_batch("g", [queue], "client")
    await resend(wire, b"x", times=0)
    assert (await read(wire, "%DLQ%g")).body == b"x"


@pytest.mark.parametrize(
    ("topic", "group"),
    [
        ("%RETRY%g", "g"),
        ("%RETRY%g_Topic", "g_Topic"),
        ("%RETRY%g+Topic", "g"),
        ("%RETRY%g+", "g+"),
        ("%RETRY%g+a+b", "g+a+b"),
    ],
)
def test_the_group_of_a_retry_topic(topic, group):
    assert group_of_retry_topic(topic) == group
