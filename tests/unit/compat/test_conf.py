import pytest

from pyritemq.compat.broker_conf import BROKER_CONFIG_SECTIONS, BrokerConfig
from pyritemq.compat.conf.settings import Change, ConfigError, HostFacts
from pyritemq.compat.namesrv_conf import NAMESRV_CONFIG_SECTIONS, NamesrvConfig

HOST = HostFacts(host_name="box", address="10.0.0.1", processors=2, home="/home/u")


def test_defaults_are_those_of_java():
    config = BrokerConfig(HOST)
    assert config.broker_name == "box"
    assert config.broker_cluster_name == "DefaultCluster"
    assert config.broker_ip1 == "10.0.0.1"
    assert config.listen_port == 10911
    assert config.store_path_root_dir == "/home/u/store"
    assert config.commit_log_dirs == ["/home/u/store/commitlog"]
    assert config.mapped_file_size_commit_log == 1 << 30
    assert config.consume_queue_file_size == 6_000_000
    assert config.ha_port == 10912
    assert config.send_message_thread_pool_nums == 2
    assert config.pull_message_thread_pool_nums == 20
    assert config.flush_disk_type == "ASYNC_FLUSH"
    assert config.namesrv_addresses == []
    assert NamesrvConfig(HOST).listen_port == 9876
    assert NamesrvConfig(HOST).kv_config_path == "/home/u/namesrv/kvConfig.json"
    assert NamesrvConfig(HOST).scan_not_active_broker_interval == 5000


def test_values_of_a_file_replace_defaults():
    config, warnings = BrokerConfig.from_properties(
        {
            "brokerIP1": "1.2.3.4",
            "listenPort": " 20911 ",
            "autoCreateTopicEnable": "FALSE",
            "namesrvAddr": "a:9876; b:9876",
            "flushDiskType": "SYNC_FLUSH",
            "mappedFileSizeConsumeQueue": "30",
            "logicalDiskSpaceCleanForciblyThreshold": "0.5",
            "metricsExporterType": "2",
        },
        host=HOST,
    )
    assert warnings == []
    assert config.broker_ip1 == "1.2.3.4"
    assert config.listen_port == 20911
    assert config.auto_create_topic_enable is False
    assert config.namesrv_addresses == ["a:9876", "b:9876"]
    assert config.consume_queue_file_size == 40
    assert config.ha_port == 20912
    assert config.metrics_exporter_type == "PROM"


def test_unknown_key_warns_with_the_nearest_known_one_and_is_kept():
    config, warnings = BrokerConfig.from_properties(
        {"mapedFileSizeCommitLog": "1024", "qqqqqqqq": "x"}, source="my.conf"
    )
    near = "my.conf: unknown key mapedFileSizeCommitLog is ignored; did you mean {}?"
    assert warnings == [
        near.format("mappedFileSizeCommitLog"),
        "my.conf: unknown key qqqqqqqq is ignored",
    ]
    assert config.to_properties(BROKER_CONFIG_SECTIONS)["qqqqqqqq"] == "x"


@pytest.mark.parametrize(
    ("key", "value", "expected"),
    [
        ("listenPort", "65536", "a whole number from 0 to 65535"),
        ("listenPort", "", "a whole number from 0 to 65535"),
        ("listenPort", "10_911", "a whole number from 0 to 65535"),
        ("defaultTopicQueueNums", "0", "a whole number from 1 to 2147483647"),
        ("autoCreateTopicEnable", "yes", "true or false"),
        ("flushDiskType", "ASYNC", "one of SYNC_FLUSH, ASYNC_FLUSH"),
        ("logicalDiskSpaceCleanForciblyThreshold", "x", "a number"),
        ("brokerId", "9223372036854775808", "a whole number from 0 to 9223372036854775807"),
    ],
)
def test_bad_value_is_one_sentence_with_file_key_and_value(key, value, expected):
    with pytest.raises(ConfigError) as caught:
        BrokerConfig.from_properties({key: value}, source="b.conf")
    assert str(caught.value) == f"b.conf: {key}={value} must be {expected}"


def test_master_has_id_0_and_a_slave_needs_another():
    config, _ = BrokerConfig.from_properties({"brokerId": "3"})
    assert config.broker_id == 0
    config, _ = BrokerConfig.from_properties({"brokerId": "3", "brokerRole": "SLAVE"})
    assert config.broker_id == 3
    with pytest.raises(ConfigError, match="brokerId=0 must be above 0 for a slave"):
        BrokerConfig.from_properties({"brokerRole": "SLAVE"})


@pytest.mark.parametrize("address", ["nowhere", "a:b", ":9876", "a:9876;b", "a:99999"])
def test_name_server_address_without_host_or_port_is_refused(address):
    with pytest.raises(ConfigError, match="namesrvAddr"):
        BrokerConfig.from_properties({"namesrvAddr": address})


def test_update_changes_all_values_or_none():
    config = NamesrvConfig(HOST)
    with pytest.raises(ConfigError):
        config.update({"waitSecondsForService": "5", "needWaitForService": "maybe"})
    assert config.wait_seconds_for_service == 45
    changes = config.update(
        {"waitSecondsForService": "5", "needWaitForService": "false", "unknown": "x"}
    )
    assert changes == [Change("waitSecondsForService", 45, 5)]
    assert config.wait_seconds_for_service == 5


def test_two_configurations_do_not_share_values():
    first, second = NamesrvConfig(HOST), NamesrvConfig(HOST)
    first.update({"enableTopicList": "false"})
    assert second.enable_topic_list is True


def test_described_lines_hold_every_key_and_important_ones_fewer():
    lines = BrokerConfig(HOST).describe()
    assert len(lines) == len(BrokerConfig.KEYS) == 523
    assert "brokerIP1=10.0.0.1" in lines
    assert "haMasterAddress=" in lines
    assert "longPollingEnable=true" in lines
    important = BrokerConfig(HOST).describe(important=True)
    assert "brokerIP1=10.0.0.1" in important
    assert not any(line.startswith("longPollingEnable") for line in important)


def test_shown_configuration_leaves_out_nulls_and_secrets():
    config, _ = BrokerConfig.from_properties({"innerClientAuthenticationCredentials": "secret"})
    shown = config.to_properties(BROKER_CONFIG_SECTIONS)
    assert "storePathCommitLog" not in shown
    assert "innerClientAuthenticationCredentials" not in shown
    assert shown["isScanAvailableNameSrv"] == "true"


def test_name_server_shows_its_own_and_the_server_side_keys():
    shown = NamesrvConfig(HOST).to_properties(NAMESRV_CONFIG_SECTIONS)
    assert shown["listenPort"] == "9876"
    assert shown["writeBufferHighWaterMark"] == "0"
    assert "clientWorkerThreads" not in shown


def test_field_without_a_setter_in_java_cannot_be_set():
    config, warnings = BrokerConfig.from_properties({"timerWarmEnable": "true"})
    assert config.timer_warm_enable is False
    assert len(warnings) == 1


def test_paths_of_a_name_server_are_never_updated_by_clients():
    config, _ = NamesrvConfig.from_properties({"configBlackList": "listenPort"})
    assert config.black_listed_keys == {
        "configBlackList",
        "configStorePath",
        "kvConfigPath",
        "rocketmqHome",
        "listenPort",
    }
