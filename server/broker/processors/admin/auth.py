"""Users and access control: not there, which is what Java says with its default configuration.

Without an authentication provider each of these ends, in Java 5.5.0, as a system error of this
wording.  Lane ADMIN.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

from pyritemq.protocol.codes import RequestCode, ResponseCode
from pyritemq.server.lanes import Lane
from pyritemq.server.registry import Request, RequestRefused, broker_handlers

if TYPE_CHECKING:
    from pyritemq.server.broker.broker import Broker

NO_PROVIDER = "An system error occurred, please try again later."

AUTH_CODES = (
    RequestCode.AUTH_CREATE_USER,
    RequestCode.AUTH_UPDATE_USER,
    RequestCode.AUTH_DELETE_USER,
    RequestCode.AUTH_GET_USER,
    RequestCode.AUTH_LIST_USER,
    RequestCode.AUTH_CREATE_ACL,
    RequestCode.AUTH_UPDATE_ACL,
    RequestCode.AUTH_DELETE_ACL,
    RequestCode.AUTH_GET_ACL,
    RequestCode.AUTH_LIST_ACL,
)


def refuse_without_provider(_: Broker, request: Request[None]) -> NoReturn:
    raise RequestRefused(ResponseCode.SYSTEM_ERROR, NO_PROVIDER)


for _code in AUTH_CODES:
    broker_handlers.handles(_code, None, lane=Lane.ADMIN)(refuse_without_provider)
