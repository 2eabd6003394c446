"""Heartbeats and subscriptions as clients write them."""

import pytest

from pyritemq.compat.java_hash import java_string_hash
from pyritemq.server.broker.state.subscriptions import (
    SubscriptionError,
    build_subscription,
    decode_client_check,
    decode_heartbeat,
)

HEARTBEAT = (
    b'{"clientID":"192.0.2.2@1#2","consumerDataSet":[{"consumeFromWhere":"CONSUME_FROM_FIRST_OFFSET",'
    b'"consumeType":"CONSUME_PASSIVELY","groupName":"g","messageModel":"CLUSTERING",'
    b'"subscriptionDataSet":[{"classFilterMode":false,"codeSet":[2598919],"expressionType":"TAG",'
    b'"subString":"TagA","subVersion":1795003300000,"tagsSet":["TagA"],"topic":"T"}],'
    b'"unitMode":false}],"heartbeatFingerprint":12,"producerDataSet":[{"groupName":"p"}],'
    b'"withoutSub":true}'
)


def test_heartbeat_of_a_5_5_client():
    beat = decode_heartbeat(HEARTBEAT, now_ms=1)
    assert (beat.client_id, beat.fingerprint, beat.without_sub) == ("192.0.2.2@1#2", 12, True)
    assert beat.producer_groups == ("p",)
    (consumer,) = beat.consumers
    (subscription,) = consumer.subscriptions
    assert consumer.consume_from_where == "CONSUME_FROM_FIRST_OFFSET"
    assert subscription.codes == {java_string_hash("TagA")} == subscription.tag_hashes
    assert subscription.to_json()["tagsSet"] == ["TagA"]


def test_absent_fields_have_javas_defaults():
    body = b'{"consumerDataSet":[{"groupName":"g","subscriptionDataSet":[{"topic":"T"}]}]}'
    beat = decode_heartbeat(body, now_ms=5)
    assert (beat.client_id, beat.fingerprint, beat.producer_groups) == ("", 0, ())
    (subscription,) = beat.consumers[0].subscriptions
    assert (subscription.sub_version, subscription.expression_type) == (5, "TAG")


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"notjson",
        b'{"consumerDataSet":[{}]}',
        b'{"consumerDataSet":[1]}',
        b'{"producerDataSet":[{"groupName":1}]}',
        b'{"heartbeatFingerprint":"x"}',
        b'{"heartbeatFingerprint":[1]}',
    ],
)
def test_nonsense_is_not_a_heartbeat(body):
    with pytest.raises((ValueError, TypeError)):
        decode_heartbeat(body, now_ms=1)


def test_empty_client_check_checks_nothing():
    assert decode_client_check(b"", now_ms=1).subscription is None
    assert decode_client_check(b'{"clientId":"c"}', now_ms=1).subscription is None


@pytest.mark.parametrize("sub_string", [None, "", "*"])
def test_star_lets_all_through(sub_string):
    built = build_subscription("T", sub_string, None, sub_version=3)
    assert (built.sub_string, built.tag_hashes, built.sub_version) == ("*", None, 3)
    assert built.is_tag_type


def test_tags_are_split_trimmed_and_hashed():
    built = build_subscription("T", "TagA || TagB||||TagA", "TAG", sub_version=1)
    assert built.tags == ("TagA", "TagB")
    assert built.tag_hashes == {java_string_hash("TagA"), java_string_hash("TagB")}


def test_separators_alone_are_refused_and_blanks_match_nothing():
    with pytest.raises(SubscriptionError, match="subString split error"):
        build_subscription("T", "||", "TAG", sub_version=1)
    assert build_subscription("T", " || ", "TAG", sub_version=1).tag_hashes == frozenset()


def test_other_expressions_are_kept_as_they_are():
    built = build_subscription("T", "a > 1", "SQL92", sub_version=1)
    assert (built.sub_string, built.is_tag_type) == ("a > 1", False)
    with pytest.raises(SubscriptionError, match="Expression can't be null! SQL92"):
        build_subscription("T", "", "SQL92", sub_version=1)
