"""The one table from what went wrong to what the client is told.

Called on lane threads.  Whatever a handler raises ends here, so a lane never dies of a request.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from pyritemq.protocol.codes import ResponseCode
from pyritemq.protocol.errors import HeaderSyntaxError, ProtocolError
from pyritemq.server.registry import RequestRefused
from pyritemq.storage.errors import StorageError

if TYPE_CHECKING:
    from pyritemq.protocol.command import Command
    from pyritemq.server.registry import Request

logger = logging.getLogger(__name__)

UNSUPPORTED_REMARK = " request type {code} not supported"
OVERLOAD_REMARK = "[OVERLOAD]system busy, start flow control for a while"


def reply_to_failure(request: Request[Any], error: Exception) -> Command:
    """The reply that an exception becomes; logs a traceback when the fault is ours."""
    if isinstance(error, RequestRefused):
        return request.reply(error.code, error.remark, error.header)
    if isinstance(error, HeaderSyntaxError):
        # Ext fields are looked at late; a peer that breaks the wire is closed all the same.
        request.channel.close()
    if isinstance(error, ProtocolError):
        return request.reply(ResponseCode.SYSTEM_ERROR, str(error))
    if isinstance(error, StorageError):
        logger.error("store failed code=%d reason=%s", request.command.code, error)
        return request.reply(ResponseCode.SYSTEM_ERROR, str(error))
    logger.error(
        "handler failed code=%d opaque=%d peer=%s",
        request.command.code,
        request.command.opaque,
        request.channel.remote_address,
        exc_info=error,
    )
    return request.reply(ResponseCode.SYSTEM_ERROR, f"{type(error).__name__}: {error}")


def reply_unsupported(command: Command) -> Command:
    """For a request code that nothing handles, with Java's remark."""
    return command.make_reply(
        ResponseCode.REQUEST_CODE_NOT_SUPPORTED, UNSUPPORTED_REMARK.format(code=command.code)
    )


def reply_overloaded(command: Command) -> Command:
    """For a request whose lane is full, with Java's remark."""
    return command.make_reply(ResponseCode.SYSTEM_BUSY, OVERLOAD_REMARK)
