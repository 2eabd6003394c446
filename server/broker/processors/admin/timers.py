"""Timers as tools and slaves ask for them.  Lane ADMIN."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyritemq.protocol.codes import RequestCode, ResponseCode
from pyritemq.server.broker.timers.service import TimersOff
from pyritemq.server.lanes import Lane
from pyritemq.server.registry import Request, RequestRefused, broker_handlers

if TYPE_CHECKING:
    from pyritemq.protocol.command import Command
    from pyritemq.server.broker.broker import Broker

ENGINE_TYPE = "E_T"
ROCKSDB_TIMELINE = "R"
FILE_TIME_WHEEL = "F"


@broker_handlers.handles(RequestCode.GET_TIMER_CHECK_POINT, None, lane=Lane.ADMIN)
def get_timer_check_point(broker: Broker, request: Request[None]) -> Command:
    if isinstance(broker.timers, TimersOff):
        raise RequestRefused(ResponseCode.SYSTEM_ERROR, "The checkpoint is null")
    return request.reply(body=broker.timers.checkpoint())


@broker_handlers.handles(RequestCode.GET_TIMER_METRICS, None, lane=Lane.ADMIN)
def get_timer_metrics(broker: Broker, request: Request[None]) -> Command:
    if isinstance(broker.timers, TimersOff):
        raise RequestRefused(ResponseCode.SYSTEM_ERROR, "The timer message store is null")
    return request.reply(body=broker.timers.metrics.encode())


@broker_handlers.handles(RequestCode.SWITCH_TIMER_ENGINE, None, lane=Lane.ADMIN)
def switch_timer_engine(broker: Broker, request: Request[None]) -> Command:
    """The wheel is the only engine here; a Java broker without timerRocksDBEnable says the same."""
    if not broker.config.timer_wheel_enable:
        raise _invalid("broker timerWheelEnable is false")
    engine = request.command.ext_fields.get(ENGINE_TYPE)
    if engine == ROCKSDB_TIMELINE:
        raise _invalid("timerRocksDBEnable must be configured true when broker start")
    if engine != FILE_TIME_WHEEL:
        raise _invalid("param error")
    return request.reply(remark="switch timer engine success")


def _invalid(remark: str) -> RequestRefused:
    return RequestRefused(ResponseCode.INVALID_PARAMETER, remark)
