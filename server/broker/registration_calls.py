"""What a broker says to a name server, and what it makes of the answers (Java: BrokerOuterAPI).

Called by `registration`, on the trio loop.  Bodies are built for each call from the topic table's
current snapshot, so what is sent is one consistent version.
"""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING

import trio

from pyritemq.compat import fastjson
from pyritemq.compat.register_body import DataVersion, RegisterBrokerBody
from pyritemq.protocol.codes import RequestCode, ResponseCode
from pyritemq.protocol.command import Command
from pyritemq.protocol.errors import ProtocolError
from pyritemq.protocol.headers.registration import (
    BrokerHeartbeatHeader,
    QueryDataVersionHeader,
    QueryDataVersionReplyHeader,
    RegisterBrokerHeader,
    RegisterBrokerReplyHeader,
    UnRegisterBrokerHeader,
)
from pyritemq.protocol.headers.route import RegisterTopicHeader
from pyritemq.server.broker.state.topics import PERM_READ, PERM_WRITE

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pyritemq.compat.broker_conf import BrokerConfig
    from pyritemq.compat.register_body import TopicConfig
    from pyritemq.protocol.fields import Header
    from pyritemq.server.broker.state.queue_mappings import QueueMappingTable
    from pyritemq.server.broker.state.topics import TopicTable
    from pyritemq.server.remoting_client import RemotingClient

CRC_MASK = 0x7FFFFFFF
"""Java keeps its CRC a positive int (UtilAll.crc32)."""


class RegistrationRefused(Exception):  # noqa: N818 - an answer of the other side
    """A name server answered, and not with SUCCESS."""


class RegistrationCalls:
    """Requests to name servers on behalf of one broker."""

    def __init__(
        self,
        config: BrokerConfig,
        topics: TopicTable,
        mappings: QueueMappingTable,
        *,
        advertised_address: str,
    ) -> None:
        self._config = config
        self._topics = topics
        self._mappings = mappings
        self.advertised_address = advertised_address
        self.master_address: str | None = None
        self.ha_server_address: str | None = None
        self._told: dict[str, DataVersion] = {}

    async def register_all(self, client: RemotingClient, address: str) -> None:
        """Register with all topics.  Raises RemotingError, RegistrationRefused."""
        table, version = self._topics.snapshot
        for part in self._parts(table):
            await self._register(client, address, part, version)

    async def register_some(
        self, client: RemotingClient, address: str, names: Sequence[str]
    ) -> None:
        """Register topics that changed.  Raises RemotingError, RegistrationRefused.

        A name server passes over known topics under a version that it has.  It may have the one of
        these changes already: another topic was told between the change and its note, which waits
        for the disk.  Java loses such a change until the next one.
        """
        if self._topics.snapshot.data_version == self._told.get(address):
            await trio.to_thread.run_sync(self._topics.new_version)
        table, version = self._topics.snapshot
        changed = {name: table[name] for name in names if name in table}
        if self._config.enable_single_topic_register:
            for topic in changed.values():
                await self._register_topic(client, address, self._masked(topic))
        elif changed:
            await self._register(client, address, changed, version)

    async def needs_register(self, client: RemotingClient, address: str) -> bool:
        """Whether a name server has another version of our topics.  Raises RemotingError."""
        version = self._topics.snapshot.data_version
        reply = await client.invoke(
            address, self._version_query(version), timeout_s=self._timeout_s
        )
        if reply.code != ResponseCode.SUCCESS:
            return False
        try:
            changed = QueryDataVersionReplyHeader.decode(reply.ext_fields).changed
            return changed or (bool(reply.body) and DataVersion.decode(reply.body) != version)
        except (ProtocolError, ValueError):
            return True

    async def heartbeat(self, client: RemotingClient, address: str) -> None:
        """A sign of life, in the form that old name servers take too.  Raises RemotingError."""
        config = self._config
        if config.compatible_with_old_name_srv:
            command = self._version_query(self._topics.snapshot.data_version)
        else:
            command = _request(
                RequestCode.BROKER_HEARTBEAT,
                BrokerHeartbeatHeader(
                    cluster_name=config.broker_cluster_name,
                    broker_addr=self.advertised_address,
                    broker_name=config.broker_name,
                ),
            )
        timeout_s = config.send_heartbeat_timeout_millis / 1000
        await client.invoke_oneway(address, command, timeout_s=timeout_s)

    async def unregister(
        self, client: RemotingClient, address: str, *, advertised: str, timeout_s: float
    ) -> None:
        """Take an address of ours out of its table.  Raises RemotingError, RegistrationRefused."""
        config = self._config
        header = UnRegisterBrokerHeader(
            broker_name=config.broker_name,
            broker_addr=advertised,
            cluster_name=config.broker_cluster_name,
            broker_id=config.broker_id,
        )
        command = _request(RequestCode.UNREGISTER_BROKER, header)
        _check(await client.invoke(address, command, timeout_s=timeout_s))

    async def _register(
        self,
        client: RemotingClient,
        address: str,
        topics: Mapping[str, TopicConfig],
        version: DataVersion,
    ) -> None:
        command = self._register_command(topics, version)
        reply = _check(await client.invoke(address, command, timeout_s=self._timeout_s))
        self._told[address] = version
        header = RegisterBrokerReplyHeader.decode(reply.ext_fields)
        self.master_address = header.master_addr
        self.ha_server_address = header.ha_server_addr
        await self._mark_ordered(reply)

    def _register_command(self, topics: Mapping[str, TopicConfig], version: DataVersion) -> Command:
        config = self._config
        masked = {name: self._masked(topic) for name, topic in topics.items()}
        # Java 5.5.0 compresses the body with compressedRegister=true but says `compressed=false`,
        # so that its own name server refuses it; the header here says what the body is.
        compressed = config.compressed_register
        body = RegisterBrokerBody(
            masked,
            version,
            queue_mappings=self._mappings.infos(topics),
            mapping_data_version=self._mappings.snapshot.data_version,
        ).encode(compressed=compressed)
        acting = config.enable_slave_acting_master
        header = RegisterBrokerHeader(
            broker_name=config.broker_name,
            broker_addr=self.advertised_address,
            cluster_name=config.broker_cluster_name,
            ha_server_addr=f"{config.broker_ip2}:{config.ha_port}",
            broker_id=config.broker_id,
            heartbeat_timeout_millis=config.broker_not_active_timeout_millis if acting else None,
            enable_acting_master=acting,
            compressed=compressed,
            body_crc32=zlib.crc32(body) & CRC_MASK,
        )
        return _request(RequestCode.REGISTER_BROKER, header, body)

    async def _register_topic(
        self, client: RemotingClient, address: str, topic: TopicConfig
    ) -> None:
        queues = {
            "brokerName": self._config.broker_name,
            "perm": topic.perm,
            "readQueueNums": topic.read_queue_nums,
            "topicSysFlag": topic.topic_sys_flag,
            "writeQueueNums": topic.write_queue_nums,
        }
        body = fastjson.dumps({"queueDatas": [queues]})
        header = RegisterTopicHeader(topic=topic.topic_name)
        command = _request(RequestCode.REGISTER_TOPIC_IN_NAMESRV, header, body)
        _check(await client.invoke(address, command, timeout_s=self._timeout_s))

    async def _mark_ordered(self, reply: Command) -> None:
        """The reply's body lists the topics that are ordered across brokers."""
        try:
            data = fastjson.loads(reply.body) if reply.body else {}
        except fastjson.FastjsonError:
            raise RegistrationRefused("its reply's body is not JSON") from None
        table = data.get("table") if isinstance(data, dict) else None
        new = [name for name in table or () if not self._topics.is_order_topic(str(name))]
        if new:
            await trio.to_thread.run_sync(self._topics.set_ordered, new)

    def _version_query(self, version: DataVersion) -> Command:
        config = self._config
        header = QueryDataVersionHeader(
            broker_name=config.broker_name,
            broker_addr=self.advertised_address,
            cluster_name=config.broker_cluster_name,
            broker_id=config.broker_id,
        )
        return _request(RequestCode.QUERY_DATA_VERSION, header, version.encode())

    def _parts(self, table: Mapping[str, TopicConfig]) -> Iterator[Mapping[str, TopicConfig]]:
        """All topics at once, or in portions (enableSplitRegistration)."""
        config = self._config
        size = config.split_registration_size if config.enable_split_registration else 0
        if not 0 < size < len(table):
            yield table
            return
        items = list(table.items())
        for start in range(0, len(items), size):
            yield dict(items[start : start + size])

    def _masked(self, topic: TopicConfig) -> TopicConfig:
        """A broker that may not be read or written says so for each topic."""
        permission = self._config.broker_permission
        both = PERM_READ | PERM_WRITE
        return topic if permission & both == both else topic.with_perm(topic.perm & permission)

    @property
    def _timeout_s(self) -> float:
        return self._config.register_broker_timeout_mills / 1000


def _request(code: RequestCode, header: Header, body: bytes = b"") -> Command:
    return Command(code, ext_fields=header.encode(), body=body)


def _check(reply: Command) -> Command:
    if reply.code != ResponseCode.SUCCESS:
        raise RegistrationRefused(f"code {reply.code}, {reply.remark}")
    return reply
