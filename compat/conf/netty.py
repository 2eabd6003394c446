"""The transport's properties: NettyServerConfig and NettyClientConfig of RocketMQ's remoting.

Data only, in Java's order: the names, types and defaults of 5.5.0. `used=True` marks what has an
effect in PyriteMQ; everything else is known, kept and shown, so that a Java file is taken as it is.
"""

from pyritemq.compat.conf.settings import Bool, Int, Long, Settings, Str, from_host, key


class NettyServerTable(Settings):
    """The listening side."""

    SECTION = "NettyServerConfig"

    bind_address: Str = key("0.0.0.0", used=True)  # noqa: S104  (Java's default)
    listen_port: Int = key(0, used=True, at_least=0, at_most=65535)
    server_worker_threads: Int = 8
    server_callback_executor_threads: Int = 0
    server_selector_threads: Int = 3
    server_oneway_semaphore_value: Int = 256
    server_async_semaphore_value: Int = 64
    server_channel_max_idle_time_seconds: Int = key(120, used=True, at_least=0)
    server_socket_snd_buf_size: Int = 0
    server_socket_rcv_buf_size: Int = 0
    write_buffer_high_water_mark: Int = 0
    write_buffer_low_water_mark: Int = 0
    server_socket_backlog: Int = key(1024, used=True, at_least=1)
    server_netty_worker_group_enable: Bool = True
    server_pooled_byte_buf_allocator_enable: Bool = True
    enable_shutdown_gracefully: Bool = False
    shutdown_wait_time_seconds: Int = 30
    use_epoll_native_selector: Bool = False


class NettyClientTable(Settings):
    """The side that calls name servers and brokers."""

    SECTION = "NettyClientConfig"

    client_worker_threads: Int = 4
    client_callback_executor_threads: Int = from_host(lambda host: host.processors)
    client_oneway_semaphore_value: Int = 65535
    client_async_semaphore_value: Int = 65535
    connect_timeout_millis: Int = key(3000, at_least=0)
    channel_not_active_interval: Long = 60000
    is_scan_available_name_srv: Bool = key(True, set_as="scanAvailableNameSrv")
    client_channel_max_idle_time_seconds: Int = 120
    client_socket_snd_buf_size: Int = 0
    client_socket_rcv_buf_size: Int = 0
    client_pooled_byte_buf_allocator_enable: Bool = False
    client_close_socket_if_timeout: Bool = True
    use_tls: Bool = key(False, name="useTLS")
    socks_proxy_config: Str = "{}"
    write_buffer_high_water_mark: Int = 0
    write_buffer_low_water_mark: Int = 0
    disable_callback_executor: Bool = False
    disable_netty_worker_group: Bool = False
    max_reconnect_interval_time_seconds: Long = 60
    enable_reconnect_for_go_away: Bool = True
