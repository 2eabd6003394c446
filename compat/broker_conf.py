"""broker.conf: everything a broker can be told, under Java's names and with Java's defaults.

BrokerConfig holds the properties of five Java classes in one object, because one file sets them
all. Start-up reads it, handlers read it on every lane, and UPDATE_BROKER_CONFIG changes it
through `update`. Where BrokerStartup corrects a value before the broker starts, so does this.
"""

from collections.abc import Mapping
from typing import Self

from pyritemq.compat.conf.auth import AuthTable
from pyritemq.compat.conf.broker import BrokerIdentityTable, BrokerTable
from pyritemq.compat.conf.netty import NettyClientTable, NettyServerTable
from pyritemq.compat.conf.settings import ConfigError, HostFacts, Int, key
from pyritemq.compat.conf.store import StoreTable

MASTER_ID = 0
CONSUME_QUEUE_UNIT_SIZE = 20

# What GET_BROKER_CONFIG shows: the objects that BrokerController registers. AuthConfig is not among
# them, so secrets in innerClientAuthenticationCredentials do not leave the broker.
BROKER_CONFIG_SECTIONS = (
    "BrokerIdentity",
    "BrokerConfig",
    "NettyServerConfig",
    "NettyClientConfig",
    "MessageStoreConfig",
)


class BrokerConfig(
    BrokerIdentityTable, BrokerTable, NettyServerTable, NettyClientTable, StoreTable, AuthTable
):
    """A broker's configuration; attributes are the snake_case of Java's property names."""

    SECTION = "NettyServerConfig"
    # BrokerStartup.configFileToConfigContext sets these two over the defaults of their classes.
    listen_port: Int = key(10911, used=True, important=True, at_least=0, at_most=65535)
    ha_listen_port: Int = key(0, used=True, at_least=0, at_most=65535, section="MessageStoreConfig")

    @classmethod
    def from_properties(
        cls,
        properties: Mapping[str, str],
        *,
        host: HostFacts | None = None,
        source: str = "broker.conf",
    ) -> tuple[Self, list[str]]:
        config, warnings = super().from_properties(properties, host=host, source=source)
        config._settle_role(source)
        config._check_namesrv_addr(source)
        return config, warnings

    @property
    def namesrv_addresses(self) -> list[str]:
        """The `host:port` of each name server; empty when none is set."""
        return [part.strip() for part in (self.namesrv_addr or "").split(";") if part.strip()]

    @property
    def commit_log_dirs(self) -> list[str]:
        """storePathCommitLog, one folder or several, or its place under storePathRootDir."""
        text = self.store_path_commit_log or f"{self.store_path_root_dir}/commitlog"
        return _split_paths(text)

    @property
    def read_only_commit_log_dirs(self) -> list[str]:
        """readOnlyCommitLogStorePaths: folders whose files are read, and which get no new ones."""
        return _split_paths(self.read_only_commit_log_store_paths or "")

    @property
    def consume_queue_file_size(self) -> int:
        """mappedFileSizeConsumeQueue rounded up to whole units, as Java's getter does."""
        units = -(-self.mapped_file_size_consume_queue // CONSUME_QUEUE_UNIT_SIZE)
        return units * CONSUME_QUEUE_UNIT_SIZE

    @property
    def ha_port(self) -> int:
        """haListenPort, or the port after listenPort (BrokerStartup.buildBrokerController)."""
        return self.ha_listen_port or self.listen_port + 1

    def _settle_role(self, source: str) -> None:
        """A master is always brokerId 0, a slave never."""
        if self.enable_controller_mode:
            return
        if self.broker_role != "SLAVE":
            self.broker_id = MASTER_ID
        elif self.broker_id <= MASTER_ID:
            raise ConfigError(f"{source}: brokerId={self.broker_id} must be above 0 for a slave")

    def _check_namesrv_addr(self, source: str) -> None:
        for address in self.namesrv_addresses:
            host, _, port = address.rpartition(":")
            if not host or not (port.isascii() and port.isdigit() and int(port) <= 65535):
                raise ConfigError(
                    f"{source}: namesrvAddr={self.namesrv_addr} must be host:port;host:port …"
                )


def _split_paths(text: str) -> list[str]:
    """Folders that a comma parts (MixAll.MULTI_PATH_SPLITTER), each once."""
    return [*dict.fromkeys(part.strip() for part in text.split(",") if part.strip())]
