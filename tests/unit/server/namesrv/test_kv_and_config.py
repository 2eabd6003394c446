"""The KV configuration and the name server's own."""

import orjson
import pytest

from pyritemq.compat.conf.settings import ConfigError
from pyritemq.compat.properties_file import parse_properties
from pyritemq.protocol.codes import RequestCode, ResponseCode
from pyritemq.server.namesrv.kv_config import KvConfig
from pyritemq.server.namesrv.namesrv import NameServer
from pyritemq.storage.errors import StorageError
from pyritemq.storage.tables import JsonTable

ENTRY = {"namespace": "N", "key": "K"}


def put(ask, **fields):
    return ask(RequestCode.PUT_KV_CONFIG, ENTRY | {"value": "V"} | fields)


def test_value_is_put_read_listed_and_deleted(ask):
    assert put(ask).code == ResponseCode.SUCCESS
    assert ask(RequestCode.GET_KV_CONFIG, ENTRY).ext_fields == {"value": "V"}
    listed = ask(RequestCode.GET_KVLIST_BY_NAMESPACE, {"namespace": "N"})
    assert listed.body == b'{"table":{"K":"V"}}'
    assert ask(RequestCode.DELETE_KV_CONFIG, ENTRY).code == ResponseCode.SUCCESS
    assert ask(RequestCode.DELETE_KV_CONFIG, ENTRY).code == ResponseCode.SUCCESS
    gone = ask(RequestCode.GET_KV_CONFIG, ENTRY)
    assert gone.code == ResponseCode.QUERY_NOT_FOUND
    assert gone.remark == "No config item, Namespace: N Key: K"
    emptied = ask(RequestCode.GET_KVLIST_BY_NAMESPACE, {"namespace": "N"})
    assert emptied.body == b'{"table":{}}'


def test_namespace_that_never_was_is_not_found(ask):
    reply = ask(RequestCode.GET_KVLIST_BY_NAMESPACE, {"namespace": "N"})
    assert (reply.code, reply.remark) == (
        ResponseCode.QUERY_NOT_FOUND,
        "No config item, Namespace: N",
    )


def test_values_survive_a_restart_in_the_file_of_java(ask, namesrv, config, clock, tmp_path):
    put(ask)
    put(ask, namespace="ORDER_TOPIC_CONFIG", key="T", value="broker-a:4")
    stored = tmp_path / "namesrv" / "kvConfig.json"
    expected = {"configTable": {"N": {"K": "V"}, "ORDER_TOPIC_CONFIG": {"T": "broker-a:4"}}}
    assert orjson.loads(stored.read_bytes()) == expected
    again = NameServer(config, clock=clock)
    assert again.kv_config.get("ORDER_TOPIC_CONFIG", "T") == "broker-a:4"


def test_file_that_cannot_be_read_gives_way_to_its_backup(ask, config, clock, tmp_path):
    put(ask)
    put(ask, value="newer")
    (tmp_path / "namesrv" / "kvConfig.json").write_bytes(b"{")
    assert NameServer(config, clock=clock).kv_config.get("N", "K") == "V"


@pytest.mark.parametrize("stored", [b"{", b"[]", b'{"configTable":{"N":1}}', b"{}"])
def test_file_without_a_readable_backup_is_one_sentence(config, clock, tmp_path, stored):
    path = tmp_path / "namesrv" / "kvConfig.json"
    path.parent.mkdir()
    path.write_bytes(stored)
    with pytest.raises(ConfigError) as caught:
        NameServer(config, clock=clock)
    assert str(caught.value) == f"{path}: not a KV configuration, nor is its backup"


def test_value_that_cannot_be_saved_is_not_published(tmp_path):
    kv_config = KvConfig(JsonTable(tmp_path / "folder" / "kvConfig.json"))
    (tmp_path / "folder").touch()
    with pytest.raises(StorageError):
        kv_config.put("N", "K", "V")
    assert kv_config.get("N", "K") is None


def test_entries_have_a_bound(ask, monkeypatch):
    monkeypatch.setattr("pyritemq.server.namesrv.kv_config.ENTRIES_MAX", 1)
    put(ask)
    assert put(ask, value="other").code == ResponseCode.SUCCESS
    refused = put(ask, key="second")
    assert (refused.code, refused.remark) == (
        ResponseCode.SYSTEM_ERROR,
        "too many config items",
    )


def test_configuration_is_shown_sorted_as_by_java(ask):
    lines = ask(RequestCode.GET_NAMESRV_CONFIG).body.decode().splitlines()
    assert lines == sorted(lines)
    assert "listenPort=9876" in lines
    assert "scanNotActiveBrokerInterval=5000" in lines


def test_update_takes_effect_and_is_saved(ask, config, tmp_path):
    body = b"enableTopicList=false\nunknownKey=1\n"
    assert ask(RequestCode.UPDATE_NAMESRV_CONFIG, body=body).code == ResponseCode.SUCCESS
    assert config.enable_topic_list is False
    saved = parse_properties((tmp_path / "namesrv" / "namesrv.properties").read_bytes())
    assert saved["enableTopicList"] == "false"
    assert saved["kvConfigPath"] == config.kv_config_path
    assert "unknownKey" not in saved


@pytest.mark.parametrize(
    "key", ["configBlackList", "configStorePath", "kvConfigPath", "rocketmqHome"]
)
def test_paths_cannot_be_updated(ask, config, key):
    body = f"{key}=/etc/passwd\nenableTopicList=false".encode()
    reply = ask(RequestCode.UPDATE_NAMESRV_CONFIG, body=body)
    assert reply.code == ResponseCode.NO_PERMISSION
    assert reply.remark == "Can not update config in black list."
    assert config.enable_topic_list is True


@pytest.mark.parametrize(
    ("body", "remark"),
    [
        (b"a=\\u12", "string2Properties error"),
        (b"listenPort=x", "update: listenPort=x must be a whole number from 0 to 65535"),
    ],
)
def test_bad_update_is_refused_with_a_sentence(ask, body, remark):
    reply = ask(RequestCode.UPDATE_NAMESRV_CONFIG, body=body)
    assert (reply.code, reply.remark) == (ResponseCode.SYSTEM_ERROR, remark)


def test_empty_update_is_a_success(ask):
    assert ask(RequestCode.UPDATE_NAMESRV_CONFIG).code == ResponseCode.SUCCESS
