"""Registration with name servers, over streams in memory and a clock that jumps."""

from __future__ import annotations

import zlib
from functools import partial

import pytest
import trio
import trio.testing

from pyritemq.compat.register_body import DataVersion, RegisterBrokerBody, TopicConfig
from pyritemq.protocol.codes import RequestCode, ResponseCode
from pyritemq.protocol.frames import FrameDecoder
from pyritemq.server import remoting_client
from pyritemq.server.broker.registration import Registration
from pyritemq.server.remoting_client import RemotingError

REGISTER = RequestCode.REGISTER_BROKER
UNREGISTER = RequestCode.UNREGISTER_BROKER
QUERY = RequestCode.QUERY_DATA_VERSION


class NameServers:
    """Name servers by address: what each was told, and how each behaves."""

    def __init__(self) -> None:
        self.told: dict[str, list] = {}
        self.down: set[str] = set()
        self.silent: set[str] = set()
        self.reply = {}
        self.streams: dict[str, trio.StapledStream] = {}
        self.nursery: trio.Nursery

    async def connect(self, address):
        await trio.lowlevel.checkpoint()
        if address in self.down:
            raise RemotingError(f"no connection to {address}")
        ours, theirs = trio.testing.memory_stream_pair()
        self.streams[address] = theirs
        self.nursery.start_soon(self._serve, address, theirs)
        return ours

    async def _serve(self, address, stream):
        decoder = FrameDecoder()
        try:
            while data := await stream.receive_some():
                for command in decoder.feed(data):
                    self.told.setdefault(address, []).append(command)
                    if address not in self.silent and not command.is_oneway:
                        options = self.reply.get(command.code, {})
                        await stream.send_all(command.make_reply(**options).encode())
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            pass

    def codes(self, address):
        return [command.code for command in self.told.get(address, [])]

    def topics(self, address):
        """The topics of each registration."""
        return [
            set(RegisterBrokerBody.decode(command.body, compressed=False).topics)
            for command in self.told.get(address, [])
            if command.code == REGISTER
        ]


@pytest.fixture
async def servers(monkeypatch, nursery):
    servers = NameServers()
    servers.nursery = nursery
    monkeypatch.setattr(remoting_client, "_connect", servers.connect)
    return servers


@pytest.fixture
def start(config, broker, nursery):
    """A running registration; name servers a:1 and b:1 unless told otherwise."""

    async def started(*addresses):
        config.namesrv_addr = ";".join(addresses or ("a:1", "b:1"))
        registration = Registration(
            config, broker.topics, broker.queue_mappings, advertised_address="192.0.2.9:4444"
        )
        broker.topics.on_change = registration.topics_changed
        await nursery.start(partial(registration.run))
        return registration

    return started


def create(broker, topic):
    return broker.topics.create_on_send_back(topic, queue_nums=1)


async def test_every_name_server_knows_all_topics_once_started(
    servers, start, broker, autojump_clock
):
    await start()
    everything = set(broker.topics.snapshot.table)
    assert servers.topics("a:1") == servers.topics("b:1") == [everything]


async def test_request_is_what_javas_name_server_expects(servers, start, config, autojump_clock):
    await start("a:1")
    (command,) = servers.told["a:1"]
    assert command.ext_fields == {
        "brokerName": "broker-a",
        "brokerAddr": "192.0.2.9:4444",
        "clusterName": "DefaultCluster",
        "haServerAddr": "192.0.2.1:10912",
        "brokerId": "0",
        "enableActingMaster": "false",
        "compressed": "false",
        "bodyCrc32": str(zlib.crc32(command.body) & 0x7FFFFFFF),
    }


async def test_compressed_body_is_called_compressed(servers, start, config, broker, autojump_clock):
    config.compressed_register = True
    await start("a:1")
    (command,) = servers.told["a:1"]
    assert command.ext_fields["compressed"] == "true"
    assert command.ext_fields["bodyCrc32"] == str(zlib.crc32(command.body) & 0x7FFFFFFF)
    body = RegisterBrokerBody.decode(command.body, compressed=True)
    assert body.topics.keys() == broker.topics.snapshot.table.keys()


@pytest.mark.parametrize(("period_ms", "seconds"), [(30_000, 30), (1, 10), (3_600_000, 60)])
async def test_registration_is_repeated_within_javas_bounds(
    servers, start, config, autojump_clock, period_ms, seconds
):
    config.register_name_server_period = period_ms
    await start("a:1")
    await trio.sleep(seconds - 0.1)
    assert len(servers.codes("a:1")) == 1
    await trio.sleep(0.2)
    assert servers.codes("a:1") == [REGISTER, REGISTER]
    assert len(servers.topics("a:1")[1]) > 10


async def test_changed_topics_are_told_at_once_and_alone(servers, start, broker, autojump_clock):
    await start()
    create(broker, "T")
    await trio.testing.wait_all_tasks_blocked()
    create(broker, "U")
    create(broker, "V")
    await trio.testing.wait_all_tasks_blocked()
    for address in ("a:1", "b:1"):
        assert servers.topics(address)[1:] == [{"T"}, {"U", "V"}]
    last = RegisterBrokerBody.decode(servers.told["a:1"][-1].body, compressed=False)
    assert last.data_version == broker.topics.snapshot.data_version


async def test_a_change_whose_version_was_told_with_another_topic_is_told_under_a_new_one(
    servers, start, broker
):
    """A topic got eight queues and its route kept two, for good.

    1. lane: the change is published under version 7, and waits for the disk.
    2. loop: another topic is told, under version 7.
    3. lane: the change is noted; told under version 7 as well, a name server passes over it.
    """
    registration = await start("a:1")
    broker.topics.on_change = lambda topics: None
    create(broker, "%RETRY%first")
    create(broker, "%RETRY%second")
    table = broker.topics.snapshot.table
    for topic in ("%RETRY%first", "%RETRY%second"):
        registration.topics_changed([table[topic]])
        with trio.fail_after(5):
            while not any(topic in told for told in servers.topics("a:1")[1:]):
                await trio.testing.wait_all_tasks_blocked(0.01)
    versions = [
        RegisterBrokerBody.decode(command.body, compressed=False).data_version.counter
        for command in servers.told["a:1"]
    ]
    assert versions == sorted(set(versions))


async def test_topic_deleted_before_it_could_be_told_is_not_told(
    servers, start, broker, autojump_clock
):
    await start("a:1")
    create(broker, "T")
    broker.topics.delete("T")
    await trio.testing.wait_all_tasks_blocked()
    assert servers.codes("a:1") == [REGISTER]


async def test_single_topic_registration(servers, start, config, broker, autojump_clock):
    config.enable_single_topic_register = True
    await start("a:1")
    create(broker, "T")
    await trio.testing.wait_all_tasks_blocked()
    command = servers.told["a:1"][-1]
    assert command.code == RequestCode.REGISTER_TOPIC_IN_NAMESRV
    assert command.ext_fields == {"topic": "T"}
    assert bytes(command.body) == (
        b'{"queueDatas":[{"brokerName":"broker-a","perm":6,"readQueueNums":1,"topicSysFlag":0,'
        b'"writeQueueNums":1}]}'
    )


async def test_dead_and_silent_name_servers_delay_neither_start_nor_topics(
    servers, start, broker, autojump_clock
):
    servers.down.add("b:1")
    servers.silent.add("c:1")
    begin = trio.current_time()
    await start("b:1", "c:1", "a:1")
    assert trio.current_time() - begin <= 3
    create(broker, "T")
    await trio.testing.wait_all_tasks_blocked()
    assert servers.topics("a:1")[1:] == [{"T"}]


async def test_name_server_that_comes_back_gets_everything_soon(
    servers, start, broker, autojump_clock
):
    servers.down.add("a:1")
    await start("a:1")
    create(broker, "T")
    servers.down.clear()
    await trio.sleep(3.1)
    assert servers.topics("a:1") == [set(broker.topics.snapshot.table)]
    await trio.sleep(5)
    assert len(servers.codes("a:1")) == 1


async def test_lost_connection_is_followed_by_a_full_registration(
    servers, start, broker, autojump_clock
):
    await start("a:1")
    await servers.streams["a:1"].aclose()
    await trio.sleep(2.9)
    assert len(servers.codes("a:1")) == 1
    await trio.sleep(0.2)
    assert servers.topics("a:1")[1] == set(broker.topics.snapshot.table)


async def test_refused_change_is_followed_by_a_full_registration(
    servers, start, broker, autojump_clock
):
    """Java's name server refuses a single topic of a broker that it does not know."""
    await start("a:1")
    servers.reply[REGISTER] = {"code": ResponseCode.SYSTEM_ERROR, "remark": "register failed"}
    create(broker, "T")
    await trio.testing.wait_all_tasks_blocked()
    servers.reply.clear()
    await trio.sleep(3.1)
    assert servers.topics("a:1")[1:] == [{"T"}, set(broker.topics.snapshot.table)]


async def test_unforced_registration_asks_for_the_version_first(
    servers, start, config, broker, autojump_clock
):
    config.force_register = False
    version = broker.topics.snapshot.data_version
    servers.reply[QUERY] = {"ext_fields": {"changed": "false"}, "body": version.encode()}
    await start("a:1")
    await trio.sleep(31)
    assert servers.codes("a:1") == [REGISTER, QUERY]
    assert DataVersion.decode(servers.told["a:1"][1].body) == version
    for options in (
        {"ext_fields": {"changed": "true"}},
        {"ext_fields": {"changed": "false"}, "body": DataVersion(1, 2, 3).encode()},
        {"ext_fields": {}},
        {"ext_fields": {"changed": "false"}, "body": b"x"},
    ):
        servers.reply[QUERY] = options
        servers.told.clear()
        await trio.sleep(30)
        assert servers.codes("a:1") == [QUERY, REGISTER]


async def test_broker_permission_masks_that_of_the_topics(
    servers, start, config, broker, autojump_clock
):
    config.broker_permission = 4
    await start("a:1")
    body = RegisterBrokerBody.decode(servers.told["a:1"][0].body, compressed=False)
    assert {topic.perm for topic in body.topics.values()} == {0, 4}
    assert broker.topics.get("TBW102").perm == 7


async def test_split_registration_sends_portions(servers, start, config, broker, autojump_clock):
    config.enable_split_registration = True
    config.split_registration_size = 5
    await start("a:1")
    portions = servers.topics("a:1")
    assert max(map(len, portions)) == 5
    assert set().union(*portions) == set(broker.topics.snapshot.table)


async def test_reply_marks_ordered_topics_and_names_the_master(servers, start, broker):
    broker.topics.update(TopicConfig("T"))
    servers.reply[REGISTER] = {
        "ext_fields": {"masterAddr": "192.0.2.7:1", "haServerAddr": "192.0.2.7:2"},
        "body": b'{"table":{"T":"broker-a:4"}}',
    }
    registration = await start("a:1")
    assert broker.topics.is_order_topic("T")
    assert registration.master_address == "192.0.2.7:1"
    assert registration.ha_server_address == "192.0.2.7:2"


async def test_acting_masters_send_heartbeats(servers, start, config, autojump_clock):
    config.enable_slave_acting_master = True
    config.compatible_with_old_name_srv = False
    await start("a:1")
    await trio.sleep(2.5)
    assert servers.codes("a:1") == [REGISTER, *[RequestCode.BROKER_HEARTBEAT] * 2]
    first, beat, _ = servers.told["a:1"]
    assert first.ext_fields["enableActingMaster"] == "true"
    assert first.ext_fields["heartbeatTimeoutMillis"] == "10000"
    assert beat.is_oneway
    config.compatible_with_old_name_srv = True
    await trio.sleep(1)
    assert servers.codes("a:1")[-1] == QUERY


async def test_stop_unregisters_and_ends(servers, start, broker, autojump_clock):
    servers.down.add("b:1")
    registration = await start()
    await registration.stop()
    assert servers.codes("a:1") == [REGISTER, UNREGISTER]
    assert servers.told["a:1"][1].ext_fields == {
        "brokerName": "broker-a",
        "brokerAddr": "192.0.2.9:4444",
        "clusterName": "DefaultCluster",
        "brokerId": "0",
    }
    create(broker, "T")
    await trio.sleep(100)
    assert servers.codes("a:1") == [REGISTER, UNREGISTER]


async def test_stop_does_not_wait_long_for_a_silent_name_server(servers, start, autojump_clock):
    registration = await start("a:1")
    servers.silent.add("a:1")
    begin = trio.current_time()
    await registration.stop()
    assert trio.current_time() - begin == pytest.approx(3)


async def test_settle_returns_when_the_name_servers_were_told(servers, start, broker):
    registration = await start()

    def change_and_settle():
        create(broker, "T")
        return registration.settle(timeout_s=60), servers.topics("a:1")[-1]

    assert await trio.to_thread.run_sync(change_and_settle) == (True, {"T"})


async def test_settle_does_not_wait_for_the_dead(servers, start, broker):
    servers.down.add("b:1")
    registration = await start()

    def change_and_settle():
        create(broker, "T")
        return registration.settle(timeout_s=60)

    assert await trio.to_thread.run_sync(change_and_settle)
    assert servers.topics("a:1")[-1] == {"T"}


async def test_settle_gives_up_on_the_silent_and_returns_at_once_when_nothing_runs(
    servers, start, broker, config
):
    registration = await start("a:1")
    servers.silent.add("a:1")

    def change_and_settle():
        create(broker, "T")
        return registration.settle(timeout_s=0.01)

    assert not await trio.to_thread.run_sync(change_and_settle)
    idle = Registration(
        config, broker.topics, broker.queue_mappings, advertised_address="192.0.2.9:4444"
    )
    assert not idle.settle(timeout_s=60)


async def test_without_name_servers_there_is_nothing_to_do(servers, start, broker, autojump_clock):
    registration = await start("")
    create(broker, "T")
    assert registration.settle(timeout_s=60)
    await registration.stop()
    assert servers.told == {}


async def test_renewal_registers_all_topics_before_its_time(servers, start, broker):
    registration = await start()
    registration.renew()
    assert await trio.to_thread.run_sync(registration.settle)
    everything = set(broker.topics.snapshot.table)
    for address in ("a:1", "b:1"):
        assert servers.topics(address) == [everything, everything]


async def test_renewal_goes_out_even_if_a_name_server_has_our_version(servers, start, config):
    config.force_register = False
    servers.reply[QUERY] = {"ext_fields": {"changed": "false"}}
    registration = await start("a:1")
    registration.renew()
    await trio.to_thread.run_sync(registration.settle)
    assert servers.codes("a:1") == [REGISTER, REGISTER]


async def test_a_new_address_is_registered_and_the_old_one_taken_out(servers, start):
    registration = await start("a:1")
    registration.renew(advertised_address="198.51.100.4:32768")
    await trio.to_thread.run_sync(registration.settle)
    _, new, gone = servers.told["a:1"]
    assert (new.code, new.ext_fields["brokerAddr"]) == (REGISTER, "198.51.100.4:32768")
    assert (gone.code, gone.ext_fields["brokerAddr"]) == (UNREGISTER, "192.0.2.9:4444")
    await registration.stop()
    assert servers.told["a:1"][-1].ext_fields["brokerAddr"] == "198.51.100.4:32768"


async def test_renewal_does_not_wait_for_a_name_server_that_is_down(servers, start, autojump_clock):
    servers.down.add("b:1")
    registration = await start()
    registration.renew(advertised_address="198.51.100.4:32768")
    assert await trio.to_thread.run_sync(registration.settle)
    servers.down.clear()
    await trio.sleep(60)
    assert servers.told["b:1"][0].ext_fields["brokerAddr"] == "198.51.100.4:32768"
