"""GET_BROKER_CONFIG and UPDATE_BROKER_CONFIG: live, checked as a whole, and saved."""

from __future__ import annotations

import pytest

from pyritemq.compat import fastjson
from pyritemq.compat.properties_file import parse_properties
from pyritemq.protocol.codes import RequestCode, ResponseCode
from pyritemq.protocol.command import Command
from pyritemq.server.broker.live_config import LiveConfig, edit_properties


@pytest.fixture
def file(broker, config, clock, tmp_path):
    path = tmp_path / "broker.conf"
    path.write_text("# ours\nbrokerName=broker-a\ntraceOn = true\n")
    config.broker_config_path = str(path)
    broker.live_config = LiveConfig(config, now_ms=clock.now_ms)
    broker.advertised = []
    broker.advertise = lambda host, port: broker.advertised.append((host, port))
    return path


def update(text: str) -> Command:
    return Command(RequestCode.UPDATE_BROKER_CONFIG, body=text.encode())


def test_get_shows_every_property_and_the_version(call):
    reply = call(Command(RequestCode.GET_BROKER_CONFIG))
    shown = parse_properties(bytes(reply.body))
    assert shown["brokerName"] == "broker-a"
    assert shown["flushDiskType"] == "ASYNC_FLUSH"
    assert "innerClientAuthenticationCredentials" not in shown
    assert fastjson.loads(reply.ext_fields["version"])["counter"] == 0


def test_update_changes_the_running_broker_and_its_version(call, broker, file):
    assert call(update("traceOn=false\n")).code == ResponseCode.SUCCESS
    assert broker.config.trace_on is False
    assert broker.live_config.version.counter == 1


def test_update_is_saved_in_place_and_the_rest_of_the_file_stays(call, file):
    call(update("traceOn=false\nregionId=here\n"))
    assert file.read_text() == "# ours\nbrokerName=broker-a\ntraceOn=false\nregionId=here\n"


def test_without_a_file_the_update_is_saved_beside_the_tables(call, broker, tmp_path):
    call(update("traceOn=false\n"))
    assert (tmp_path / "config" / "broker.properties").read_text() == "traceOn=false\n"


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("traceOn=maybe\n", "traceOn=maybe"),
        ("brokerPermission=9\n", "brokerPermission=9"),
        ("listenPort=70000\n", "listenPort=70000"),
        ("flushDiskType=NEVER\n", "flushDiskType=NEVER"),
        ("traceOnn=true\n", "did you mean traceOn?"),
        ("brokerName=other\n", "brokerName cannot change"),
        ("storePathRootDir=/elsewhere\n", "storePathRootDir cannot change"),
        ("brokerIP1=no such host\n", "no such host"),
    ],
)
def test_what_makes_no_sense_is_refused_with_a_reason_and_changes_nothing(
    call, broker, file, text, named
):
    before = broker.live_config.show(), file.read_text()
    reply = call(update("regionId=here\n" + text))
    assert reply.code == ResponseCode.INVALID_PARAMETER
    assert named in reply.remark
    assert (broker.live_config.show(), file.read_text()) == before
    assert broker.live_config.version.counter == 0


def test_a_fixed_property_may_be_given_with_the_value_it_has(call, file):
    assert call(update("brokerName=broker-a\n")).code == ResponseCode.SUCCESS


@pytest.mark.parametrize("name", ["brokerConfigPath", "rocketmqHome", "configBlackList"])
def test_black_listed_properties_are_refused(call, file, name):
    reply = call(update(f"{name}=/etc/passwd\n"))
    assert reply.code == ResponseCode.NO_PERMISSION
    assert reply.remark == "Can not update config in black list."


def test_the_black_list_can_be_extended(call, broker, file):
    broker.config.config_black_list = "traceOn;regionId"
    assert call(update("traceOn=false\n")).code == ResponseCode.NO_PERMISSION


@pytest.mark.parametrize("body", [b"\\u12", b"\xff\xfe"])
def test_a_body_that_is_not_properties_is_refused(call, file, body):
    reply = call(Command(RequestCode.UPDATE_BROKER_CONFIG, body=body))
    assert (reply.code, reply.remark) == (ResponseCode.SYSTEM_ERROR, "string2Properties error")


def test_an_empty_update_succeeds_and_changes_nothing(call, broker):
    assert call(update("")).code == ResponseCode.SUCCESS
    assert broker.live_config.version.counter == 0


def test_a_permission_is_registered_at_once_under_a_new_version(call, broker, file):
    version = broker.topics.snapshot.data_version.counter
    call(update("brokerPermission=4\n"))
    assert broker.registration.renewed == [None]
    assert broker.registration.settled_after == [0]
    assert broker.topics.snapshot.data_version.counter == version + 1


def test_address_and_port_change_what_clients_are_told(call, broker, file):
    call(update("brokerIP1=198.51.100.7\n"))
    assert broker.advertised == [("198.51.100.7", 10911)]
    call(update("listenPort=32768\n"))
    assert broker.advertised[1:] == [("192.0.2.1", 32768)]
    assert len(broker.registration.settled_after) == 2


def test_other_properties_tell_the_name_servers_nothing(call, broker, file):
    call(update("traceOn=false\n"))
    assert broker.registration.renewed == broker.advertised == []
    assert broker.registration.settled_after == []


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", "a=2\n"),
        ("a=1", "a=2\n"),
        ("a=1\na=1\nb=1\n", "a=2\nb=1\n"),
        ("# a=1\nb=1\n", "# a=1\nb=1\na=2\n"),
        ("a = 1\\\n  2\nb=1\n", "a=2\nb=1\n"),
        ("b = 1\\\na=1\n", "b = 1\\\na=1\na=2\n"),
        ("a:1\r\nb=1\r\n", "a=2\nb=1\r\n"),
        ("\n\n! c\n", "\n\n! c\na=2\n"),
    ],
)
def test_editing_keeps_every_line_that_is_not_about_the_key(before, after):
    assert edit_properties(before, {"a": "2"}) == after
