"""The topics and groups that every broker has: those of the real broker, field by field."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import trio

from integration.wire import Wire
from pyritemq.compat import fastjson
from pyritemq.conformance.servers.cluster import java_cluster, pyrite_cluster
from pyritemq.protocol.codes import RequestCode

if TYPE_CHECKING:
    from pathlib import Path

NAME = {"brokerName": "broker-a"}
OTHER_SETTINGS = {
    "traceTopicEnable": "true",
    "autoCreateTopicEnable": "false",
    "clusterTopicEnable": "false",
    "brokerTopicEnable": "false",
    "timerWheelEnable": "false",
    "reviveQueueNum": "4",
    "brokerClusterName": "Other",
}


async def _tables(address: str) -> dict[str, Any]:
    wire = await Wire.connect(address)
    try:
        topics = await wire.call(RequestCode.GET_ALL_TOPIC_CONFIG)
        groups = await wire.call(RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG)
    finally:
        await wire.aclose()
    return {
        "topics": fastjson.loads(bytes(topics.body))["topicConfigTable"],
        "groups": fastjson.loads(bytes(groups.body))["subscriptionGroupTable"],
    }


@pytest.mark.parametrize("settings", [{}, OTHER_SETTINGS], ids=["defaults", "other settings"])
def test_a_new_broker_has_the_topics_and_groups_of_the_real_one(
    tmp_path: Path, settings: dict[str, str]
) -> None:
    with java_cluster(tmp_path / "java", properties=settings) as java:
        expected = trio.run(_tables, java.broker)
    with pyrite_cluster(tmp_path / "pyrite", properties=NAME | settings) as pyrite:
        found = trio.run(_tables, pyrite.broker)
    assert found["topics"] == expected["topics"]
    assert found["groups"] == expected["groups"]
