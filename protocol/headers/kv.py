"""Headers of the name server's KV configuration."""

from pyritemq.protocol.fields import Header, header


@header
class PutKVConfigHeader(Header):
    namespace: str
    key: str
    value: str


@header
class GetKVConfigHeader(Header):
    namespace: str
    key: str


@header
class GetKVConfigReplyHeader(Header):
    value: str | None = None


@header
class DeleteKVConfigHeader(Header):
    namespace: str
    key: str


@header
class GetKVListByNamespaceHeader(Header):
    namespace: str
