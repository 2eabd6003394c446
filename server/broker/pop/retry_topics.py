"""Where a group's popped messages wait for another attempt (Java: KeyBuilder).

Unlike `%RETRY%<group>` of pulling consumers there is one such topic for each topic of the group, in
an old spelling with `_` (v1) and a newer one with `+` (v2).  Pure functions.
"""

from __future__ import annotations

from pyritemq.server.broker.state import names

NORMAL = "0"
RETRY_V1 = "1"
RETRY_V2 = "2"
"""How handles and replies name the kind of a topic."""


def retry_topic_v1(topic: str, group: str) -> str:
    return f"{names.RETRY_TOPIC_PREFIX}{group}_{topic}"


def retry_topic_v2(topic: str, group: str) -> str:
    return f"{names.RETRY_TOPIC_PREFIX}{group}+{topic}"


def pop_retry_topic(topic: str, group: str, *, v2: bool) -> str:
    """In the spelling that the configuration asks for."""
    return retry_topic_v2(topic, group) if v2 else retry_topic_v1(topic, group)


def normal_topic(topic: str, group: str) -> str:
    """The topic whose retry topic this is, or the topic itself."""
    for prefix in (retry_topic_v2("", group), retry_topic_v1("", group)):
        if topic.startswith(prefix):
            return topic[len(prefix) :]
    return topic


def kind_of(topic: str) -> str:
    if not topic.startswith(names.RETRY_TOPIC_PREFIX):
        return NORMAL
    return RETRY_V2 if "+" in topic else RETRY_V1


def topic_of_kind(kind: str, topic: str, group: str) -> str:
    """The topic that a handle means.  Raises ValueError."""
    if kind == NORMAL:
        return topic
    if kind == RETRY_V1:
        return retry_topic_v1(topic, group)
    if kind == RETRY_V2:
        return retry_topic_v2(topic, group)
    raise ValueError(f"{kind!r} is no kind of topic")
