"""Name servers and brokers as the data source asks them: routes, offsets, connections."""

from collections.abc import Iterable
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Final, Self

from pyritemq.compat import fastjson
from pyritemq.protocol.codes import RequestCode, ResponseCode
from pyritemq.protocol.command import Command
from pyritemq.spark.errors import BrokerError
from pyritemq.spark.queues import QueueKey
from pyritemq.spark.wire_client import Fields, RefusedError, WireClient

MASTER: Final = 0
READABLE: Final = 4  # bits of a queue's perm (Java: PermName)
WRITABLE: Final = 2
DEFAULT_TOPIC: Final = "TBW102"  # brokers that make topics on their first message have it


@dataclass(frozen=True, slots=True)
class TopicQueues:
    """A topic on one broker."""

    broker: str
    read_queues: int
    write_queues: int


class Cluster:
    """Connections to one cluster, opened when they are needed. One thread uses it."""

    def __init__(self, namesrv: str, *, timeout_ms: int) -> None:
        self._namesrvs = [address.strip() for address in namesrv.split(";")]
        self._timeout_ms = timeout_ms
        self._clients: dict[str, WireClient] = {}
        self._addresses: dict[str, str] = {}  # by broker name

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        for client in self._clients.values():
            client.close()
        self._clients.clear()

    def client(self, address: str) -> WireClient:
        if address not in self._clients:
            self._clients[address] = WireClient(address, timeout_ms=self._timeout_ms)
        return self._clients[address]

    def drop(self, address: str, broken: WireClient | None = None) -> None:
        """Forget a connection that broke; one that was opened in its stead stays."""
        client = self._clients.get(address)
        if client is not None and broken in (None, client):
            client.close()
            del self._clients[address]

    # -- name servers -------------------------------------------------------------------------

    def _ask(self, code: RequestCode, fields: Fields) -> Command:
        """The first name server that answers."""
        failure: BrokerError | None = None
        for address in self._namesrvs:
            for _ in range(2):  # a kept connection may have been closed by the other side
                try:
                    return self.client(address).call(code, fields)
                except RefusedError:
                    raise
                except BrokerError as error:
                    self.drop(address)
                    failure = error
        assert failure is not None
        raise failure

    def topics(self) -> list[str]:
        reply = self._ask(RequestCode.GET_ALL_TOPIC_LIST_FROM_NAMESERVER, {})
        return sorted(set(_json(reply).get("topicList") or []))

    def route(self, topic: str) -> list[TopicQueues]:
        """Where a topic is; nowhere, if no broker has told of it."""
        try:
            reply = self._ask(RequestCode.GET_ROUTEINFO_BY_TOPIC, {"topic": topic})
        except RefusedError as error:
            if error.code == ResponseCode.TOPIC_NOT_EXIST:
                return []
            raise
        return self._read_route(topic, _json(reply))

    def _read_route(self, topic: str, route: dict[str, Any]) -> list[TopicQueues]:
        found: list[TopicQueues] = []
        try:
            for broker in route.get("brokerDatas") or []:
                addresses = {int(at): text for at, text in broker["brokerAddrs"].items()}
                if addresses:
                    self._addresses[broker["brokerName"]] = addresses[min(addresses)]
            for queues in route.get("queueDatas") or []:
                perm = int(queues["perm"])
                found.append(
                    TopicQueues(
                        queues["brokerName"],
                        int(queues["readQueueNums"]) if perm & READABLE else 0,
                        int(queues["writeQueueNums"]) if perm & WRITABLE else 0,
                    )
                )
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise BrokerError(f"the route of topic '{topic}' cannot be read: {error!r}") from error
        return [each for each in found if each.broker in self._addresses]

    def queues(self, topics: Iterable[str]) -> list[QueueKey]:
        return sorted(
            QueueKey(topic, queues.broker, queue_id)
            for topic in topics
            for queues in self.route(topic)
            for queue_id in range(queues.read_queues)
        )

    # -- brokers ------------------------------------------------------------------------------

    def address(self, key: QueueKey) -> str:
        """The broker that has the queue."""
        if key.broker not in self._addresses:
            self.route(key.topic)
        if key.broker not in self._addresses:
            raise BrokerError(f"no name server knows a broker '{key.broker}' with {key.topic}")
        return self._addresses[key.broker]

    def broker_call(self, key: QueueKey, code: RequestCode, **fields: object) -> Command:
        """A call about one queue; tried again once, on a new connection and a new route."""
        asked: Fields = {"topic": key.topic, "queueId": key.queue_id, **fields}
        address = self.address(key)
        try:
            return self.client(address).call(code, asked)
        except RefusedError:
            raise
        except BrokerError:
            self.drop(address)
            self.route(key.topic)
        return self.client(self.address(key)).call(code, asked)

    def offset(self, key: QueueKey, code: RequestCode, **fields: object) -> int:
        return _offset(key, self.address(key), self.broker_call(key, code, **fields))

    def bounds(self, keys: list[QueueKey]) -> dict[QueueKey, tuple[int, int]]:
        """First and next offset of each queue: all asked for at once, then the answers taken."""
        asked: list[tuple[QueueKey, WireClient, int, int]] = []
        try:
            for key in keys:
                client = self.client(self.address(key))
                fields: Fields = {"topic": key.topic, "queueId": key.queue_id}
                low = client.send(RequestCode.GET_MIN_OFFSET, fields)
                high = client.send(RequestCode.GET_MAX_OFFSET, fields)
                asked.append((key, client, low, high))
            return {
                key: _bounds(key, client, client.receive(low), client.receive(high))
                for key, client, low, high in asked
            }
        except RefusedError:
            raise
        except BrokerError:  # a kept connection may have broken: one by one, each tried again
            self.close()
        return {key: self._bounds_alone(key) for key in keys}

    def _bounds_alone(self, key: QueueKey) -> tuple[int, int]:
        low = self.offset(key, RequestCode.GET_MIN_OFFSET)
        high = self.offset(key, RequestCode.GET_MAX_OFFSET)
        return max(min(low, high), 0), max(high, 0)


def _bounds(key: QueueKey, client: WireClient, low: Command, high: Command) -> tuple[int, int]:
    for code, reply in ((RequestCode.GET_MIN_OFFSET, low), (RequestCode.GET_MAX_OFFSET, high)):
        if reply.code != ResponseCode.SUCCESS:
            raise client.refused(code, reply)
    first, following = _offset(key, client.address, low), _offset(key, client.address, high)
    return max(min(first, following), 0), max(following, 0)


def _offset(key: QueueKey, address: str, reply: Command) -> int:
    try:
        return int(reply.ext_fields["offset"])
    except (KeyError, ValueError) as error:
        raise BrokerError(f"{address} gave no offset for {key}") from error


def _json(reply: Command) -> dict[str, Any]:
    try:
        tree = fastjson.loads(bytes(reply.body) or b"{}")
    except fastjson.FastjsonError as error:
        raise BrokerError(f"a name server's answer cannot be read: {error}") from error
    if not isinstance(tree, dict):
        raise BrokerError("a name server's answer is no object")
    return tree
