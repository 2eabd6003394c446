"""The store's settings out of broker.conf's: the one place where the two vocabularies meet."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, cast

from pyritemq.storage.config import FlushDiskType, StoreConfig

if TYPE_CHECKING:
    from pyritemq.compat.broker_conf import BrokerConfig

UNIT_BYTES = 20


def store_config(config: BrokerConfig) -> StoreConfig:
    """What `MessageStore.open` needs to know."""
    return StoreConfig(
        root=Path(config.store_path_root_dir),
        commit_log_paths=tuple(map(Path, config.commit_log_dirs)),
        commit_log_read_only_paths=tuple(map(Path, config.read_only_commit_log_dirs)),
        commit_log_file_size=config.mapped_file_size_commit_log,
        warm_file_enable=config.warm_maped_file_enable,
        consume_queue_file_units=config.consume_queue_file_size // UNIT_BYTES,
        enable_consume_queue_ext=config.enable_consume_queue_ext,
        consume_queue_ext_file_size=config.mapped_file_size_consume_queue_ext,
        flush_disk_type=cast("FlushDiskType", config.flush_disk_type),
        flush_interval_commit_log_ms=config.flush_interval_commit_log,
        flush_commit_log_least_pages=config.flush_commit_log_least_pages,
        flush_commit_log_thorough_interval_ms=config.flush_commit_log_thorough_interval,
        flush_interval_consume_queue_ms=config.flush_interval_consume_queue,
        flush_consume_queue_thorough_interval_ms=config.flush_consume_queue_thorough_interval,
        sync_flush_timeout_ms=config.sync_flush_timeout,
        file_reserved_hours=config.file_reserved_time,
        delete_when=config.delete_when,
        clean_resource_interval_ms=config.clean_resource_interval,
        delete_file_batch_max=config.delete_file_batch_max,
        delete_commit_log_files_interval_ms=config.delete_commit_log_files_interval,
        destroy_mapped_file_interval_forcibly_ms=config.destroy_maped_file_interval_forcibly,
        redelete_hanged_file_interval_ms=config.redelete_hanged_file_interval,
        clean_file_forcibly_enable=config.clean_file_forcibly_enable,
        disk_max_used_space_ratio=config.disk_max_used_space_ratio,
        disk_space_clean_forcibly_ratio=config.disk_space_clean_forcibly_ratio,
        disk_space_warning_level_ratio=config.disk_space_warning_level_ratio,
        message_size_max=config.max_message_size,
        check_crc_on_recover=config.check_crc_on_recover,
        message_delay_level=config.message_delay_level,
        message_index_enable=config.message_index_enable and config.index_file_write_enable,
        index_slots=config.max_hash_slot_num,
        index_items=config.max_index_num,
        query_count_max=config.max_msgs_num_batch,
        filter_bytes_max=config.max_filter_message_size,
        transfer_bytes_max_in_memory=config.max_transfer_bytes_on_message_in_memory,
        transfer_count_max_in_memory=config.max_transfer_count_on_message_in_memory,
        transfer_bytes_max_in_disk=config.max_transfer_bytes_on_message_in_disk,
        transfer_count_max_in_disk=config.max_transfer_count_on_message_in_disk,
        access_message_in_memory_max_ratio=config.access_message_in_memory_max_ratio,
    )
