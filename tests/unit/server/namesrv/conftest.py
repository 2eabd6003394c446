"""A name server without sockets: `ask` runs a request through its declared handler."""

from types import SimpleNamespace

import pytest

import pyritemq.server.namesrv.processors  # noqa: F401 - fills the registry
from pyritemq.compat.conf.settings import HostFacts
from pyritemq.compat.fastjson import dumps
from pyritemq.compat.namesrv_conf import NamesrvConfig
from pyritemq.protocol.codes import RequestCode
from pyritemq.protocol.command import Command
from pyritemq.protocol.errors import ProtocolError
from pyritemq.server.failures import reply_to_failure
from pyritemq.server.namesrv.namesrv import NameServer
from pyritemq.server.registry import Request, RequestRefused, namesrv_handlers
from pyritemq.storage.errors import StorageError


class FakeClock:
    def __init__(self):
        self.ms = 1_000_000

    def now_ms(self):
        return self.ms

    def monotonic_ns(self):
        return self.ms * 1_000_000


class FakeChannel:
    remote_address = "10.9.9.9:5000"

    def __init__(self):
        self.closed = False

    def close(self):
        self.closed = True


@pytest.fixture
def clock():
    return FakeClock()


@pytest.fixture
def make_channel():
    return FakeChannel


@pytest.fixture
def config(tmp_path):
    return NamesrvConfig(HostFacts(home=str(tmp_path)))


@pytest.fixture
def namesrv(config, clock):
    return NameServer(config, clock=clock)


@pytest.fixture
def ask(namesrv):
    """Ask as the lane does: decode the declared header, run the handler, map what it raises."""

    def run(code, ext=None, body=b"", *, channel=None, version=513):
        handler = namesrv_handlers.table()[code]
        command = Command(
            code, version=version, opaque=7, ext_fields=dict(ext or {}), body=memoryview(body)
        )
        request = Request(command, channel or FakeChannel(), handler, 0)
        try:
            request.header = handler.header and handler.header.decode(command.ext_fields)
            return handler.single(namesrv, request)
        except (RequestRefused, ProtocolError, StorageError) as error:
            return reply_to_failure(request, error)

    return run


def topic_json(name, *, queues=4, perm=6, sys_flag=0):
    return {
        "attributes": {},
        "order": False,
        "perm": perm,
        "readQueueNums": queues,
        "topicFilterType": "SINGLE_TAG",
        "topicName": name,
        "topicSysFlag": sys_flag,
        "writeQueueNums": queues,
    }


@pytest.fixture
def topic():
    return topic_json


@pytest.fixture
def register(ask):
    """Register as a Java broker does; topics are names or the JSON of TopicConfig."""

    def run(
        name="broker-a",
        *,
        address="10.0.0.1:10911",
        broker_id=0,
        cluster="C1",
        topics=("T1", "T2"),
        counter=1,
        state_version=0,
        channel=None,
        ext=None,
        filter_servers=(),
        mappings=None,
    ):
        configs = [topic_json(t) if isinstance(t, str) else t for t in topics]
        wrapper = {
            "dataVersion": {"counter": counter, "stateVersion": state_version, "timestamp": 5},
            "mappingDataVersion": {"counter": 0, "stateVersion": 0, "timestamp": 1},
            "topicConfigTable": {config["topicName"]: config for config in configs},
            "topicQueueMappingDetailMap": {},
            "topicQueueMappingInfoMap": mappings or {},
        }
        body = dumps(
            {"filterServerList": list(filter_servers), "topicConfigSerializeWrapper": wrapper}
        )
        fields = {
            "brokerName": name,
            "brokerAddr": address,
            "clusterName": cluster,
            "haServerAddr": address.replace("10911", "10912"),
            "brokerId": str(broker_id),
            "compressed": "false",
            "bodyCrc32": "0",
            "enableActingMaster": "false",
        }
        fields.update(ext or {})
        fields = {key: value for key, value in fields.items() if value is not None}
        return ask(RequestCode.REGISTER_BROKER, fields, body, channel=channel)

    return run


@pytest.fixture
def java():
    """The bodies that RocketMQ 5.5.0's classes encode for the same tables."""
    return SimpleNamespace(
        route_old=(
            b'{"brokerDatas":[{"brokerAddrs":{0:"10.0.0.1:10911",1:"10.0.0.2:10911"},'
            b'"brokerName":"broker-a","cluster":"C1","enableActingMaster":false}],'
            b'"filterServerTable":{},"queueDatas":[{"brokerName":"broker-a","perm":6,'
            b'"readQueueNums":4,"topicSysFlag":0,"writeQueueNums":4}]}'
        ),
        route_standard=(
            b'{"brokerDatas":[{"brokerAddrs":{"0":"10.0.0.1:10911","1":"10.0.0.2:10911"},'
            b'"brokerName":"broker-a","cluster":"C1","enableActingMaster":false}],'
            b'"filterServerTable":{},"queueDatas":[{"brokerName":"broker-a","perm":6,'
            b'"readQueueNums":4,"topicSysFlag":0,"writeQueueNums":4}]}'
        ),
        cluster=(
            b'{"brokerAddrTable":{"broker-a":{"brokerAddrs":{0:"10.0.0.1:10911",'
            b'1:"10.0.0.2:10911"},"brokerName":"broker-a","cluster":"C1",'
            b'"enableActingMaster":false}},"clusterAddrTable":{"C1":["broker-a"]}}'
        ),
        group=(
            b'{"brokerMemberGroup":{"brokerAddrs":{0:"10.0.0.1:10911",1:"10.0.0.2:10911"},'
            b'"brokerName":"broker-a","cluster":"C1"}}'
        ),
    )
