"""A small RocketMQ client: enough for our commands and for tests, on the wire like any other.

It asks a name server for routes and brokers for the rest, in the plain way: no retries, no cache,
no groups that rebalance.  All of it runs on a trio loop.  A server of any make will do.
"""

from __future__ import annotations

import itertools
import os
import time
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from pyritemq.compat import fastjson
from pyritemq.compat.message_id import parse_message_id
from pyritemq.protocol.codes import LanguageCode, RequestCode, ResponseCode
from pyritemq.protocol.command import Command
from pyritemq.protocol.errors import RecordError
from pyritemq.protocol.headers.pull import PullMessageHeader
from pyritemq.protocol.headers.send import SendMessageHeader
from pyritemq.protocol.record import Record, decode_records, encode_properties
from pyritemq.server.remoting_client import RemotingError, open_remoting_client

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from pyritemq.server.remoting_client import RemotingClient

TIMEOUT_SECONDS = 5.0
PULL_SPARE_SECONDS = 5.0
MASTER_ID = "0"
PERM_READ, PERM_WRITE = 4, 2
PULL_MAX = 32
SUSPEND, SUBSCRIBE = 2, 4
"""Bits of a pull's sysFlag: wait for messages; the subscription comes with the request."""

GROUP = "PYRITEMQ_TOOLS"
"""Whom we send and read as; no offset is ever committed for it."""


class ClientError(Exception):
    """What a user can be told in a sentence; `code` is the server's, if it answered."""

    def __init__(self, sentence: str, code: int | None = None) -> None:
        super().__init__(sentence)
        self.code = code


class Queue(NamedTuple):
    """One queue of a topic, and where it is."""

    topic: str
    broker: str
    address: str
    queue_id: int


class Sent(NamedTuple):
    message_id: str
    unique_id: str
    queue: Queue
    offset: int
    is_durable: bool


class Pulled(NamedTuple):
    records: list[Record]
    next_offset: int


@asynccontextmanager
async def open_client(namesrv: str) -> AsyncIterator[Client]:
    """A client for the name servers `host:port;host:port`; leaving the block closes it."""
    async with open_remoting_client() as remoting:
        yield Client(remoting, namesrv)


class Client:
    """Calls that raise ClientError where the server says no or nothing at all."""

    def __init__(self, remoting: RemotingClient, namesrv: str) -> None:
        self._remoting = remoting
        self._name_servers = [part.strip() for part in namesrv.split(";") if part.strip()]
        if not self._name_servers:
            raise ClientError("no name server was given")
        self._turn = itertools.count()
        self._numbers = itertools.count()

    async def call(
        self,
        address: str,
        code: RequestCode,
        fields: Mapping[str, object] | None = None,
        body: bytes = b"",
        *,
        timeout_s: float = TIMEOUT_SECONDS,
        accept: tuple[int, ...] = (ResponseCode.SUCCESS,),
    ) -> Command:
        """A request to a server, and its reply if the code is one of those."""
        texts = {name: _text(value) for name, value in (fields or {}).items() if value is not None}
        command = Command(int(code), ext_fields=texts, body=body, language=LanguageCode.PYTHON)
        try:
            reply = await self._remoting.invoke(address, command, timeout_s=timeout_s)
        except RemotingError as error:
            raise ClientError(str(error)) from None
        if reply.code not in accept:
            name = _code_name(reply.code)
            raise ClientError(f"{address} answers {name}: {reply.remark or '-'}", reply.code)
        return reply

    async def ask_namesrv(
        self, code: RequestCode, fields: Mapping[str, object] | None = None
    ) -> Command:
        """The answer of the first name server that can be reached."""
        failure: ClientError | None = None
        for address in self._name_servers:
            try:
                return await self.call(address, code, fields)
            except ClientError as error:
                if error.code is not None:
                    raise
                failure = error
        assert failure is not None
        raise failure

    # -- where things are ---------------------------------------------------------------------

    async def brokers(self) -> dict[str, str]:
        """Addresses of the masters by name."""
        reply = await self.ask_namesrv(RequestCode.GET_BROKER_CLUSTER_INFO)
        table = _json(reply)["brokerAddrTable"]
        return {name: address for name, one in table.items() if (address := _master(one))}

    async def queues(self, topic: str, *, perm: int) -> list[Queue]:
        """All queues of a topic that may be read (4) or written (2)."""
        try:
            reply = await self.ask_namesrv(RequestCode.GET_ROUTEINFO_BY_TOPIC, {"topic": topic})
        except ClientError as error:
            if error.code == ResponseCode.TOPIC_NOT_EXIST:
                raise ClientError(f"there is no topic {topic}", error.code) from None
            raise
        route = _json(reply)
        addresses = {one["brokerName"]: _master(one) for one in route["brokerDatas"]}
        kind = "readQueueNums" if perm == PERM_READ else "writeQueueNums"
        return [
            Queue(topic, one["brokerName"], address, queue_id)
            for one in sorted(route["queueDatas"], key=lambda one: str(one["brokerName"]))
            if one["perm"] & perm and (address := addresses.get(one["brokerName"]))
            for queue_id in range(one[kind])
        ]

    # -- topics -------------------------------------------------------------------------------

    async def topics(self) -> dict[str, dict[str, Any]]:
        """The configurations of all topics, by name and broker."""
        found: dict[str, dict[str, Any]] = {}
        for broker, address in (await self.brokers()).items():
            reply = await self.call(address, RequestCode.GET_ALL_TOPIC_CONFIG)
            for name, config in _json(reply)["topicConfigTable"].items():
                found.setdefault(name, {})[broker] = config
        return found

    async def system_topics(self) -> set[str]:
        found: set[str] = set()
        for address in (await self.brokers()).values():
            reply = await self.call(address, RequestCode.GET_SYSTEM_TOPIC_LIST_FROM_BROKER)
            found.update(_json(reply).get("topicList") or ())
        return found

    async def create_topic(self, topic: str, *, queue_nums: int, perm: int = 6) -> None:
        """Make or change a topic on every broker."""
        fields = {"topic": topic, "defaultTopic": "TBW102", "perm": perm, "order": False}
        fields |= {"readQueueNums": queue_nums, "writeQueueNums": queue_nums}
        fields |= {"topicFilterType": "SINGLE_TAG", "topicSysFlag": 0}
        for address in (await self.brokers()).values():
            await self.call(address, RequestCode.UPDATE_AND_CREATE_TOPIC, fields)

    async def delete_topic(self, topic: str) -> None:
        """Everywhere: on brokers, and in the name servers' routes."""
        if topic not in await self.topics():
            raise ClientError(f"there is no topic {topic}", ResponseCode.TOPIC_NOT_EXIST)
        for address in (await self.brokers()).values():
            await self.call(address, RequestCode.DELETE_TOPIC_IN_BROKER, {"topic": topic})
        for address in self._name_servers:
            await self.call(address, RequestCode.DELETE_TOPIC_IN_NAMESRV, {"topic": topic})

    async def topic_stats(self, topic: str) -> dict[Queue, dict[str, int]]:
        """minOffset, maxOffset and lastUpdateTimestamp of each queue."""
        addresses = {queue.address for queue in await self.queues(topic, perm=PERM_READ)}
        found = {}
        for address in sorted(addresses):
            reply = await self.call(address, RequestCode.GET_TOPIC_STATS_INFO, {"topic": topic})
            for key, stats in _json(reply)["offsetTable"].items():
                found[Queue(key["topic"], key["brokerName"], address, key["queueId"])] = stats
        return found

    # -- groups -------------------------------------------------------------------------------

    async def groups(self) -> dict[str, dict[str, Any]]:
        """Configurations of all groups, by name."""
        found: dict[str, dict[str, Any]] = {}
        for address in (await self.brokers()).values():
            reply = await self.call(address, RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG)
            found |= _json(reply)["subscriptionGroupTable"]
        return found

    async def create_group(self, group: str) -> None:
        body = fastjson.dumps({"groupName": group})
        for address in (await self.brokers()).values():
            await self.call(address, RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, {}, body)

    async def delete_group(self, group: str) -> None:
        if group not in await self.groups():
            raise ClientError(f"there is no group {group}")
        fields = {"groupName": group, "cleanOffset": True}
        for address in (await self.brokers()).values():
            await self.call(address, RequestCode.DELETE_SUBSCRIPTIONGROUP, fields)

    async def progress(self, group: str) -> dict[Queue, dict[str, int]]:
        """brokerOffset, consumerOffset and lastTimestamp of each queue that it consumes."""
        found = {}
        for address in (await self.brokers()).values():
            reply = await self.call(
                address,
                RequestCode.GET_CONSUME_STATS,
                {"consumerGroup": group},
                accept=(ResponseCode.SUCCESS, ResponseCode.CONSUMER_NOT_ONLINE),
            )
            for key, stats in (_json(reply).get("offsetTable") or {}).items():
                found[Queue(key["topic"], key["brokerName"], address, key["queueId"])] = stats
        return found

    async def members(self, group: str) -> list[dict[str, Any]]:
        """clientId, clientAddr, language and version of who is connected."""
        found: dict[str, dict[str, Any]] = {}
        for address in (await self.brokers()).values():
            reply = await self.call(
                address,
                RequestCode.GET_CONSUMER_CONNECTION_LIST,
                {"consumerGroup": group},
                accept=(ResponseCode.SUCCESS, ResponseCode.CONSUMER_NOT_ONLINE),
            )
            if reply.code == ResponseCode.SUCCESS:
                found |= {one["clientId"]: one for one in _json(reply).get("connectionSet") or ()}
        return list(found.values())

    # -- messages -----------------------------------------------------------------------------

    async def send(
        self,
        topic: str,
        body: bytes,
        *,
        properties: Mapping[str, str] | None = None,
        queue: Queue | None = None,
    ) -> Sent:
        """Store a message; the next queue in turn unless one is given.  A topic that is not there
        is made by the broker, where it may."""
        if queue is None:
            queue = await self._next_queue(topic)
        unique_id = self._unique_id()
        pairs = {"UNIQ_KEY": unique_id, "WAIT": "true"} | dict(properties or {})
        header = SendMessageHeader(
            producer_group=GROUP,
            topic=topic,
            default_topic="TBW102",
            default_topic_queue_nums=4,
            queue_id=queue.queue_id,
            sys_flag=0,
            born_timestamp=int(time.time() * 1000),
            flag=0,
            properties=encode_properties(pairs).decode(),
        )
        not_durable = (ResponseCode.FLUSH_DISK_TIMEOUT, ResponseCode.FLUSH_SLAVE_TIMEOUT)
        reply = await self.call(
            queue.address,
            RequestCode.SEND_MESSAGE_V2,
            header.encode_v2(),
            body,
            accept=(ResponseCode.SUCCESS, *not_durable, ResponseCode.SLAVE_NOT_AVAILABLE),
        )
        fields = reply.ext_fields
        stored_in = queue._replace(queue_id=int(fields["queueId"]))
        return Sent(
            fields["msgId"],
            unique_id,
            stored_in,
            int(fields["queueOffset"]),
            reply.code not in not_durable,
        )

    async def _next_queue(self, topic: str) -> Queue:
        try:
            queues = await self.queues(topic, perm=PERM_WRITE)
        except ClientError as error:
            if error.code != ResponseCode.TOPIC_NOT_EXIST:
                raise
            queues = [
                queue._replace(topic=topic)
                for queue in await self.queues("TBW102", perm=PERM_WRITE)
                if queue.queue_id == 0
            ]
        if not queues:
            raise ClientError(f"no queue of {topic} may be written")
        return queues[next(self._turn) % len(queues)]

    def _unique_id(self) -> str:
        """As long as a Java client's, and as unlikely to come twice."""
        return f"{os.urandom(12).hex()}{next(self._numbers) & 0xFFFFFFFF:08x}".upper()

    async def offset(self, queue: Queue, code: RequestCode, **fields: object) -> int:
        """GET_MIN_OFFSET, GET_MAX_OFFSET, or SEARCH_OFFSET_BY_TIMESTAMP with its timestamp."""
        asked = {"topic": queue.topic, "queueId": queue.queue_id} | fields
        reply = await self.call(queue.address, code, asked)
        return int(reply.ext_fields["offset"])

    async def pull(
        self, queue: Queue, offset: int, *, tags: str = "*", count: int = PULL_MAX, wait_ms: int = 0
    ) -> Pulled:
        """Messages from an offset on; waits for the first one if there is none."""
        header = PullMessageHeader(
            consumer_group=GROUP,
            topic=queue.topic,
            queue_id=queue.queue_id,
            queue_offset=offset,
            max_msg_nums=count,
            sys_flag=SUBSCRIBE | (SUSPEND if wait_ms else 0),
            commit_offset=0,
            suspend_timeout_millis=wait_ms,
            subscription=tags,
            sub_version=0,
            expression_type="TAG",
        )
        nothing = (
            ResponseCode.PULL_NOT_FOUND,
            ResponseCode.PULL_RETRY_IMMEDIATELY,
            ResponseCode.PULL_OFFSET_MOVED,
        )
        reply = await self.call(
            queue.address,
            RequestCode.PULL_MESSAGE,
            header.encode(),
            timeout_s=wait_ms / 1000 + PULL_SPARE_SECONDS,
            accept=(ResponseCode.SUCCESS, *nothing),
        )
        records = _records(reply) if reply.code == ResponseCode.SUCCESS else []
        return Pulled(records, int(reply.ext_fields["nextBeginOffset"]))

    async def message(self, message_id: str) -> Record:
        """The message of an id that names its place (`msgId` of a send)."""
        try:
            place = parse_message_id(message_id)
        except ValueError:
            raise ClientError(f"{message_id!r} is no message id") from None
        fields = {"offset": place.phy_offset, "topic": ""}
        addresses = (await self.brokers()).values()
        # The id's own address may be one from inside a container: then the port has to do.
        exact = [one for one in addresses if one == f"{place.ip}:{place.port}"]
        near = [one for one in addresses if one.rpartition(":")[2] == str(place.port)]
        for address in exact or near:
            reply = await self.call(address, RequestCode.VIEW_MESSAGE_BY_ID, fields)
            return _records(reply)[0]
        raise ClientError(f"no broker of the cluster has port {place.port}")

    async def messages(self, topic: str, key: str, *, count: int = PULL_MAX) -> list[Record]:
        """By key, or by the id that a client gave."""
        addresses = {queue.address for queue in await self.queues(topic, perm=PERM_READ)}
        fields = {"topic": topic, "key": key, "maxNum": count, "beginTimestamp": 0}
        fields["endTimestamp"] = (1 << 63) - 1
        found: dict[int, Record] = {}
        for address in sorted(addresses):
            for by_id in (False, True):
                asked = fields | ({"_UNIQUE_KEY_QUERY": "true"} if by_id else {})
                reply = await self.call(
                    address,
                    RequestCode.QUERY_MESSAGE,
                    asked,
                    accept=(ResponseCode.SUCCESS, ResponseCode.QUERY_NOT_FOUND),
                )
                if reply.code == ResponseCode.SUCCESS:
                    found |= {record.phy_offset: record for record in _records(reply)}
        return list(found.values())

    async def runtime(self, address: str) -> dict[str, str]:
        """GET_BROKER_RUNTIME_INFO."""
        table: dict[str, str] = _json(
            await self.call(address, RequestCode.GET_BROKER_RUNTIME_INFO)
        )["table"]
        return table


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _code_name(code: int) -> str:
    try:
        return ResponseCode(code).name
    except ValueError:
        return f"code {code}"


def _json(reply: Command) -> Any:  # noqa: ANN401  (JSON holds anything)
    try:
        return fastjson.loads(reply.body) if reply.body else {}
    except ValueError as error:
        raise ClientError(f"the server's answer cannot be read: {error}") from None


def _records(reply: Command) -> list[Record]:
    try:
        return decode_records(reply.body)
    except RecordError as error:
        raise ClientError(f"the server's answer cannot be read: {error}") from None


def _master(broker: Mapping[str, Any]) -> str | None:
    """JSON of Java's name server has numbers for keys, ours has texts."""
    addresses = {str(key): address for key, address in broker["brokerAddrs"].items()}
    return addresses.get(MASTER_ID)
