"""The broker's own properties: org.apache.rocketmq.common.BrokerConfig.

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


class BrokerIdentityTable(Settings):
    """Who the broker is: what BrokerConfig inherits."""

    SECTION = "BrokerIdentity"

    broker_name: Str = from_host(lambda host: host.host_name, used=True, important=True)
    broker_cluster_name: Str = key("DefaultCluster", used=True, important=True)
    broker_id: Long = key(0, used=True, important=True, at_least=0)
    is_broker_container: Bool = key(False, set_as="")
    is_in_broker_container: Bool = key(False, set_as="inBrokerContainer")


class BrokerTable(Settings):
    """What the broker does."""

    SECTION = "BrokerConfig"

    broker_config_path: NullableStr = key(None, used=True)
    rocketmq_home: NullableStr = from_host(lambda host: host.rocketmq_home)
    namesrv_addr: NullableStr = from_host(lambda host: host.namesrv_addr, used=True, important=True)
    listen_port: Int = key(6888, used=True, important=True, at_least=0, at_most=65535)
    broker_ip1: Str = from_host(
        lambda host: host.address, name="brokerIP1", used=True, important=True
    )
    broker_ip2: Str = from_host(lambda host: host.address, name="brokerIP2", used=True)
    recover_concurrently: Bool = key(False, important=True)
    broker_permission: Int = key(6, used=True, at_least=0, at_most=7)
    default_topic_queue_nums: Int = key(8, used=True, at_least=1)
    auto_create_topic_enable: Bool = key(True, used=True, important=True)
    cluster_topic_enable: Bool = key(True, used=True)
    broker_topic_enable: Bool = key(True, used=True)
    auto_create_subscription_group: Bool = key(True, used=True, important=True)
    message_store_plug_in: Str = ""
    msg_trace_topic_name: Str = key("RMQ_SYS_TRACE_TOPIC", important=True, used=True)
    trace_topic_enable: Bool = key(False, important=True, used=True)
    send_message_thread_pool_nums: Int = from_host(lambda host: min(host.processors, 4), at_least=1)
    put_message_future_thread_pool_nums: Int = from_host(lambda host: min(host.processors, 4))
    pull_message_thread_pool_nums: Int = from_host(
        lambda host: 16 + 2 * host.processors, at_least=1
    )
    lite_pull_message_thread_pool_nums: Int = from_host(lambda host: 16 + 2 * host.processors)
    ack_message_thread_pool_nums: Int = key(16, at_least=1)
    process_reply_message_thread_pool_nums: Int = from_host(
        lambda host: 16 + 2 * host.processors, used=True, at_least=1
    )
    query_message_thread_pool_nums: Int = from_host(lambda host: 8 + host.processors, at_least=1)
    admin_broker_thread_pool_nums: Int = key(16, at_least=1)
    client_manage_thread_pool_nums: Int = key(32, at_least=1)
    consumer_manage_thread_pool_nums: Int = key(32, at_least=1)
    load_balance_processor_thread_pool_nums: Int = 32
    heartbeat_thread_pool_nums: Int = from_host(lambda host: min(32, host.processors))
    recover_thread_pool_nums: Int = 32
    end_transaction_thread_pool_nums: Int = from_host(
        lambda host: max(8 + 2 * host.processors, 4 * min(host.processors, 4)),
        at_least=1,
    )
    flush_consumer_offset_interval: Int = key(5000, used=True, at_least=1)
    flush_consumer_offset_history_interval: Int = 60000
    reject_transaction_message: Bool = key(False, used=True, important=True)
    fetch_name_srv_addr_by_dns_lookup: Bool = key(False, important=True)
    fetch_namesrv_addr_by_address_server: Bool = key(False, important=True)
    send_thread_pool_queue_capacity: Int = key(10000, used=True, at_least=1)
    put_thread_pool_queue_capacity: Int = 10000
    pull_thread_pool_queue_capacity: Int = key(100_000, used=True, at_least=1)
    lite_pull_thread_pool_queue_capacity: Int = key(100_000, used=True)
    ack_thread_pool_queue_capacity: Int = key(100_000, used=True, at_least=1)
    reply_thread_pool_queue_capacity: Int = key(10000, used=True, at_least=1)
    query_thread_pool_queue_capacity: Int = key(20000, used=True, at_least=1)
    client_manager_thread_pool_queue_capacity: Int = key(1_000_000, used=True, at_least=1)
    consumer_manager_thread_pool_queue_capacity: Int = key(1_000_000, used=True, at_least=1)
    heartbeat_thread_pool_queue_capacity: Int = 50000
    end_transaction_pool_queue_capacity: Int = key(100_000, used=True, at_least=1)
    admin_broker_thread_pool_queue_capacity: Int = key(10000, used=True, at_least=1)
    load_balance_thread_pool_queue_capacity: Int = 100_000
    long_polling_enable: Bool = key(True, used=True)
    short_polling_time_mills: Long = key(1000, used=True, at_least=0)
    notify_consumer_ids_changed_enable: Bool = key(True, used=True)
    high_speed_mode: Bool = False
    commercial_base_count: Int = 1
    commercial_size_per_msg: Int = 4096
    account_stats_enable: Bool = True
    account_stats_print_zero_values: Bool = True
    max_stats_idle_time_in_minutes: Int = -1
    transfer_msg_by_heap: Bool = True
    region_id: Str = key("DefaultRegion", used=True)
    register_broker_timeout_mills: Int = key(24000, used=True, at_least=0)
    send_heartbeat_timeout_millis: Int = key(1000, used=True)
    slave_read_enable: Bool = key(False, used=True)
    disable_consume_if_consumer_read_slowly: Bool = key(False, used=True)
    consumer_fallbehind_threshold: Long = key(17_179_869_184, used=True)
    broker_fast_failure_enable: Bool = key(True, used=True)
    wait_time_mills_in_send_queue: Long = key(200, used=True, at_least=0)
    wait_time_mills_in_pull_queue: Long = key(5000, at_least=0)
    wait_time_mills_in_lite_pull_queue: Long = 5000
    wait_time_mills_in_heartbeat_queue: Long = 31000
    wait_time_mills_in_transaction_queue: Long = 3000
    wait_time_mills_in_ack_queue: Long = 3000
    wait_time_mills_in_admin_broker_queue: Long = 5000
    start_accept_send_request_time_stamp: Long = key(0, used=True)
    trace_on: Bool = key(True, used=True)
    enable_calc_filter_bit_map: Bool = key(False, used=True)
    reject_pull_consumer_enable: Bool = key(False, used=True)
    expect_consumer_num_use_filter: Int = key(32, used=True)
    max_error_rate_of_bloom_filter: Int = key(20, used=True)
    filter_data_clean_time_span: Long = key(86_400_000, used=True)
    filter_support_retry: Bool = key(False, used=True)
    enable_property_filter: Bool = key(False, used=True)
    compressed_register: Bool = key(False, used=True)
    force_register: Bool = key(True, used=True)
    register_name_server_period: Int = key(30000, used=True, at_least=1)
    update_name_server_addr_period: Int = 120_000
    broker_heartbeat_interval: Int = key(1000, used=True, at_least=1)
    broker_not_active_timeout_millis: Long = key(10000, used=True)
    enable_net_work_flow_control: Bool = False
    enable_broadcast_offset_store: Bool = True
    broadcast_offset_expire_second: Long = 120
    broadcast_offset_expire_max_second: Long = 300
    pop_polling_size: Int = key(1024, used=True)
    pop_polling_map_size: Int = 100_000
    pop_polling_map_expire_time_seconds: Int = 600
    max_pop_polling_size: Long = key(100_000, used=True)
    revive_queue_num: Int = key(8, used=True)
    revive_interval: Long = key(1000, used=True, at_least=1)
    revive_max_slow: Long = 3
    revive_scan_time: Long = 10000
    enable_skip_long_awaiting_ack: Bool = False
    revive_ack_wait_ms: Long = 180_000
    enable_pop_log: Bool = False
    enable_pop_buffer_merge: Bool = key(False, used=True)
    pop_ck_stay_buffer_time: Int = key(10000, used=True)
    pop_ck_stay_buffer_time_out: Int = key(3000, used=True)
    pop_ck_max_buffer_size: Int = key(200_000, used=True)
    pop_ck_offset_max_queue_size: Int = key(20000, used=True)
    enable_pop_batch_ack: Bool = False
    pop_long_polling_force_notify_interval: Long = 800
    enable_notify_before_pop_calculate_lag: Bool = True
    enable_notify_after_pop_order_lock_release: Bool = key(True, used=True)
    init_pop_offset_by_check_msg_in_mem: Bool = key(True, used=True)
    retrieve_message_from_pop_retry_topic_v1: Bool = key(True, used=True)
    enable_retry_topic_v2: Bool = key(False, used=True)
    pop_from_retry_probability: Int = key(20, used=True)
    pop_from_retry_probability_for_priority: Int = key(0, used=True)
    priority_order_asc: Bool = key(True, used=True)
    pop_consumer_fs_service_init: Bool = key(True, name="popConsumerFSServiceInit")
    pop_consumer_kv_service_log: Bool = key(False, name="popConsumerKVServiceLog")
    pop_consumer_kv_service_init: Bool = key(False, name="popConsumerKVServiceInit")
    pop_consumer_kv_service_enable: Bool = key(False, name="popConsumerKVServiceEnable")
    pop_revive_max_return_size_per_read: Int = 16384
    pop_revive_concurrency: Int = 32
    pop_revive_max_attempt_times: Int = 16
    pop_revive_skip_if_group_absent: Bool = True
    use_separate_retry_queue: Bool = key(False, used=True)
    real_time_notify_consumer_change: Bool = True
    use_message_filter_for_notification: Bool = key(True, used=True)
    max_message_filter_num_for_notification: Int = 64
    lite_pull_message_enable: Bool = key(True, used=True)
    sync_broker_member_group_period: Int = 1000
    load_balance_poll_name_server_interval: Long = key(30000, used=True)
    clean_offline_broker_interval: Int = 30000
    server_load_balancer_enable: Bool = key(True, used=True)
    default_message_request_mode: Str = key("PULL", choices=("PULL", "POP"), used=True)
    default_pop_share_queue_num: Int = key(-1, used=True)
    transaction_time_out: Long = key(6000, used=True, important=True, at_least=0)
    transaction_check_max: Int = key(15, used=True, important=True)
    transaction_check_interval: Long = key(30000, used=True, important=True, at_least=1)
    transaction_metric_flush_interval: Long = 10000
    transaction_check_rocksdb_core_threads: Int = 2
    transaction_check_rocksdb_max_threads: Int = 5
    transaction_check_rocksdb_queue_capacity: Int = 2000
    transaction_op_msg_max_size: Int = key(4096, used=True, at_least=1)
    transaction_op_batch_interval: Int = key(3000, used=True, at_least=1)
    acl_enable: Bool = key(False, important=True)
    store_reply_message_enable: Bool = key(True, used=True)
    enable_detail_stat: Bool = True
    auto_delete_unused_stats: Bool = True
    isolate_log_enable: Bool = False
    forward_timeout: Long = 3000
    enable_slave_acting_master: Bool = key(False, used=True)
    enable_remote_escape: Bool = False
    skip_pre_online: Bool = False
    async_send_enable: Bool = True
    use_server_side_reset_offset: Bool = key(True, used=True)
    consumer_offset_update_version_step: Long = 500
    delay_offset_update_version_step: Long = key(200, used=True)
    lock_in_strict_mode: Bool = False
    compatible_with_old_name_srv: Bool = key(True, used=True)
    enable_controller_mode: Bool = key(False, used=True)
    controller_addr: Str = ""
    fetch_controller_addr_by_dns_lookup: Bool = False
    sync_broker_metadata_period: Long = 5000
    check_sync_state_set_period: Long = 5000
    sync_controller_metadata_period: Long = 10000
    controller_heart_beat_timeout_mills: Long = 10000
    validate_system_topic_when_update_topic: Bool = key(True, used=True)
    broker_election_priority: Int = 2_147_483_647
    use_static_subscription: Bool = False
    metrics_exporter_type: Str = key(
        "DISABLE", used=True, choices=("DISABLE", "OTLP_GRPC", "PROM", "LOG"), numbered=True
    )
    metrics_otel_cardinality_limit: Int = 50000
    metrics_grpc_exporter_target: Str = ""
    metrics_grpc_exporter_header: Str = ""
    metric_grpc_exporter_time_out_in_mills: Long = 3000
    metric_grpc_exporter_interval_in_mills: Long = 60000
    metric_logging_exporter_interval_in_mills: Long = 10000
    metrics_prom_exporter_port: Int = key(5557, used=True, at_least=0, at_most=65535)
    metrics_prom_exporter_host: Str = key("", used=True)
    metrics_label: Str = key("", used=True)
    metrics_export_batch_max_data_points: Int = 1000
    metrics_in_delta: Bool = False
    enable_remoting_metrics: Bool = key(True, used=True)
    enable_message_store_metrics: Bool = key(True, used=True)
    enable_pop_metrics: Bool = True
    enable_connection_metrics: Bool = key(True, used=True)
    enable_transaction_metrics: Bool = key(True, used=True)
    enable_stats_metrics: Bool = key(True, used=True)
    enable_request_metrics: Bool = key(True, used=True)
    enable_lag_and_dlq_metrics: Bool = key(True, used=True)
    channel_expired_timeout: Long = key(120_000, used=True, at_least=0)
    subscription_expired_timeout: Long = 600_000
    estimate_accumulation: Bool = True
    cold_ctr_strategy_enable: Bool = False
    use_pid_cold_ctr_strategy: Bool = key(True, name="usePIDColdCtrStrategy")
    cg_cold_read_threshold: Long = key(3_145_728, used=True)
    global_cold_read_threshold: Long = key(104_857_600, used=True)
    fetch_namesrv_addr_interval: Long = 10000
    pop_response_return_actual_retry_topic: Bool = key(False, used=True)
    enable_single_topic_register: Bool = key(False, used=True)
    enable_mixed_message_type: Bool = key(False, used=True)
    enable_split_registration: Bool = key(False, used=True)
    enable_split_metadata: Bool = key(True, used=True)
    split_metadata_size: Int = key(2000, used=True)
    pop_inflight_message_threshold: Long = 10000
    enable_pop_message_threshold: Bool = False
    enable_fast_channel_event_process: Bool = False
    print_channel_groups: Bool = False
    print_channel_groups_min_num: Int = 5
    split_registration_size: Int = key(800, used=True)
    config_black_list: Str = key("configBlackList;brokerConfigPath", used=True)
    skip_when_ck_re_put_reach_max_times: Bool = key(
        False, name="skipWhenCKRePutReachMaxTimes", used=True
    )
    append_ack_async: Bool = False
    append_ck_async: Bool = False
    clear_retry_topic_when_delete_topic: Bool = key(True, used=True)
    enable_lmq_stats: Bool = False
    config_manager_version: Str = "v1"
    use_single_rocks_db_for_all_configs: Bool = key(False, name="useSingleRocksDBForAllConfigs")
    allow_recall_when_broker_not_writeable: Bool = key(True, used=True)
    recall_message_enable: Bool = key(False, used=True)
    enable_register_producer: Bool = True
    enable_create_sys_group: Bool = key(True, used=True)
    enable_lite_event_mode: Bool = True
    lite_event_check_interval: Long = 10000
    lite_ttl_check_interval: Long = 120_000
    min_lite_t_tl: Long = 900_000
    lite_subscription_check_interval: Long = 120_000
    lite_subscription_check_timeout_mills: Long = 180_000
    persist_consumer_offset_incrementally: Bool = False
    max_lite_subscription_count: Long = 100_000
    enable_lite_pop_log: Bool = False
    max_client_event_count: Int = 100
    lite_event_full_dispatch_delay_time: Long = 10000
    lite_event_full_dispatch_delay_time_for_wildcard_group: Long = 10000
    lite_lag_latency_collect_enable: Bool = False
    lite_lag_latency_metrics_enable: Bool = False
    lite_lag_count_metrics_enable: Bool = False
    lite_lag_latency_top_k: Int = 50
