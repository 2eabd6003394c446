"""Attributes of topics and groups: which exist, what they may be, and how requests alter them.

A request writes `+key=value` to set and `-key` to delete.  Pure functions; a refusal is an
AttributeFault with Java's words, which tools show to their users.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyritemq.protocol.fields import parse_long

if TYPE_CHECKING:
    from collections.abc import Mapping

_LONG_MAX = 0x7FFFFFFFFFFFFFFF


class AttributeFault(ValueError):  # noqa: N818 - the text is an answer to a peer
    """An alteration that Java refuses; the text is the remark."""


@dataclass(frozen=True, slots=True)
class Attribute:
    """Any text will do."""

    changeable: bool = True

    def verify(self, value: str) -> None:
        """Raises AttributeFault."""


@dataclass(frozen=True, slots=True)
class EnumAttribute(Attribute):
    """One of a few words; kept in the order in which Java's HashSet prints them."""

    universe: tuple[str, ...] = ()

    def verify(self, value: str) -> None:
        if value not in self.universe:
            raise AttributeFault(f"value is not in set: [{', '.join(self.universe)}]")


@dataclass(frozen=True, slots=True)
class RangeAttribute(Attribute):
    """A whole number between two others."""

    low: int = 0
    high: int = _LONG_MAX

    def verify(self, value: str) -> None:
        try:
            number = parse_long(value)
        except ValueError:
            raise AttributeFault(f'For input string: "{value}"') from None
        if not self.low <= number <= self.high:
            raise AttributeFault(f"value is not in range({self.low}, {self.high})")


@dataclass(frozen=True, slots=True)
class BoolAttribute(Attribute):
    """True or false."""

    def verify(self, value: str) -> None:
        if value.lower() not in ("true", "false"):
            raise AttributeFault("boolean attribute format is wrong.")


MESSAGE_TYPE = "message.type"
RESERVE_TIME = "reserve.time"
MIXED = "MIXED"

TOPIC_ATTRIBUTES: Mapping[str, Attribute] = {
    "queue.type": EnumAttribute(changeable=False, universe=("SimpleCQ", "BatchCQ")),
    "cleanup.policy": EnumAttribute(changeable=False, universe=("DELETE", "COMPACTION")),
    MESSAGE_TYPE: EnumAttribute(
        universe=(
            "UNSPECIFIED",
            MIXED,
            "TRANSACTION",
            "PRIORITY",
            "FIFO",
            "DELAY",
            "LITE",
            "NORMAL",
        )
    ),
    RESERVE_TIME: RangeAttribute(low=-1),
    "lite.topic.expiration": RangeAttribute(low=-1, high=30 * 24 * 60),
}

GROUP_ATTRIBUTES: Mapping[str, Attribute] = {
    "priority.factor": RangeAttribute(high=100),
    "lite.bind.topic": Attribute(),
    "lite.sub.model": EnumAttribute(universe=("Shared", "Exclusive")),
    "lite.sub.reset.offset.exclusive": BoolAttribute(),
    "lite.sub.reset.offset.unsubscribe": BoolAttribute(),
    "lite.sub.client.quota": RangeAttribute(low=-1),
    "lite.sub.client.max.event.cnt": RangeAttribute(low=10),
    "lite.sub.wildcard": Attribute(),
}


def parse_alterations(text: str | None) -> dict[str, str]:
    """`+a=1,-b` as {"+a": "1", "-b": ""} (Java: AttributeParser).  Raises AttributeFault."""
    alterations: dict[str, str] = {}
    text = (text or "").rstrip(",")
    for part in text.split(",") if text else ():
        key, value = _parse_alteration(part)
        if key in alterations:
            raise AttributeFault(f"key duplication: {key}")
        alterations[key] = value
    return alterations


def _parse_alteration(part: str) -> tuple[str, str]:
    key, equals, rest = part.partition("=")
    if not equals:
        if "-" not in key:
            raise AttributeFault(f"delete attribute format is wrong: {key}")
        return key, ""
    value = rest.partition("=")[0]
    if not value:
        raise AttributeFault("Index 1 out of bounds for length 1")
    if "+" not in key:
        raise AttributeFault(f"add/alter attribute format is wrong: {key}")
    return key, value


def alter(
    current: Mapping[str, str] | None,
    alterations: Mapping[str, str],
    known: Mapping[str, Attribute],
) -> dict[str, str]:
    """The attributes after a request; `current` is None when the thing is being created.

    Raises AttributeFault (Java: AttributeUtil.alterCurrentAttributes).
    """
    result = dict(current or {})
    seen: set[str] = set()
    for sign_and_key, value in alterations.items():
        sign, key = sign_and_key[:1], sign_and_key[1:]
        if not key or "+" in key or "-" in key:
            raise AttributeFault("kv string format wrong.")
        if key in seen:
            raise AttributeFault(f"alter duplication key. key: {key}")
        seen.add(key)
        _check_sign(sign, key, current)
        _check_known(key, known, creating=current is None)
        if sign == "+":
            known[key].verify(value)
            result[key] = value
        else:
            del result[key]
    return result


def _check_sign(sign: str, key: str, current: Mapping[str, str] | None) -> None:
    if sign == "+":
        return
    if current is None:
        raise AttributeFault(f"only add attribute is supported while creating topic. key: {key}")
    if sign != "-":
        raise AttributeFault(f"wrong format key: {key}")
    if key not in current:
        raise AttributeFault(f"attempt to delete a nonexistent key: {key}")


def _check_known(key: str, known: Mapping[str, Attribute], *, creating: bool) -> None:
    attribute = known.get(key)
    if attribute is None:
        raise AttributeFault(f"unsupported key: {key}")
    if not creating and not attribute.changeable:
        raise AttributeFault(f"attempt to update an unchangeable attribute. key: {key}")
