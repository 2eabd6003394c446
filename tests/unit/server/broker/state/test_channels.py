"""Producer and consumer groups: who is in, who is told, who is dropped."""

import pytest

from pyritemq.protocol.codes import RequestCode
from pyritemq.server.broker.state.channels import (
    Client,
    ConsumerTable,
    ProducerTable,
    notify_consumer_ids_changed,
)
from pyritemq.server.broker.state.subscriptions import ConsumerData, Subscription

EXPIRY_SECONDS = 120


def subscription(topic, version=1, sub_string="*"):
    return Subscription(topic=topic, sub_string=sub_string, sub_version=version)


def consumer(*topics, group="g", model="CLUSTERING", version=1):
    return ConsumerData(
        group_name=group,
        consume_type="CONSUME_PASSIVELY",
        message_model=model,
        consume_from_where="CONSUME_FROM_LAST_OFFSET",
        subscriptions=tuple(subscription(topic, version) for topic in topics),
    )


@pytest.fixture
def told():
    return []


@pytest.fixture
def consumers(clock, told):
    return ConsumerTable(clock, on_change=lambda group, channels: told.append((group, channels)))


@pytest.fixture
def producers(clock):
    return ProducerTable(clock)


def client(channel, client_id="c1"):
    return Client(channel, client_id, 0, 513)


def test_all_members_are_told_when_one_joins(consumers, told, new_channel):
    one, two = new_channel(), new_channel()
    assert consumers.register(consumer("T"), client(one), notify=True)
    assert consumers.register(consumer("T"), client(two, "c2"), notify=True)
    assert told == [("g", [one]), ("g", [one, two])]
    assert consumers.get("g").client_ids == ["c1", "c2"]


def test_a_plain_heartbeat_tells_nobody(consumers, told, channel):
    consumers.register(consumer("T"), client(channel), notify=True)
    told.clear()
    assert not consumers.register(consumer("T"), client(channel), notify=True)
    assert told == []


def test_a_new_or_dropped_topic_counts_as_a_change(consumers, told, channel):
    consumers.register(consumer("T"), client(channel), notify=True)
    assert consumers.register(consumer("T", "U"), client(channel), notify=True)
    assert consumers.register(consumer("U"), client(channel), notify=True)
    assert len(told) == 3
    assert consumers.find_subscription("g", "T") is None
    assert consumers.groups_of_topic("U") == {"g"}


def test_a_newer_expression_is_kept_without_telling(consumers, told, channel):
    consumers.register(consumer("T", version=5), client(channel), notify=True)
    told.clear()
    consumers.register(consumer("T", version=4), client(channel), notify=True)
    assert consumers.find_subscription("g", "T").sub_version == 5
    consumers.register(consumer("T", version=6), client(channel), notify=True)
    assert consumers.find_subscription("g", "T").sub_version == 6
    assert told == []


def test_broadcast_groups_and_silenced_groups_are_not_told(consumers, told, new_channel):
    consumers.register(consumer("T", model="BROADCASTING"), client(new_channel()), notify=True)
    consumers.register(consumer("T", group="h"), client(new_channel()), notify=False)
    assert told == []
    assert consumers.get("g").is_broadcasting


def test_heartbeat_without_subscriptions_keeps_the_known_ones(consumers, channel):
    consumers.register(consumer("T"), client(channel), notify=True)
    changed = consumers.register(consumer(), client(channel), notify=True, with_subscriptions=False)
    assert not changed
    assert consumers.find_subscription("g", "T") is not None


def test_a_group_looked_up_before_does_not_change_under_its_reader(consumers, new_channel):
    consumers.register(consumer("T"), client(new_channel()), notify=True)
    before = consumers.get("g")
    consumers.register(consumer("T", "U"), client(new_channel(), "c2"), notify=True)
    assert before.client_ids == ["c1"]
    assert set(before.subscriptions) == {"T"}


def test_unregistered_consumer_leaves_and_the_others_are_told(consumers, told, new_channel):
    one, two = new_channel(), new_channel()
    consumers.register(consumer("T"), client(one), notify=True)
    consumers.register(consumer("T"), client(two, "c2"), notify=True)
    told.clear()
    consumers.unregister("g", one, notify=True)
    consumers.unregister("unknown", one, notify=True)
    assert told == [("g", [two])]
    consumers.unregister("g", two, notify=True)
    assert consumers.get("g") is None
    assert consumers.groups_of_topic("T") == set()


def test_closed_connection_leaves_all_its_groups(consumers, producers, told, new_channel):
    one, two = new_channel(), new_channel()
    for group in ("g", "h"):
        consumers.register(consumer("T", group=group), client(one), notify=True)
    consumers.register(consumer("T"), client(two, "c2"), notify=True)
    producers.register("p", client(one))
    told.clear()
    consumers.channel_closed(one)
    producers.channel_closed(one)
    assert told == [("g", [two])]
    assert consumers.groups().keys() == {"g"}
    assert producers.clients("p") is None
    assert producers.find_channel("c1") is None


def test_silent_consumer_is_dropped_after_two_minutes_and_closed(
    consumers, told, clock, new_channel
):
    silent, alive = new_channel(), new_channel()
    consumers.register(consumer("T"), client(silent), notify=True)
    consumers.register(consumer("T"), client(alive, "c2"), notify=True)
    clock.advance(EXPIRY_SECONDS)
    consumers.register(consumer("T"), client(alive, "c2"), notify=True)
    told.clear()
    consumers.scan()
    assert not silent.closed
    clock.ms += 1
    consumers.scan()
    assert silent.closed
    assert not alive.closed
    assert consumers.get("g").client_ids == ["c2"]
    assert told == [("g", [alive])]


def test_silent_producer_is_dropped_after_two_minutes_and_closed(producers, clock, new_channel):
    silent, alive = new_channel(), new_channel()
    producers.register("p", client(silent))
    producers.register("p", client(alive, "c2"))
    clock.advance(EXPIRY_SECONDS)
    producers.register("p", client(alive, "c2"))
    clock.ms += 1
    producers.scan()
    assert silent.closed
    assert [c.client_id for c in producers.clients("p")] == ["c2"]


def test_connection_with_a_new_client_id_is_replaced_silently(consumers, told, channel):
    consumers.register(consumer("T"), client(channel, "old"), notify=True)
    told.clear()
    consumers.register(consumer("T"), client(channel, "new"), notify=True)
    assert consumers.get("g").client_ids == ["new"]
    assert told == []


def test_fingerprint_is_kept_with_the_group_and_forgotten_with_it(consumers, channel):
    assert consumers.exchange_fingerprint("g", 7) is None
    consumers.register(consumer("T"), client(channel), notify=True)
    assert consumers.exchange_fingerprint("g", 7) is None
    assert consumers.exchange_fingerprint("g", 8) == 7
    consumers.unregister("g", channel, notify=True)
    assert consumers.exchange_fingerprint("g", 9) is None


def test_available_channel_goes_round_and_skips_closed_ones(producers, new_channel):
    channels = [new_channel() for _ in range(3)]
    for number, channel in enumerate(channels):
        producers.register("p", client(channel, f"c{number}"))
    assert {id(producers.available_channel("p")) for _ in range(3)} == set(map(id, channels))
    channels[0].closed = channels[1].closed = True
    assert all(producers.available_channel("p") is channels[2] for _ in range(4))
    channels[2].closed = True
    assert producers.available_channel("p") is None
    assert producers.available_channel("nobody") is None


def test_notice_is_a_oneway_request_with_the_group(channel):
    notify_consumer_ids_changed("g", [channel])
    (command,) = channel.posted
    assert command.code == RequestCode.NOTIFY_CONSUMER_IDS_CHANGED
    assert command.is_oneway
    assert not command.is_response
    assert command.ext_fields == {"consumerGroup": "g"}
