"""The store's properties: org.apache.rocketmq.store.config.MessageStoreConfig.

Data only, in Java's order: the names, types and defaults of 5.5.0. `used=True` marks what has an
effect in PyriteMQ; everything else is known, kept and shown, so that a Java file is taken as it is.
"""

from pyritemq.compat.conf.settings import (
    Bool,
    Double,
    Int,
    Long,
    NullableStr,
    Settings,
    Str,
    from_host,
    key,
)


class StoreTable(Settings):
    """Where messages lie, how they are flushed, kept and replicated."""

    SECTION = "MessageStoreConfig"

    store_path_root_dir: Str = from_host(
        lambda host: f"{host.home}/store", used=True, important=True
    )
    store_path_commit_log: NullableStr = key(None, used=True, important=True)
    store_path_d_ledger_commit_log: NullableStr = key(None, important=True)
    store_path_epoch_file: NullableStr = key(None, important=True)
    store_path_broker_identity: NullableStr = key(None, important=True)
    read_only_commit_log_store_paths: NullableStr = key(None, used=True)
    mapped_file_size_commit_log: Int = key(1_073_741_824, used=True, at_least=1)
    compaction_mapped_file_size: Int = 104_857_600
    compaction_cq_mapped_file_size: Int = 10_485_760
    compaction_schedule_internal: Int = 900_000
    max_offset_map_size: Int = 104_857_600
    compaction_thread_num: Int = 6
    enable_compaction: Bool = True
    mapped_file_size_timer_log: Int = key(104_857_600, used=True, at_least=1024)
    timer_precision_ms: Int = key(1000, used=True)
    timer_roll_window_slot: Int = key(172_800, used=True)
    timer_flush_interval_ms: Int = key(1000, used=True, at_least=1)
    timer_get_message_thread_num: Int = 3
    timer_put_message_thread_num: Int = 3
    timer_enable_disruptor: Bool = key(False, set_as="")
    timer_enable_check_metrics: Bool = True
    timer_intercept_delay_level: Bool = False
    timer_max_delay_sec: Int = key(259_200, used=True)
    timer_wheel_snapshot_flush: Bool = False
    timer_wheel_enable: Bool = key(True, used=True)
    disappear_time_after_start: Int = key(-1, important=True)
    timer_stop_enqueue: Bool = False
    timer_check_metrics_when: Str = key("05", set_as="")
    timer_skip_unknown_error: Bool = False
    timer_warm_enable: Bool = key(False, set_as="")
    timer_stop_dequeue: Bool = key(False, set_as="")
    timer_enable_retry_until_success: Bool = False
    timer_congest_num_each_slot: Int = key(2_147_483_647, used=True)
    timer_metric_small_threshold: Int = 1_000_000
    timer_progress_log_interval_ms: Int = 10000
    timer_wheel_snapshot_interval_ms: Int = 10000
    commit_log_recover_max_num: Int = 10
    timer_rocks_db_enable: Bool = key(False, name="timerRocksDBEnable")
    timer_rocks_db_stop_scan: Bool = key(False, name="timerRocksDBStopScan")
    timer_rocks_db_precision_ms: Long = key(1000, name="timerRocksDBPrecisionMs")
    timer_rocks_db_roll_max_tps: Double = key(8000.0, name="timerRocksDBRollMaxTps")
    timer_rocks_db_time_expired_max_tps: Double = key(
        200000.0, name="timerRocksDBTimeExpiredMaxTps"
    )
    timer_rocks_db_roll_interval_hours: Int = key(1, name="timerRocksDBRollIntervalHours")
    timer_rocks_db_roll_range_hours: Int = key(2, name="timerRocksDBRollRangeHours")
    timer_recall_to_time_wheel_enable: Bool = True
    timer_recall_to_timeline_enable: Bool = True
    timer_reput_service_core_pool_size: Int = 6
    timer_reput_service_max_pool_size: Int = 6
    timer_reput_service_queue_capacity: Int = 10000
    trans_rocks_db_enable: Bool = key(False, name="transRocksDBEnable")
    trans_write_origin_trans_half_enable: Bool = True
    index_rocks_db_enable: Bool = key(False, name="indexRocksDBEnable")
    max_rocks_db_index_query_days: Int = key(7, name="maxRocksDBIndexQueryDays")
    index_file_write_enable: Bool = key(True, used=True)
    index_file_read_enable: Bool = key(True, used=True)
    store_type: Str = key("default", used=True, important=True)
    iterator_when_use_rocksdb_consume_queue: Bool = True
    mapped_file_size_consume_queue: Int = key(6_000_000, used=True, at_least=1)
    enable_consume_queue_ext: Bool = key(False, used=True)
    mapped_file_size_consume_queue_ext: Int = key(50_331_648, used=True, at_least=64)
    mapper_file_size_batch_consume_queue: Int = 13_800_000
    bit_map_length_consume_queue_ext: Int = 64
    flush_interval_commit_log: Int = key(500, used=True, important=True, at_least=0)
    commit_interval_commit_log: Int = key(200, important=True)
    max_recovery_commitlog_files: Int = 30
    disk_space_warning_level_ratio: Int = key(90, used=True)
    disk_space_clean_forcibly_ratio: Int = key(85, used=True)
    use_reentrant_lock_when_put_message: Bool = True
    flush_commit_log_timed: Bool = key(True, important=True)
    flush_interval_consume_queue: Int = key(1000, used=True, at_least=0)
    clean_resource_interval: Int = key(10000, used=True, at_least=0)
    delete_commit_log_files_interval: Int = key(100, used=True, at_least=0)
    delete_consume_queue_files_interval: Int = 100
    destroy_maped_file_interval_forcibly: Int = key(120_000, used=True, at_least=0)
    redelete_hanged_file_interval: Int = key(120_000, used=True, at_least=0)
    delete_when: Str = key("04", used=True, important=True)
    disk_max_used_space_ratio: Int = key(75, used=True)
    file_reserved_time: Int = key(72, used=True, important=True, at_least=0)
    delete_file_batch_max: Int = key(10, used=True, important=True, at_least=1)
    put_msg_index_hight_water: Int = 600_000
    max_message_size: Int = key(4_194_304, used=True, at_least=1)
    max_filter_message_size: Int = key(16000, used=True)
    check_crc_on_recover: Bool = key(True, name="checkCRCOnRecover", used=True)
    check_commit_log_offset_on_recover: Bool = False
    flush_commit_log_least_pages: Int = key(4, used=True, at_least=0)
    commit_commit_log_least_pages: Int = 4
    flush_least_pages_when_warm_maped_file: Int = 4096
    flush_consume_queue_least_pages: Int = key(2, at_least=0)
    flush_commit_log_thorough_interval: Int = key(10000, used=True, at_least=0)
    commit_commit_log_thorough_interval: Int = 200
    flush_consume_queue_thorough_interval: Int = key(60000, used=True, at_least=0)
    max_transfer_bytes_on_message_in_memory: Int = key(
        262_144, used=True, important=True, at_least=0
    )
    max_transfer_count_on_message_in_memory: Int = key(32, used=True, important=True, at_least=0)
    max_transfer_bytes_on_message_in_disk: Int = key(65536, used=True, important=True, at_least=0)
    max_transfer_count_on_message_in_disk: Int = key(8, used=True, important=True, at_least=0)
    access_message_in_memory_max_ratio: Int = key(40, used=True, important=True, at_least=0)
    message_index_enable: Bool = key(True, used=True, important=True)
    max_hash_slot_num: Int = key(5_000_000, used=True, at_least=1)
    max_index_num: Int = key(20_000_000, used=True, at_least=2)
    max_msgs_num_batch: Int = key(64, used=True, at_least=0)
    message_index_safe: Bool = key(False, important=True)
    ha_listen_port: Int = key(10912, used=True, at_least=0, at_most=65535)
    ha_send_heartbeat_interval: Int = 5000
    ha_housekeeping_interval: Int = 20000
    ha_transfer_batch_size: Int = 32768
    ha_master_address: NullableStr = key(None, important=True)
    ha_max_gap_not_in_sync: Int = 268_435_456
    broker_role: Str = key(
        "ASYNC_MASTER", important=True, choices=("ASYNC_MASTER", "SYNC_MASTER", "SLAVE"), used=True
    )
    flush_disk_type: Str = key(
        "ASYNC_FLUSH", used=True, important=True, choices=("SYNC_FLUSH", "ASYNC_FLUSH")
    )
    sync_flush_timeout: Int = key(5000, used=True)
    put_message_timeout: Int = 8000
    slave_timeout: Int = 3000
    message_delay_level: Str = key(
        "1s 5s 10s 30s 1m 2m 3m 4m 5m 6m 7m 8m 9m 10m 20m 30m 1h 2h", used=True
    )
    flush_delay_offset_interval: Long = key(10000, used=True, at_least=1)
    clean_file_forcibly_enable: Bool = key(True, used=True, important=True)
    warm_maped_file_enable: Bool = key(False, used=True)
    offset_check_in_slave: Bool = False
    debug_lock_enable: Bool = False
    duplication_enable: Bool = False
    disk_fall_recorded: Bool = key(True, used=True)
    os_page_cache_busy_time_out_mills: Long = key(1000, used=True)
    default_query_max_num: Int = key(32, used=True, at_least=0)
    transient_store_pool_enable: Bool = key(False, important=True)
    transient_store_pool_size: Int = 5
    fast_fail_if_no_buffer_in_store_pool: Bool = False
    write_without_mmap: Bool = key(False, important=True)
    enable_d_leger_commit_log: Bool = False
    d_leger_group: NullableStr = None
    d_leger_peers: NullableStr = None
    d_leger_self_id: NullableStr = None
    preferred_leader_id: NullableStr = None
    enable_batch_push: Bool = False
    enable_schedule_message_stats: Bool = True
    enable_lmq: Bool = False
    enable_multi_dispatch: Bool = False
    max_lmq_consume_queue_num: Int = key(20000, used=True)
    enable_lmq_quota: Bool = False
    enable_schedule_async_deliver: Bool = False
    schedule_async_deliver_max_pending_limit: Int = 2000
    schedule_async_deliver_max_resend_num2_blocked: Int = 3
    max_batch_delete_files_num: Int = 50
    dispatch_cq_threads: Int = 10
    dispatch_cq_cache_num: Int = 4096
    enable_async_reput: Bool = True
    recheck_reput_offset_from_cq: Bool = False
    max_topic_length: Int = 127
    auto_message_version_on_topic_len: Bool = True
    enable_running_flags_in_flush: Bool = key(False, important=True)
    enabled_append_prop_crc: Bool = key(False, name="enabledAppendPropCRC")
    force_verify_prop_crc: Bool = key(False, name="forceVerifyPropCRC")
    travel_cq_file_num_when_get_message: Int = 1
    correct_logic_min_offset_sleep_interval: Int = 1
    correct_logic_min_offset_force_interval: Int = 300_000
    mapped_file_swap_enable: Bool = True
    commit_log_force_swap_map_interval: Long = 43_200_000
    commit_log_swap_map_interval: Long = 3_600_000
    commit_log_swap_map_reserve_file_num: Int = 100
    logic_queue_force_swap_map_interval: Long = 43_200_000
    logic_queue_swap_map_interval: Long = 3_600_000
    clean_swaped_map_interval: Long = 300_000
    logic_queue_swap_map_reserve_file_num: Int = 20
    search_bcq_by_cache_enable: Bool = True
    dispatch_from_sender_thread: Bool = key(False, important=True)
    wake_commit_when_put_message: Bool = key(True, important=True)
    wake_flush_when_put_message: Bool = key(False, important=True)
    enable_clean_expired_offset: Bool = key(False, important=True)
    max_async_put_message_requests: Int = 5000
    pull_batch_max_message_count: Int = 160
    total_replicas: Int = key(1, important=True)
    in_sync_replicas: Int = key(1, important=True)
    min_in_sync_replicas: Int = key(1, important=True)
    all_ack_in_sync_state_set: Bool = key(False, important=True)
    enable_auto_in_sync_replicas: Bool = key(False, important=True)
    ha_flow_control_enable: Bool = key(False, important=True)
    max_ha_transfer_byte_in_second: Long = 104_857_600
    ha_max_time_slave_not_catchup: Long = 15000
    sync_master_flush_offset_when_startup: Bool = False
    max_checksum_range: Long = 1_073_741_824
    replicas_per_disk_partition: Int = 1
    logical_disk_space_clean_forcibly_threshold: Double = 0.8
    max_slave_resend_length: Long = 268_435_456
    sync_from_last_file: Bool = False
    async_learner: Bool = False
    max_consume_queue_scan: Int = 20000
    sample_count_threshold: Int = 5000
    cold_data_flow_control_enable: Bool = False
    cold_data_scan_enable: Bool = False
    data_read_ahead_enable: Bool = True
    timer_cold_data_check_interval_ms: Int = 60000
    sample_steps: Int = 32
    access_message_in_memory_hot_ratio: Int = 26
    enable_build_consume_queue_concurrently: Bool = False
    batch_dispatch_request_thread_pool_nums: Int = 16
    clean_rocks_db_dirty_cq_interval_min: Long = key(60, name="cleanRocksDBDirtyCQIntervalMin")
    stat_rocks_dbcq_interval_sec: Long = key(10, name="statRocksDBCQIntervalSec")
    mem_table_flush_interval_ms: Long = 3_600_000
    real_time_persist_rocks_db_config: Bool = key(True, name="realTimePersistRocksDBConfig")
    enable_rocks_db_log: Bool = key(False, name="enableRocksDBLog")
    topic_queue_lock_num: Int = 32
    read_un_committed: Bool = False
    put_consume_queue_data_by_file_channel: Bool = True
    rocksdb_cq_double_write_enable: Bool = key(False, name="rocksdbCQDoubleWriteEnable")
    combine_cq_loading_cq_types: Str = key("default;defaultRocksDB", name="combineCQLoadingCQTypes")
    combine_cq_prefer_cq_type: Str = key("default", name="combineCQPreferCQType")
    combine_assign_offset_cq_type: Str = key("default", name="combineAssignOffsetCQType")
    combine_cq_enable_check_self: Bool = key(False, name="combineCQEnableCheckSelf")
    combine_cq_max_extra_search_commit_log_files: Int = key(
        3, name="combineCQMaxExtraSearchCommitLogFiles"
    )
    combine_cq_use_rocksdb_for_lmq: Bool = key(False, name="combineCQUseRocksdbForLmq")
    bottom_most_compression_type_for_consume_queue_store: Str = "zstd"
    rocksdb_compression_type: Str = "lz4"
    rocksdb_flush_wal_frequency: Int = 1024
    rocksdb_wal_file_rolling_threshold: Long = 1_073_741_824
    enable_accelerated_recovery: Bool = False
    shared_byte_buffer_num: Int = 16
    use_separate_store_path_for_rocksdb_cq: Bool = key(
        False, name="useSeparateStorePathForRocksdbCQ"
    )
    spin_lock_collision_retreat_optimal_degree: Int = 1000
    use_abs_lock: Bool = key(False, name="useABSLock")
    enable_log_consume_queue_repeatedly_build_when_recover: Bool = False
    append_topic_for_timer_delete_key: Bool = key(False, used=True)
