"""What every request header of 5.x may carry besides its own fields (Java: RpcRequestHeader,
TopicRequestHeader): namespace and logical-queue hints, all optional."""

from pyritemq.protocol.fields import Header, header, wire


@header
class RpcHeader(Header):
    namespace: str | None = wire("ns", default=None)
    namespaced: bool | None = wire("nsd", default=None)
    broker_name: str | None = wire("bname", default=None, short="n")
    oneway: bool | None = wire("oway", default=None)


@header
class TopicHeader(RpcHeader):
    logical: bool | None = wire("lo", default=None)
