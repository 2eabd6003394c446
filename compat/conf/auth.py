"""The properties of authentication and authorisation: org.apache.rocketmq.auth.config.AuthConfig.

Data only, in Java's order: the names, types and defaults of 5.5.0. `used=True` marks what has an
effect in PyriteMQ; everything else is known, kept and shown, so that a Java file is taken as it is.
"""

from pyritemq.compat.conf.settings import Bool, Int, NullableStr, Settings


class AuthTable(Settings):
    """Users, access lists and their caches."""

    SECTION = "AuthConfig"

    config_name: NullableStr = None
    cluster_name: NullableStr = None
    auth_config_path: NullableStr = None
    authentication_enabled: Bool = False
    authentication_provider: NullableStr = None
    authentication_metadata_provider: NullableStr = None
    authentication_strategy: NullableStr = None
    authentication_whitelist: NullableStr = None
    init_authentication_user: NullableStr = None
    inner_client_authentication_credentials: NullableStr = None
    authorization_enabled: Bool = False
    authorization_provider: NullableStr = None
    authorization_metadata_provider: NullableStr = None
    authorization_strategy: NullableStr = None
    authorization_whitelist: NullableStr = None
    migrate_auth_from_v1_enabled: Bool = False
    user_cache_max_num: Int = 1000
    user_cache_expired_second: Int = 600
    user_cache_refresh_second: Int = 60
    acl_cache_max_num: Int = 1000
    acl_cache_expired_second: Int = 600
    acl_cache_refresh_second: Int = 60
    stateful_authentication_cache_max_num: Int = 10000
    stateful_authentication_cache_expired_second: Int = 60
    stateful_authorization_cache_max_num: Int = 10000
    stateful_authorization_cache_expired_second: Int = 60
