"""namesrv.conf: everything a name server can be told, under Java's names and with Java's defaults.

NamesrvConfig holds the properties of three Java classes in one object, because one file sets them
all. Handlers read it on every lane, and UPDATE_NAMESRV_CONFIG changes it through `update`.
"""

from pyritemq.compat.conf.namesrv import NamesrvTable
from pyritemq.compat.conf.netty import NettyClientTable, NettyServerTable
from pyritemq.compat.conf.settings import Int, key

# What GET_NAMESRV_CONFIG shows and UPDATE_NAMESRV_CONFIG keeps: NamesrvController's Configuration.
NAMESRV_CONFIG_SECTIONS = ("NamesrvConfig", "NettyServerConfig")

# Kept from UPDATE_NAMESRV_CONFIG whatever configBlackList says (DefaultRequestProcessor, 5.5.0):
# each of them names a path that the server would then write to.
_NEVER_UPDATED = frozenset({"configBlackList", "configStorePath", "kvConfigPath", "rocketmqHome"})


class NamesrvConfig(NamesrvTable, NettyServerTable, NettyClientTable):
    """A name server's configuration; attributes are the snake_case of Java's property names."""

    SECTION = "NettyServerConfig"
    listen_port: Int = key(9876, used=True, at_least=0, at_most=65535)  # NamesrvStartup sets it

    @property
    def black_listed_keys(self) -> frozenset[str]:
        """Keys that a client may not update."""
        return _NEVER_UPDATED.union(self.config_black_list.split(";"))
