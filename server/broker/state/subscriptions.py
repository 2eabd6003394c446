"""What a consumer asked for: one topic with its expression, and the heartbeat that brings it.

Values only: immutable, built on lane threads from JSON bodies or from a pull's own fields, and
shared freely between threads afterwards.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pyritemq.compat import fastjson
from pyritemq.compat.java_hash import java_string_hash

SUB_ALL = "*"
TAG = "TAG"

CONSUME_ACTIVELY = "CONSUME_ACTIVELY"
CONSUME_PASSIVELY = "CONSUME_PASSIVELY"
BROADCASTING = "BROADCASTING"
CLUSTERING = "CLUSTERING"


class SubscriptionError(ValueError):
    """An expression that cannot be a subscription; the text is Java's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Subscription:
    """A topic and the expression that selects its messages (Java: SubscriptionData)."""

    topic: str
    sub_string: str
    tags: tuple[str, ...] = ()
    codes: frozenset[int] = frozenset()
    sub_version: int = 0
    expression_type: str | None = TAG
    class_filter_mode: bool = False

    @property
    def is_tag_type(self) -> bool:
        """Java's ExpressionType.isTagType: no type at all means tags too."""
        return not self.expression_type or self.expression_type == TAG

    @property
    def tag_hashes(self) -> frozenset[int] | None:
        """The tag hash codes to let through; None lets all through."""
        return None if self.class_filter_mode or self.sub_string == SUB_ALL else self.codes

    def to_json(self) -> dict[str, Any]:
        """Java's field names, in fastjson's order."""
        return {
            "classFilterMode": self.class_filter_mode,
            "codeSet": sorted(self.codes),
            "expressionType": self.expression_type,
            "subString": self.sub_string,
            "subVersion": self.sub_version,
            "tagsSet": list(self.tags),
            "topic": self.topic,
        }


def build_subscription(
    topic: str, sub_string: str | None, expression_type: str | None, *, sub_version: int
) -> Subscription:
    """A subscription from a topic and its expression (Java: FilterAPI.build).

    Raises SubscriptionError.
    """
    if expression_type is not None and expression_type != TAG:
        if not sub_string:
            raise SubscriptionError(f"Expression can't be null! {expression_type}")
        return Subscription(
            topic=topic,
            sub_string=sub_string,
            expression_type=expression_type,
            sub_version=sub_version,
        )
    if not sub_string or sub_string == SUB_ALL:
        return Subscription(topic=topic, sub_string=SUB_ALL, sub_version=sub_version)
    return Subscription(
        topic=topic,
        sub_string=sub_string,
        tags=(tags := _split_tags(sub_string)),
        codes=frozenset(map(java_string_hash, tags)),
        sub_version=sub_version,
    )


def _split_tags(sub_string: str) -> tuple[str, ...]:
    parts = sub_string.split("||")
    # Java's split drops trailing empty parts, so an expression of separators only has no parts.
    if not any(parts):
        raise SubscriptionError("subString split error")
    return tuple(dict.fromkeys(tag for part in parts if (tag := part.strip())))


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerData:
    """One consumer group of a heartbeat."""

    group_name: str
    consume_type: str | None
    message_model: str | None
    consume_from_where: str | None
    subscriptions: tuple[Subscription, ...]
    unit_mode: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Heartbeat:
    """A HEART_BEAT body (Java: HeartbeatData); fingerprint 0 is the first version of it."""

    client_id: str
    consumers: tuple[ConsumerData, ...] = ()
    producer_groups: tuple[str, ...] = ()
    fingerprint: int = 0
    without_sub: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientCheck:
    """A CHECK_CLIENT_CONFIG body."""

    client_id: str | None = None
    group: str | None = None
    subscription: Subscription | None = field(default=None)


def decode_heartbeat(body: bytes | memoryview, *, now_ms: int) -> Heartbeat:
    """Read a heartbeat; absent fields have Java's defaults.  Raises ValueError."""
    data = _object(fastjson.loads(body), "heartbeat")
    return Heartbeat(
        client_id=data.get("clientID") or "",
        consumers=tuple(
            _consumer_data(_object(item, "consumerData"), now_ms)
            for item in data.get("consumerDataSet") or ()
        ),
        producer_groups=tuple(
            _name(_object(item, "producerData")) for item in data.get("producerDataSet") or ()
        ),
        fingerprint=int(data.get("heartbeatFingerprint") or 0),
        without_sub=bool(data.get("withoutSub")),
    )


def decode_client_check(body: bytes | memoryview, *, now_ms: int) -> ClientCheck:
    """Read a CHECK_CLIENT_CONFIG body; an empty one checks nothing.  Raises ValueError."""
    if not body:
        return ClientCheck()
    data = _object(fastjson.loads(body), "client check")
    item = data.get("subscriptionData")
    return ClientCheck(
        client_id=data.get("clientId"),
        group=data.get("group"),
        subscription=None if item is None else _subscription(_object(item, "sub"), now_ms),
    )


def _consumer_data(data: Mapping[str, Any], now_ms: int) -> ConsumerData:
    return ConsumerData(
        group_name=_name(data),
        consume_type=data.get("consumeType"),
        message_model=data.get("messageModel"),
        consume_from_where=data.get("consumeFromWhere"),
        subscriptions=tuple(
            _subscription(_object(item, "subscriptionData"), now_ms)
            for item in data.get("subscriptionDataSet") or ()
        ),
        unit_mode=bool(data.get("unitMode")),
    )


def _subscription(data: Mapping[str, Any], now_ms: int) -> Subscription:
    return Subscription(
        topic=data.get("topic") or "",
        sub_string=data.get("subString") or "",
        tags=tuple(map(str, data.get("tagsSet") or ())),
        codes=frozenset(map(int, data.get("codeSet") or ())),
        sub_version=int(data.get("subVersion", now_ms)),
        expression_type=data.get("expressionType", TAG),
        class_filter_mode=bool(data.get("classFilterMode")),
    )


def _name(data: Mapping[str, Any]) -> str:
    name = data.get("groupName")
    if not isinstance(name, str):
        raise ValueError("groupName is missing")
    return name


def _object(data: object, what: str) -> Mapping[str, Any]:
    if not isinstance(data, Mapping):
        raise ValueError(f"{what} is not a JSON object")
    return data
