"""A whole server in this process: name server and broker on free ports, a store of its own."""

import pytest
import trio

from integration.wire import Wire
from pyritemq.compat.broker_conf import BrokerConfig
from pyritemq.compat.namesrv_conf import NamesrvConfig
from pyritemq.server.lifecycle import RunningBroker, RunningNamesrv

# Small files: a test writes a few messages, not gigabytes.  And no send is refused because it has
# waited 200 ms, Java's default: a loaded machine would fail tests that are about something else.
SMALL_STORE = {
    "waitTimeMillsInSendQueue": "60000",
    "mappedFileSizeCommitLog": str(1 << 20),
    "mappedFileSizeConsumeQueue": str(20 * 1000),
}


class Server:
    """A running name server and broker, and connections to them that are closed at the end."""

    def __init__(self, namesrv, broker):
        self.namesrv = namesrv
        self.broker = broker
        self._wires = []

    @property
    def namesrv_address(self):
        return self.namesrv.address

    @property
    def broker_address(self):
        return f"127.0.0.1:{self.broker.config.listen_port}"

    async def connect(self, address=None):
        wire = await Wire.connect(address or self.broker_address)
        self._wires.append(wire)
        return wire

    async def close(self):
        for wire in self._wires:
            await trio.aclose_forcefully(wire.stream)


@pytest.fixture
def start_server(tmp_path, nursery):
    """Starts a server; called again with the same folder after `stop`, it is a restart."""

    async def start(store=tmp_path / "store", **properties):
        namesrv_config, _ = NamesrvConfig.from_properties(
            {
                "listenPort": "0",
                "bindAddress": "127.0.0.1",
                "kvConfigPath": str(tmp_path / "kvConfig.json"),
                "configStorePath": str(tmp_path / "namesrv.properties"),
            }
        )
        namesrv = RunningNamesrv(namesrv_config)
        settings = {
            "listenPort": "0",
            "bindAddress": "127.0.0.1",
            "brokerIP1": "127.0.0.1",
            "brokerName": "broker-a",
            "namesrvAddr": namesrv.address,
            "storePathRootDir": str(store),
        }
        broker_config, warnings = BrokerConfig.from_properties(settings | SMALL_STORE | properties)
        assert warnings == []
        broker = RunningBroker(broker_config, advertise=None)
        await nursery.start(namesrv.run)
        await nursery.start(broker.run)
        return Server(namesrv, broker)

    return start


@pytest.fixture
def stop_server():
    async def stop(server):
        await server.close()
        await server.broker.stop()
        await server.broker.closed.wait()
        server.namesrv.server.stop()
        await server.namesrv.server.stopped.wait()

    return stop


@pytest.fixture
async def server(start_server, stop_server):
    server = await start_server()
    yield server
    with trio.CancelScope(shield=True):
        await stop_server(server)
