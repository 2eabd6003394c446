"""The name server's own properties: org.apache.rocketmq.common.namesrv.NamesrvConfig.

Data only, in Java's order: the names, types and defaults of 5.5.0. `used=True` marks what has an
effect in PyriteMQ; everything else is known, kept and shown, so that a Java file is taken as it is.
"""

from pyritemq.compat.conf.settings import (
    Bool,
    Int,
    Long,
    NullableStr,
    Settings,
    Str,
    from_host,
    key,
)


class NamesrvTable(Settings):
    """What the name server does."""

    SECTION = "NamesrvConfig"

    rocketmq_home: NullableStr = from_host(lambda host: host.rocketmq_home)
    kv_config_path: Str = from_host(lambda host: f"{host.home}/namesrv/kvConfig.json", used=True)
    config_store_path: Str = from_host(
        lambda host: f"{host.home}/namesrv/namesrv.properties", used=True
    )
    product_env_name: Str = "center"
    cluster_test: Bool = False
    order_message_enable: Bool = key(False, used=True)
    return_order_topic_config_to_broker: Bool = key(True, used=True)
    client_request_thread_pool_nums: Int = key(8, at_least=1)
    default_thread_pool_nums: Int = key(16, at_least=1)
    client_request_thread_pool_queue_capacity: Int = key(50000, used=True, at_least=1)
    default_thread_pool_queue_capacity: Int = key(10000, used=True, at_least=1)
    scan_not_active_broker_interval: Long = key(5000, used=True, at_least=1)
    un_register_broker_queue_capacity: Int = key(3000, at_least=1)
    support_acting_master: Bool = key(False, used=True)
    enable_all_topic_list: Bool = key(True, used=True)
    enable_topic_list: Bool = key(True, used=True)
    notify_min_broker_id_changed: Bool = key(False, used=True)
    enable_controller_in_namesrv: Bool = False
    need_wait_for_service: Bool = key(False, used=True)
    wait_seconds_for_service: Int = key(45, used=True, at_least=0)
    delete_topic_with_broker_registration: Bool = key(False, used=True)
    config_black_list: Str = key("configBlackList;configStorePath;kvConfigPath", used=True)
