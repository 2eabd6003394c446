"""Which names topics and groups may have, and what their prefixes mean.

Java: TopicValidator and MixAll.  Pure functions and constants; remarks are Java's.
"""

from __future__ import annotations

import re

AUTO_CREATE_TOPIC = "TBW102"
SCHEDULE_TOPIC = "SCHEDULE_TOPIC_XXXX"
BENCHMARK_TOPIC = "BenchmarkTest"
TRANS_HALF_TOPIC = "RMQ_SYS_TRANS_HALF_TOPIC"
TRANS_OP_HALF_TOPIC = "RMQ_SYS_TRANS_OP_HALF_TOPIC"
ROCKSDB_TRANS_HALF_TOPIC = "RMQ_SYS_ROCKSDB_TRANS_HALF_TOPIC"
ROCKSDB_TRANS_OP_HALF_TOPIC = "RMQ_SYS_ROCKSDB_TRANS_OP_HALF_TOPIC"
TRACE_TOPIC = "RMQ_SYS_TRACE_TOPIC"
TRANS_CHECK_MAX_TIME_TOPIC = "TRANS_CHECK_MAX_TIME_TOPIC"
SELF_TEST_TOPIC = "SELF_TEST_TOPIC"
OFFSET_MOVED_EVENT = "OFFSET_MOVED_EVENT"
ROCKSDB_OFFSET_TOPIC = "CHECKPOINT_TOPIC"

SYSTEM_TOPIC_PREFIX = "rmq_sys_"
SYNC_BROKER_MEMBER_PREFIX = SYSTEM_TOPIC_PREFIX + "SYNC_BROKER_MEMBER_"
REVIVE_TOPIC_PREFIX = SYSTEM_TOPIC_PREFIX + "REVIVE_LOG_"
TIMER_TOPIC = SYSTEM_TOPIC_PREFIX + "wheel_timer"
REPLY_TOPIC_POSTFIX = "REPLY_TOPIC"

RETRY_TOPIC_PREFIX = "%RETRY%"
DLQ_TOPIC_PREFIX = "%DLQ%"
SYSTEM_GROUP_PREFIX = "CID_RMQ_SYS_"

TOPIC_LENGTH_MAX = 127
RETRY_OR_DLQ_TOPIC_LENGTH_MAX = 255
GROUP_LENGTH_MAX = 120
"""Shorter than a topic: the group is part of the names of its retry and DLQ topics."""

SYSTEM_TOPICS = frozenset(
    {
        AUTO_CREATE_TOPIC,
        SCHEDULE_TOPIC,
        BENCHMARK_TOPIC,
        TRANS_HALF_TOPIC,
        TRACE_TOPIC,
        TRANS_OP_HALF_TOPIC,
        TRANS_CHECK_MAX_TIME_TOPIC,
        SELF_TEST_TOPIC,
        OFFSET_MOVED_EVENT,
        ROCKSDB_OFFSET_TOPIC,
        ROCKSDB_TRANS_HALF_TOPIC,
        ROCKSDB_TRANS_OP_HALF_TOPIC,
    }
)
"""System topics of every broker; a TopicTable adds those with its own names in them."""

NOT_ALLOWED_SEND_TOPICS = frozenset(
    {
        SCHEDULE_TOPIC,
        TRANS_HALF_TOPIC,
        TRANS_OP_HALF_TOPIC,
        TRANS_CHECK_MAX_TIME_TOPIC,
        SELF_TEST_TOPIC,
        OFFSET_MOVED_EVENT,
        ROCKSDB_TRANS_HALF_TOPIC,
        ROCKSDB_TRANS_OP_HALF_TOPIC,
    }
)
"""Topics that clients may not send to."""

PULLING_SYSTEM_GROUPS = frozenset(
    {
        "DEFAULT_CONSUMER",
        "TOOLS_CONSUMER",
        "SCHEDULE_CONSUMER",
        "FILTERSRV_CONSUMER",
        "__MONITOR_CONSUMER",
        "SELF_TEST_C_GROUP",
        "CID_ONS-HTTP-PROXY",
        "CID_ONSAPI_PERMISSION",
        "CID_ONSAPI_OWNER",
        "CID_ONSAPI_PULL",
    }
)
"""Groups of tools, which may pull where no other pull consumer may."""

_LEGAL = re.compile(r"[%|a-zA-Z0-9_-]*\Z")


def topic_fault(topic: str | None) -> str | None:
    """Why a topic may not have this name, in Java's words; None for a good name."""
    if topic is None or not topic.strip():
        return "The specified topic is blank."
    if not _LEGAL.match(topic):
        return (
            f"The specified topic: {topic}, contains illegal characters, "
            "allowing only ^[%|a-zA-Z0-9_-]+$"
        )
    if topic.startswith((RETRY_TOPIC_PREFIX, DLQ_TOPIC_PREFIX)):
        if len(topic) > RETRY_OR_DLQ_TOPIC_LENGTH_MAX:
            return (
                f"The specified topic is DLQ or Retry topic: {topic}, "
                f"and it's longer than topic max length: {RETRY_OR_DLQ_TOPIC_LENGTH_MAX}"
            )
    elif len(topic) > TOPIC_LENGTH_MAX:
        return f"The specified topic: {topic}, is longer than topic max length: {TOPIC_LENGTH_MAX}"
    return None


def group_fault(group: str | None) -> str | None:
    """Why a group may not have this name, in Java's words; None for a good name."""
    if group is None or not group.strip():
        return "The specified group is blank."
    if not _LEGAL.match(group):
        return (
            f"The specified group: {group}, contains illegal characters, "
            "allowing only ^[%|a-zA-Z0-9_-]+$"
        )
    if len(group) > GROUP_LENGTH_MAX:
        return f"The specified group: {group}, is longer than group max length: {GROUP_LENGTH_MAX}"
    return None


def is_system_group(group: str) -> bool:
    """Java: BrokerMetricsManager.isSystemGroup."""
    return group.upper().startswith(SYSTEM_GROUP_PREFIX)


def is_pulling_system_group(group: str) -> bool:
    """Java: MixAll.isSysConsumerGroupPullMessage."""
    return group in PULLING_SYSTEM_GROUPS or group.startswith(SYSTEM_GROUP_PREFIX)


def retry_topic(group: str) -> str:
    """Where a group's messages wait for another attempt."""
    return RETRY_TOPIC_PREFIX + group


def dlq_topic(group: str) -> str:
    """Where a group's messages end that were tried often enough."""
    return DLQ_TOPIC_PREFIX + group


def system_topic_conflict(topic: str) -> str:
    """The remark for an attempt to change a system topic."""
    return f"The topic[{topic}] is conflict with system topic."
