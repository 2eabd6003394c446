"""Tags and SQL92 filters through a whole server: registration, pulls, long polls, restarts."""

import json

import pytest
import trio

from integration.wire import pull_fields, send
from pyritemq.compat.java_hash import java_string_hash
from pyritemq.protocol.codes import RequestCode, ResponseCode
from pyritemq.protocol.record import decode_records, encode_properties

TOPIC = "Topic"
SUSPEND, SUBSCRIPTION = 2, 4


@pytest.fixture
async def server(start_server, stop_server):
    server = await start_server(enablePropertyFilter="true")
    yield server
    with trio.CancelScope(shield=True):
        await stop_server(server)


@pytest.fixture
async def wire(server):
    return await server.connect()


def bodies(reply):
    return [bytes(record.body) for record in decode_records(bytes(reply.body))]


async def send_one(wire, body, **properties):
    reply = await send(wire, TOPIC, body, properties=encode_properties(properties).decode())
    assert reply.code == ResponseCode.SUCCESS


def subscription(expression, *, kind="SQL92", version=1, topic=TOPIC):
    tags = [] if kind == "SQL92" else [tag.strip() for tag in expression.split("||")]
    return {
        "topic": topic,
        "subString": expression,
        "tagsSet": tags,
        "codeSet": [java_string_hash(tag) for tag in tags],
        "subVersion": version,
        "expressionType": kind,
    }


async def heartbeat(wire, *subscriptions, group="consumers"):
    consumer = {
        "groupName": group,
        "consumeType": "CONSUME_PASSIVELY",
        "messageModel": "CLUSTERING",
        "consumeFromWhere": "CONSUME_FROM_FIRST_OFFSET",
        "subscriptionDataSet": list(subscriptions),
    }
    body = {"clientID": "client", "consumerDataSet": [consumer], "producerDataSet": []}
    reply = await wire.call(RequestCode.HEART_BEAT, body=json.dumps(body).encode())
    assert reply.code == ResponseCode.SUCCESS


def registered_pull(offset=0, *, version=1, wait_ms=0, count=32):
    """A pull that leaves its subscription to the heartbeat, as push consumers do."""
    fields = pull_fields(TOPIC, 0, offset, wait_ms=wait_ms, count=count)
    fields["sysFlag"] = SUSPEND if wait_ms else 0
    del fields["subscription"], fields["expressionType"]
    return fields | {"subVersion": version}


def own_pull(expression, offset=0, *, wait_ms=0):
    """A pull with its own expression, as pull consumers do."""
    fields = pull_fields(TOPIC, 0, offset, wait_ms=wait_ms, tags=expression)
    return fields | {"expressionType": "SQL92"}


async def pull(wire, fields):
    return await wire.call(RequestCode.PULL_MESSAGE, fields)


async def held(server, wire, fields):
    """Ask, and wait until the server holds the pull."""
    opaque = await wire.ask(RequestCode.PULL_MESSAGE, fields)
    await until(lambda: server.broker.broker.long_polling.held_count == 1)
    return opaque


async def until(condition):
    with trio.fail_after(10):
        while not condition():  # noqa: ASYNC110 - lanes have no event to wait for
            await trio.sleep(0.005)


async def check(wire, expression, kind="SQL92"):
    body = {"clientId": "client", "group": "g", "subscriptionData": subscription(expression)}
    body["subscriptionData"]["expressionType"] = kind
    return await wire.call(RequestCode.CHECK_CLIENT_CONFIG, body=json.dumps(body).encode())


async def test_only_matching_messages_are_pulled_and_the_offset_passes_the_others(wire):
    for number in range(10):
        await send_one(wire, b"%d" % number, a=str(number), TAGS="TagA")
    await heartbeat(wire, subscription("a BETWEEN 3 AND 5 AND TAGS IN ('TagA', 'TagB')"))
    reply = await pull(wire, registered_pull())
    assert (reply.code, bodies(reply)) == (ResponseCode.SUCCESS, [b"3", b"4", b"5"])
    assert reply.ext_fields["nextBeginOffset"] == "10"
    reply = await pull(wire, registered_pull(6))
    assert (reply.code, reply.remark) == (
        ResponseCode.PULL_RETRY_IMMEDIATELY,
        "NO_MATCHED_MESSAGE",
    )
    assert reply.ext_fields["nextBeginOffset"] == "10"


async def test_the_count_limit_counts_matching_messages_only(wire):
    for number in range(20):
        await send_one(wire, b"%d" % number, a=str(number % 4))
    await heartbeat(wire, subscription("a = 3"))
    reply = await pull(wire, registered_pull(count=2))
    assert bodies(reply) == [b"3", b"7"]
    assert reply.ext_fields["nextBeginOffset"] == "8"


async def test_a_message_whose_property_cannot_be_compared_is_passed_over(wire):
    await send_one(wire, b"text", a="six")
    await send_one(wire, b"number", a="6")
    await send_one(wire, b"none")
    assert bodies(await pull(wire, own_pull("a > 5"))) == [b"number"]


async def test_a_pull_of_its_own_expression_that_does_not_compile_gets_everything(wire):
    """Java's broker has an assert there, which nobody switches on."""
    await send_one(wire, b"one")
    assert bodies(await pull(wire, own_pull("a >"))) == [b"one"]


async def test_filter_data_codes(wire):
    await send_one(wire, b"one", a="1")
    await heartbeat(wire, subscription("a >"))
    reply = await pull(wire, registered_pull())
    assert reply.code == ResponseCode.FILTER_DATA_NOT_EXIST
    assert reply.remark == (
        "The broker's consumer filter data is not exist!Your expression may be wrong!"
    )
    await heartbeat(wire, subscription("a = 1", version=2))
    assert bodies(await pull(wire, registered_pull(version=2))) == [b"one"]
    reply = await pull(wire, registered_pull(version=3))
    assert reply.code == ResponseCode.SUBSCRIPTION_NOT_LATEST


async def test_a_filter_that_has_not_followed_its_subscription_is_not_latest(
    server, wire, monkeypatch
):
    """Between the two steps of a heartbeat the subscription is new and its filter is not."""
    await send_one(wire, b"one", a="1")
    await heartbeat(wire, subscription("a = 1", version=1))
    monkeypatch.setattr(server.broker.broker.filters, "register", lambda *_: None)
    await heartbeat(wire, subscription("a = 1", version=2))
    reply = await pull(wire, registered_pull(version=2))
    assert (reply.code, reply.remark) == (
        ResponseCode.FILTER_DATA_NOT_LATEST,
        "the consumer's consumer filter data not latest",
    )
    assert bodies(await pull(wire, registered_pull(version=1))) == [b"one"]


async def test_without_the_setting_sql_is_refused(start_server, stop_server, tmp_path):
    server = await start_server(store=tmp_path / "plain")
    wire = await server.connect()
    await send_one(wire, b"one", a="1")
    remark = "The broker does not support consumer to filter message by SQL92"
    await heartbeat(wire, subscription("a = 1"))
    for reply in (
        await check(wire, "a = 1"),
        await pull(wire, own_pull("a = 1")),
        await pull(wire, registered_pull()),
    ):
        assert (reply.code, reply.remark) == (ResponseCode.SYSTEM_ERROR, remark)
    await stop_server(server)


async def test_a_client_hears_of_its_mistake_in_javas_words(wire):
    assert (await check(wire, "a > 5")).code == ResponseCode.SUCCESS
    assert (await check(wire, "*", kind="TAG")).code == ResponseCode.SUCCESS
    reply = await check(wire, "a > 'x'")
    assert reply.code == ResponseCode.SUBSCRIPTION_PARSE_FAILED
    assert reply.remark == "java.lang.RuntimeException: Value ''x'' cannot be compared."
    reply = await check(wire, "a IS b")
    assert reply.remark.startswith(
        "org.apache.rocketmq.filter.parser.ParseException: "
        'Encountered " <ID> "b "" at line 1, column 6.\nWas expecting one of:\n    "NOT" ...\n'
    )
    assert (await check(wire, "a = 1", kind="GROOVY")).code == (
        ResponseCode.SUBSCRIPTION_PARSE_FAILED
    )


async def test_a_held_pull_sleeps_through_what_does_not_match(server, wire):
    await send_one(wire, b"first", a="1")
    await heartbeat(wire, subscription("a = 1"))
    consumer = await server.connect()
    opaque = await held(server, consumer, registered_pull(1, wait_ms=15_000))
    waiting = server.broker.broker.long_polling._held
    for end in (2, 3, 4):
        await send_one(wire, b"other", a="2")
        await until(
            lambda end=end: [pull.looked_at for pull in waiting.get((TOPIC, 0), ())] == [end]
        )
    await send_one(wire, b"mine", a="1")
    reply = await consumer.reply(opaque)
    assert (reply.code, bodies(reply)) == (ResponseCode.SUCCESS, [b"mine"])
    assert reply.ext_fields["nextBeginOffset"] == "5"


async def test_a_filter_that_changes_while_a_pull_is_held_looks_at_everything_again(server, wire):
    await send_one(wire, b"first", a="1")
    await heartbeat(wire, subscription("a = 1", version=1))
    consumer = await server.connect()
    opaque = await held(server, consumer, registered_pull(1, wait_ms=15_000))
    await heartbeat(wire, subscription("a = 2", version=2))
    await send_one(wire, b"now mine", a="2")
    assert bodies(await consumer.reply(opaque)) == [b"now mine"]


async def test_filters_and_their_file_survive_a_restart(start_server, stop_server, tmp_path):
    store = tmp_path / "again"
    server = await start_server(store=store, enablePropertyFilter="true")
    wire = await server.connect()
    await heartbeat(wire, subscription("a = 1"))
    await stop_server(server)
    saved = json.loads((store / "config" / "consumerFilter.json").read_bytes())
    data = saved["filterDataByTopic"][TOPIC]["groupFilterData"]["consumers"]
    assert (data["expression"], data["bloomFilterData"]["bitNum"]) == ("a = 1", 112)
    server = await start_server(store=store, enablePropertyFilter="true")
    found = server.broker.broker.filters.get(TOPIC, "consumers")
    assert (found.expression, found.is_dead) == ("a = 1", True)
    await stop_server(server)


async def test_the_last_consumer_takes_the_life_of_its_filter_along(server, wire):
    consumer = await server.connect()
    await heartbeat(consumer, subscription("a = 1"))
    filters = server.broker.broker.filters
    assert not filters.get(TOPIC, "consumers").is_dead
    await consumer.aclose()
    await until(lambda: filters.get(TOPIC, "consumers").is_dead)


async def test_retry_topics_are_filtered_by_the_filter_of_the_first_topic(
    start_server, stop_server, tmp_path
):
    server = await start_server(
        store=tmp_path / "retry", enablePropertyFilter="true", filterSupportRetry="true"
    )
    wire = await server.connect()
    retry = "%RETRY%consumers"
    await heartbeat(wire, subscription("a = 1"), subscription("TRUE", topic=retry))
    for body, properties in (
        (b"mine", {"a": "1", "RETRY_TOPIC": TOPIC}),
        (b"not mine", {"a": "2", "RETRY_TOPIC": TOPIC}),
        (b"unknown", {"a": "2", "RETRY_TOPIC": "Other"}),
    ):
        text = encode_properties(properties).decode()
        assert (await send(wire, retry, body, properties=text)).code == ResponseCode.SUCCESS
    reply = await pull(wire, registered_pull() | {"topic": retry})
    assert bodies(reply) == [b"mine", b"unknown"]
    await stop_server(server)


async def test_tags_select_by_hash_and_alternatives(wire):
    for tag in ("TagA", "TagB", "TagC", ""):
        await send_one(wire, tag.encode() or b"none", **({"TAGS": tag} if tag else {}))
    await heartbeat(wire, subscription("TagA || TagC", kind="TAG"))
    assert bodies(await pull(wire, registered_pull())) == [b"TagA", b"TagC"]


async def test_a_held_pull_for_tags_sleeps_through_other_tags(server, wire):
    await send_one(wire, b"first", TAGS="TagA")
    await heartbeat(wire, subscription("TagA", kind="TAG"))
    consumer = await server.connect()
    opaque = await held(server, consumer, registered_pull(1, wait_ms=15_000))
    await send_one(wire, b"other", TAGS="TagB")
    await send_one(wire, b"mine", TAGS="TagA")
    assert bodies(await consumer.reply(opaque)) == [b"mine"]


BIT_MAPS = {
    "enablePropertyFilter": "true",
    "enableConsumeQueueExt": "true",
    "enableCalcFilterBitMap": "true",
}


@pytest.fixture
async def marking_server(start_server, stop_server):
    server = await start_server(messageDelayLevel="1s", **BIT_MAPS)
    yield server
    with trio.CancelScope(shield=True):
        await stop_server(server)


async def test_bit_maps_spare_reading_messages_that_do_not_match(marking_server, monkeypatch):
    server = marking_server
    wire = await server.connect()
    await send_one(wire, b"before", a="1")
    await heartbeat(wire, subscription("a = 3"))
    filters = server.broker.broker.filters
    born = filters.get(TOPIC, "consumers").born_time
    await until(lambda: server.broker.broker.clock.now_ms() > born)
    for number in range(10):
        await send_one(wire, b"%d" % number, a=str(number % 4), TAGS="TagA")
    looked_at = []
    expression = filters.get(TOPIC, "consumers").compiled
    matches = type(expression).matches

    def counting(self, properties):
        looked_at.append(properties.get("a"))
        return matches(self, properties)

    monkeypatch.setattr(type(expression), "matches", counting)
    reply = await pull(wire, registered_pull())
    assert bodies(reply) == [b"3", b"7"]
    assert looked_at == ["1", "3", "3"]
    reply = await wire.call(
        RequestCode.PULL_MESSAGE, pull_fields(TOPIC, 0, 0, wait_ms=0, tags="TagA")
    )
    assert len(bodies(reply)) == 10


async def test_a_pull_that_waits_for_tags_is_woken_with_ext_units(marking_server):
    server = marking_server
    wire = await server.connect()
    await send_one(wire, b"0", TAGS="TagB")
    fields = pull_fields(TOPIC, 0, 1, wait_ms=20_000, tags="TagA")
    opaque = await held(server, wire, fields)
    other = await server.connect()
    await send_one(other, b"1", TAGS="TagA")
    with trio.fail_after(10):
        reply = await wire.reply(opaque)
    assert bodies(reply) == [b"1"]


async def test_delayed_messages_come_on_time_with_ext_units(marking_server):
    wire = await marking_server.connect()
    await send_one(wire, b"0")
    await send_one(wire, b"late", DELAY="1")
    fields = pull_fields(TOPIC, 0, 1, wait_ms=20_000)
    with trio.fail_after(10):
        reply = await pull(wire, fields)
    (record,) = decode_records(bytes(reply.body))
    assert bytes(record.body) == b"late"
