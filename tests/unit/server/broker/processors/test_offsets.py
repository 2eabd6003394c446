"""Consumer offsets and queue bounds, as the Java broker answers them."""

import pytest

from pyritemq.protocol.codes import RequestCode
from pyritemq.protocol.command import Command


def ask(code, **fields):
    return Command(code, opaque=3, ext_fields={key: str(value) for key, value in fields.items()})


def query(topic="T", queue_id=0, **more):
    return ask(
        RequestCode.QUERY_CONSUMER_OFFSET,
        consumerGroup="g",
        topic=topic,
        queueId=queue_id,
        **more,
    )


def update(offset, group="g", topic="T", queue_id=0):
    return ask(
        RequestCode.UPDATE_CONSUMER_OFFSET,
        consumerGroup=group,
        topic=topic,
        queueId=queue_id,
        commitOffset=offset,
    )


@pytest.fixture(autouse=True)
def known(broker):
    broker.groups.find("g")
    broker.topics.create_on_send_back("T", queue_nums=4)


def answer(reply):
    return reply.code, reply.remark, reply.ext_fields


def test_committed_offset_is_found_again(call):
    assert answer(call(update(7))) == (0, None, {})
    assert answer(call(query())) == (0, None, {"offset": "7"})


def test_commit_back_to_zero_is_found_as_zero(call):
    call(update(7))
    call(update(0))
    assert answer(call(query())) == (0, None, {"offset": "0"})


def test_unknown_group_and_topic_are_refused(call, broker):
    assert answer(call(update(1, group="gnone"))) == (26, "Group gnone not exist!", {})
    assert answer(call(update(1, topic="none"))) == (17, "Topic none not exist!", {})
    assert "gnone" not in broker.groups


def test_commits_are_ignored_while_a_reset_waits(call, broker):
    broker.offsets.assign_reset("g", "T", 0, 3)
    assert answer(call(update(9))) == (0, "Offset has been previously reset", {})
    assert answer(call(query())) == (0, None, {"offset": "3"})


def test_new_group_starts_at_zero_of_a_young_queue(call, broker):
    broker.store.queues["T", 0] = [100]
    assert answer(call(query())) == (0, None, {"offset": "0"})
    assert answer(call(query(setZeroIfNotFound="true"))) == (0, None, {"offset": "0"})


NOT_FOUND = (22, "Not found, V3_0_6_SNAPSHOT maybe this group consumer boot first", {})


def test_new_group_must_choose_where_to_start_in_an_empty_queue(call):
    assert answer(call(query())) == NOT_FOUND
    assert answer(call(query(topic="absent"))) == NOT_FOUND


def test_new_group_must_choose_where_the_first_message_is_gone_or_old(call, broker):
    broker.store.queues["T", 0] = [100]
    broker.store.min_offsets["T", 0] = 1
    assert answer(call(query())) == NOT_FOUND
    broker.store.min_offsets["T", 0] = 0
    broker.store.first_is_old = True
    assert answer(call(query())) == NOT_FOUND


def test_who_wants_no_zero_gets_none(call, broker):
    broker.store.queues["T", 0] = [100]
    assert answer(call(query(setZeroIfNotFound="false"))) == (
        22,
        "Not found, do not set to zero, maybe this group boot first",
        {},
    )


def test_bounds_of_a_queue(call, broker):
    broker.store.queues["T", 1] = [100, 200, 300]
    broker.store.min_offsets["T", 1] = 1
    where = {"topic": "T", "queueId": 1}
    for committed in ({}, {"committed": "true"}, {"committed": "false"}):
        reply = call(ask(RequestCode.GET_MAX_OFFSET, **where, **committed))
        assert answer(reply) == (0, None, {"offset": "3"})
    assert answer(call(ask(RequestCode.GET_MIN_OFFSET, **where))) == (0, "", {"offset": "1"})
    earliest = call(ask(RequestCode.GET_EARLIEST_MSG_STORETIME, **where))
    assert answer(earliest) == (0, None, {"timestamp": "100"})


def test_bounds_of_an_unknown_queue(call):
    where = {"topic": "none", "queueId": 0}
    assert call(ask(RequestCode.GET_MAX_OFFSET, **where)).ext_fields == {"offset": "0"}
    assert call(ask(RequestCode.GET_MIN_OFFSET, **where)).ext_fields == {"offset": "0"}
    earliest = call(ask(RequestCode.GET_EARLIEST_MSG_STORETIME, **where))
    assert earliest.ext_fields == {"timestamp": "-1"}


@pytest.mark.parametrize(
    ("boundary", "offset"),
    [({}, "1"), ({"boundaryType": "upper"}, "1"), ({"boundaryType": "x"}, "1")],
)
def test_offset_by_time(call, broker, boundary, offset):
    broker.store.queues["T", 0] = [100, 200, 300]
    command = ask(
        RequestCode.SEARCH_OFFSET_BY_TIMESTAMP, topic="T", queueId=0, timestamp=200, **boundary
    )
    assert answer(call(command)) == (0, None, {"offset": offset})


def test_upper_boundary_reaches_the_store(call, broker):
    broker.store.queues["T", 0] = [100, 200, 200]
    where = {"topic": "T", "queueId": 0, "timestamp": 200}
    lower = call(ask(RequestCode.SEARCH_OFFSET_BY_TIMESTAMP, **where))
    upper = call(ask(RequestCode.SEARCH_OFFSET_BY_TIMESTAMP, **where, boundaryType="UPPER"))
    assert (lower.ext_fields, upper.ext_fields) == ({"offset": "1"}, {"offset": "2"})
