"""Replays a recording to two servers and compares their replies field by field.

Requests go one by one, to both, in the recorded order; a request that waits at the server does not
wait here. What may differ by nature is listed below, and is short.
"""

from __future__ import annotations

import json
import re
import time
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from pyritemq.conformance.recording import said
from pyritemq.conformance.wire import Wire, WireError, java_json
from pyritemq.protocol.codes import RequestCode
from pyritemq.protocol.errors import ProtocolError
from pyritemq.protocol.record import Record, decode_properties, decode_records

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pyritemq.conformance.recording import Exchange
    from pyritemq.protocol.command import Command

VOLATILE_FIELDS = {
    "msgId",
    "transactionId",
    "offsetMsgId",
    "brokerAddr",
    "indexLastUpdateTimestamp",
    "indexLastUpdatePhyoffset",
    "popTime",
    "reviveQid",
}
"""Ext fields that name a time, the place of a process, or whose turn it is."""

VOLATILE_KEYS = {"lastUpdateTimestamp", "timestamp", "dataVersion", "lastTimestamp", "counter"}
"""The same in JSON bodies."""

VOLATILE_RECORD = {"store_timestamp", "store_host", "born_host", "born_timestamp", "body_crc"}
VOLATILE_RECORD |= {"phy_offset", "total_size"}
"""The unique id that a broker gives has its address in it, and so a length of its own."""

VOLATILE_PROPERTIES = {"UNIQ_KEY", "POP_CK", "1ST_POP_TIME"}
UNORDERED_FIELDS = {"startOffsetInfo", "msgOffsetInfo"}
"""A pop begins with any queue, here and there."""

EXCEPTION = re.compile(r"[a-z][\w.]*\.\w+(Exception|Error)\b")
"""How a remark begins that is an exception of Java's, told as it came."""

NOT_REPLAYED = {
    RequestCode.GET_BROKER_CONFIG,
    RequestCode.GET_BROKER_RUNTIME_INFO,
    RequestCode.GET_CONSUMER_RUNNING_INFO,
    RequestCode.CONSUME_MESSAGE_DIRECTLY,
    RequestCode.UNREGISTER_CLIENT,
}
"""They tell of the process itself, or go on to a client that is not there."""

PULLS = (RequestCode.PULL_MESSAGE, RequestCode.LITE_PULL_MESSAGE)
RECORDS = (
    *PULLS,
    RequestCode.POP_MESSAGE,
    RequestCode.PEEK_MESSAGE,
    RequestCode.QUERY_MESSAGE,
    RequestCode.VIEW_MESSAGE_BY_ID,
)
"""Their replies' bodies are stored records."""

FIXTURE_MAX = 4000
SUSPEND = 2
ONE_WAY = 2
TRIES, PAUSE_SECONDS = 15, 0.2
"""A real broker shows what it stored a moment later: a reply that differs is asked for again."""

READS = {
    *PULLS,
    RequestCode.GET_MAX_OFFSET,
    RequestCode.GET_MIN_OFFSET,
    RequestCode.GET_ROUTEINFO_BY_TOPIC,
    RequestCode.QUERY_MESSAGE,
    RequestCode.QUERY_CONSUMER_OFFSET,
    RequestCode.SEARCH_OFFSET_BY_TIMESTAMP,
    RequestCode.GET_BROKER_CLUSTER_INFO,
    RequestCode.GET_CONSUMER_LIST_BY_GROUP,
    RequestCode.GET_TOPIC_STATS_INFO,
    RequestCode.VIEW_MESSAGE_BY_ID,
}


@dataclass(frozen=True)
class Target:
    """A started server: its kind, and the address of each recorded node."""

    kind: str
    addresses: dict[str, str]


@dataclass(frozen=True)
class Difference:
    """One field in which two replies differ."""

    exchange: Exchange
    name: str
    first: object
    second: object

    def words(self) -> str:
        try:
            name = RequestCode(self.exchange.request.code).name
        except ValueError:
            name = str(self.exchange.request.code)
        place = f"#{self.exchange.number} {name} to {self.exchange.node}"
        return f"{place}: {self.name}: {self.first!r:.300} / {self.second!r:.300}"


@dataclass
class Replayed:
    """What a replay found."""

    compared: int = 0
    differences: list[Difference] = field(default_factory=list)
    agreed: list[Exchange] = field(default_factory=list)
    """Where the replies are the same: the request, and the second server's own reply."""


def replay(
    exchanges: Sequence[Exchange], recorded: dict[str, str], first: Target, second: Target
) -> Replayed:
    """Send every request to both, and compare their replies."""
    found = Replayed()
    with ExitStack() as stack:
        sides = [_Side(stack, target, recorded) for target in (first, second)]
        for one in exchanges:
            if one.request.code in NOT_REPLAYED:
                continue
            if one.request.flag & ONE_WAY:
                for side in sides:
                    side.tell(one)
                continue
            found.compared += 1
            differences = _compared(one, sides)
            found.differences += differences
            reply = sides[1].last
            if not differences and reply is not None:
                found.agreed.append(replace(one, reply=said(reply)))
    return found


def fixtures(agreed: Iterable[Exchange]) -> list[Exchange]:
    """One exchange of each kind: request and reply code, serialisation, and names of fields."""
    kinds: dict[object, Exchange] = {}
    for one in agreed:
        assert one.reply is not None
        if len(one.request.body) + len(one.reply.body) <= FIXTURE_MAX:
            kind = (one.request.code, one.reply.code, one.request.binary, *one.request.fields)
            kinds.setdefault((*kind, *one.reply.fields), one)
    return list(kinds.values())


def _compared(one: Exchange, sides: Sequence[_Side]) -> list[Difference]:
    found: list[Difference] = []
    for _ in range(TRIES):
        shown = [side.ask(one) for side in sides]
        found = [Difference(one, *row) for row in _different(*shown)]
        if not found or one.request.code not in READS:
            break
        time.sleep(PAUSE_SECONDS)
    return found


class _Side:
    """Connections to one server, made when they are first wanted."""

    def __init__(self, stack: ExitStack, target: Target, recorded: dict[str, str]) -> None:
        self._stack, self._target, self._recorded = stack, target, recorded
        self._wires: dict[tuple[str, bool], Wire] = {}
        self.last: Command | None = None
        """The reply that was compared last, as it came."""

    def tell(self, one: Exchange) -> None:
        request = self._request(one)
        self._wire(one).ask(
            request.code, request.ext_fields, bytes(request.body), flag=request.flag
        )

    def ask(self, one: Exchange) -> dict[str, object]:
        """The reply, flattened to comparable fields."""
        request = self._request(one)
        how = {"flag": request.flag, "language": request.language, "version": request.version}
        self.last = None
        try:
            reply = self.last = self._wire(one).call(
                request.code, request.ext_fields, bytes(request.body), **how
            )
        except WireError as error:
            self._wires.pop((one.node, one.request.binary), None)
            return {"connection": type(error).__name__}
        return self._neutral(reply, one)

    def _wire(self, one: Exchange) -> Wire:
        key = (one.node, one.request.binary)
        if key not in self._wires:
            made = Wire(self._target.addresses[one.node], binary=one.request.binary, seconds=10)
            self._wires[key] = self._stack.enter_context(made)
        return self._wires[key]

    def _request(self, one: Exchange) -> Command:
        fields, body = dict(one.request.fields), bytes.fromhex(one.request.body)
        for node, address in self._recorded.items():
            mine = self._target.addresses.get(node, address)
            fields = {name: value.replace(address, mine) for name, value in fields.items()}
            body = body.replace(address.encode(), mine.encode())
        if one.request.code in PULLS and "sysFlag" in fields:
            fields["sysFlag"] = str(int(fields["sysFlag"]) & ~SUSPEND)
        if "pollTime" in fields:
            fields["pollTime"] = "0"
        return replace(one.request, fields=fields, body=body.hex()).command()

    def _neutral(self, reply: Command, one: Exchange) -> dict[str, object]:
        shown: dict[str, object] = {"code": int(reply.code), "remark": self._plain(reply.remark)}
        for name, value in reply.ext_fields.items():
            if name in UNORDERED_FIELDS:
                value = ";".join(sorted(value.split(";")))
            kept = "…" if name in VOLATILE_FIELDS else self._plain(value)
            shown[f"extFields.{name}"] = kept
        body = bytes(reply.body)
        if one.request.code in RECORDS and reply.code == 0:
            shown |= dict(_records(body))
        elif body:
            shown["body"] = self._body(body)
        return shown

    def _body(self, body: bytes) -> object:
        try:
            return _steady(java_json((self._plain(body.decode()) or "").encode()))
        except (ValueError, UnicodeDecodeError):
            return body.hex() if len(body) < 200 else f"{len(body)} bytes"

    def _plain(self, text: str | None) -> str | None:
        """Own addresses by the names of their nodes; times of day out of remarks."""
        if text is None:
            return None
        for node, address in self._target.addresses.items():
            text = text.replace(address, f"<{node}>")
        text = re.sub(r"127\.0\.0\.1:\d+", "<address>", text)
        return re.sub(r"(?<=the broker\[)[\d.]+(?=\])", "<ip>", text)


def _records(body: bytes) -> Iterator[tuple[str, object]]:
    try:
        records = decode_records(body)
    except ProtocolError as error:
        yield "body", str(error)
        return
    yield "records", len(records)
    for number, record in enumerate(sorted(records, key=_place)):
        shown = {**record._asdict(), "properties": _properties(record)}
        for name, value in shown.items():
            if name not in VOLATILE_RECORD:
                yield f"records[{number}].{name}", value


def _place(record: Record) -> tuple[str, int, int]:
    return str(record.topic), record.queue_id, record.queue_offset


def _properties(record: Record) -> dict[str, str]:
    found = decode_properties(record.properties)
    return {name: value for name, value in found.items() if name not in VOLATILE_PROPERTIES}


def _steady(value: Any) -> Any:  # noqa: ANN401 - any JSON
    """Without what is volatile, and with lists in one order: Java's come from hash maps."""
    if isinstance(value, dict):
        return {name: _steady(one) for name, one in value.items() if name not in VOLATILE_KEYS}
    if isinstance(value, list):
        return sorted(
            (_steady(one) for one in value), key=lambda one: json.dumps(one, sort_keys=True)
        )
    return value


def _different(
    first: dict[str, object], second: dict[str, object]
) -> Iterator[tuple[str, object, object]]:
    for name in sorted({*first, *second}):
        one, two = first.get(name, "(absent)"), second.get(name, "(absent)")
        told = name == "remark" and EXCEPTION.match(str(two)) and one is not None
        if one != two and not told:
            yield name, one, two
