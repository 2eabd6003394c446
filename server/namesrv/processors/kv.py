"""The KV configuration, as tools put, read and delete it. Lane ADMIN."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyritemq.compat import fastjson
from pyritemq.protocol.codes import RequestCode, ResponseCode
from pyritemq.protocol.headers.kv import (
    DeleteKVConfigHeader,
    GetKVConfigHeader,
    GetKVConfigReplyHeader,
    GetKVListByNamespaceHeader,
    PutKVConfigHeader,
)
from pyritemq.server.lanes import Lane
from pyritemq.server.namesrv.kv_config import KvConfigFull
from pyritemq.server.registry import Request, RequestRefused, namesrv_handlers

if TYPE_CHECKING:
    from pyritemq.protocol.command import Command
    from pyritemq.server.namesrv.namesrv import NameServer


@namesrv_handlers.handles(RequestCode.PUT_KV_CONFIG, PutKVConfigHeader, lane=Lane.ADMIN)
def put_kv_config(namesrv: NameServer, request: Request[PutKVConfigHeader]) -> Command:
    header = request.header
    try:
        namesrv.kv_config.put(header.namespace, header.key, header.value)
    except KvConfigFull:
        raise RequestRefused(ResponseCode.SYSTEM_ERROR, "too many config items") from None
    return request.reply()


@namesrv_handlers.handles(RequestCode.GET_KV_CONFIG, GetKVConfigHeader, lane=Lane.ADMIN)
def get_kv_config(namesrv: NameServer, request: Request[GetKVConfigHeader]) -> Command:
    header = request.header
    value = namesrv.kv_config.get(header.namespace, header.key)
    if value is None:
        remark = f"No config item, Namespace: {header.namespace} Key: {header.key}"
        raise RequestRefused(ResponseCode.QUERY_NOT_FOUND, remark)
    return request.reply(header=GetKVConfigReplyHeader(value=value))


@namesrv_handlers.handles(RequestCode.DELETE_KV_CONFIG, DeleteKVConfigHeader, lane=Lane.ADMIN)
def delete_kv_config(namesrv: NameServer, request: Request[DeleteKVConfigHeader]) -> Command:
    namesrv.kv_config.delete(request.header.namespace, request.header.key)
    return request.reply()


@namesrv_handlers.handles(
    RequestCode.GET_KVLIST_BY_NAMESPACE, GetKVListByNamespaceHeader, lane=Lane.ADMIN
)
def get_kv_list_by_namespace(
    namesrv: NameServer, request: Request[GetKVListByNamespaceHeader]
) -> Command:
    entries = namesrv.kv_config.list_namespace(request.header.namespace)
    if entries is None:
        remark = f"No config item, Namespace: {request.header.namespace}"
        raise RequestRefused(ResponseCode.QUERY_NOT_FOUND, remark)
    return request.reply(body=fastjson.dumps({"table": entries}))
