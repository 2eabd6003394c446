"""Silent brokers go, and the brokers that stay are told if they asked for it."""

import pytest
import trio
import trio.testing

from pyritemq.protocol.codes import RequestCode
from pyritemq.protocol.frames import FrameDecoder
from pyritemq.server.namesrv.namesrv import NameServer

HEARTBEAT = {
    "clusterName": "C1",
    "brokerAddr": "10.0.0.1:10911",
    "brokerName": "broker-a",
    "brokerId": "0",
}
ACTING = {"enableActingMaster": "true"}


def known(namesrv):
    return [group.name for group in namesrv.routes.clusters()[0]]


def test_broker_that_is_silent_for_120_seconds_expires(register, namesrv, clock, make_channel):
    channel = make_channel()
    register(channel=channel)
    clock.ms += 120_000
    namesrv.expire_silent_brokers()
    assert known(namesrv) == ["broker-a"]
    clock.ms += 1
    namesrv.expire_silent_brokers()
    assert known(namesrv) == []
    assert channel.closed


def test_broker_that_expired_can_come_back(register, namesrv, clock):
    register()
    clock.ms += 120_001
    namesrv.expire_silent_brokers()
    register()
    assert known(namesrv) == ["broker-a"]
    assert sorted(namesrv.routes.topic_names()) == ["T1", "T2"]


@pytest.mark.parametrize(
    ("code", "body"),
    [(RequestCode.BROKER_HEARTBEAT, b""), (RequestCode.QUERY_DATA_VERSION, b'{"counter":1}')],
)
def test_heartbeat_or_question_keeps_a_broker(register, ask, namesrv, clock, code, body):
    register()
    clock.ms += 100_000
    assert ask(code, HEARTBEAT, body).code == 0
    clock.ms += 100_000
    namesrv.expire_silent_brokers()
    assert known(namesrv) == ["broker-a"]


def test_heartbeat_of_an_unknown_broker_is_no_registration(ask, namesrv):
    assert ask(RequestCode.BROKER_HEARTBEAT, HEARTBEAT).code == 0
    assert known(namesrv) == []


def test_broker_expires_by_the_timeout_that_it_announced(register, namesrv, clock):
    register(ext={"heartbeatTimeoutMillis": "10000"})
    clock.ms += 10_001
    namesrv.expire_silent_brokers()
    assert known(namesrv) == []


def test_only_the_silent_one_of_two_brokers_expires(register, namesrv, clock):
    register()
    clock.ms += 60_000
    register("broker-b", address="10.0.0.5:10911")
    clock.ms += 60_001
    namesrv.expire_silent_brokers()
    assert known(namesrv) == ["broker-b"]


class TrioTime:
    """The clock of a name server under trio's MockClock."""

    def now_ms(self):
        return int(trio.current_time() * 1000)

    def monotonic_ns(self):
        return int(trio.current_time() * 1_000_000_000)


async def test_running_name_server_scans_every_five_seconds(config, monkeypatch, mock_clock):
    """The scan itself is run in the loop here: MockClock knows nothing of threads."""
    monkeypatch.setattr(trio.to_thread, "run_sync", run_in_loop)
    namesrv = NameServer(config, clock=TrioTime())
    scans = []
    monkeypatch.setattr(namesrv, "expire_silent_brokers", lambda: scans.append(trio.current_time()))
    started = trio.current_time()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(namesrv.run)
        for _ in range(25):
            await trio.testing.wait_all_tasks_blocked()
            mock_clock.jump(1)
        await trio.testing.wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()
    assert [scan - started for scan in scans] == [5, 10, 15, 20, 25]


async def run_in_loop(function):
    await trio.lowlevel.checkpoint()
    function()


async def listen():
    (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
    host, port = listener.socket.getsockname()
    return listener, f"{host}:{port}"


async def receive(listener):
    """The first command on the next connection."""
    with trio.fail_after(5):
        async with await listener.accept() as stream:
            decoder = FrameDecoder()
            while True:
                commands = decoder.feed(await stream.receive_some())
                if commands:
                    return commands[0]


async def test_slaves_are_told_of_a_lost_master_when_enabled(register, ask, namesrv, config):
    config.notify_min_broker_id_changed = True
    listener, slave = await listen()
    async with listener, trio.open_nursery() as nursery:
        nursery.start_soon(namesrv.run)
        await trio.testing.wait_all_tasks_blocked()
        register(ext=ACTING)
        register(address=slave, broker_id=1, ext=ACTING)
        ask(RequestCode.UNREGISTER_BROKER, HEARTBEAT)
        command = await receive(listener)
        nursery.cancel_scope.cancel()
    assert command.code == RequestCode.NOTIFY_MIN_BROKER_ID_CHANGE
    assert command.is_oneway
    assert command.ext_fields == {
        "minBrokerId": "1",
        "minBrokerAddr": slave,
        "offlineBrokerAddr": "10.0.0.1:10911",
    }


async def test_slaves_are_told_of_a_new_master_when_enabled(register, namesrv, config):
    config.notify_min_broker_id_changed = True
    listener, slave = await listen()
    async with listener, trio.open_nursery() as nursery:
        nursery.start_soon(namesrv.run)
        await trio.testing.wait_all_tasks_blocked()
        register(address=slave, broker_id=1)
        register()
        command = await receive(listener)
        nursery.cancel_scope.cancel()
    assert command.ext_fields == {
        "minBrokerId": "0",
        "minBrokerAddr": "10.0.0.1:10911",
        "haBrokerAddr": "10.0.0.1:10912",
    }


async def test_broker_that_cannot_be_told_holds_nobody_up(register, namesrv, config):
    config.notify_min_broker_id_changed = True
    listener, slave = await listen()
    async with listener, trio.open_nursery() as nursery:
        nursery.start_soon(namesrv.run)
        await trio.testing.wait_all_tasks_blocked()
        register(address="nonsense", broker_id=2)
        register(address=slave, broker_id=1)
        register()
        command = await receive(listener)
        nursery.cancel_scope.cancel()
    assert command.ext_fields["minBrokerId"] == "0"


def test_nobody_is_told_by_default(register, ask, namesrv, monkeypatch):
    told = []
    monkeypatch.setattr(namesrv._notifier, "tell", told.extend)
    register(ext=ACTING)
    register(address="10.0.0.2:10911", broker_id=1, ext=ACTING)
    ask(RequestCode.UNREGISTER_BROKER, HEARTBEAT)
    assert told == []
