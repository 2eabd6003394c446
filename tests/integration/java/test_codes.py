"""Which request codes the official 5.5.0 jars handle, by their byte code, and which we do."""

from __future__ import annotations

import re
import subprocess
from typing import TYPE_CHECKING, Any

import pyritemq.server.broker.processors
import pyritemq.server.namesrv.processors  # noqa: F401 - both fill the registries of handlers
from pyritemq.conformance.jars import class_path
from pyritemq.protocol.codes import RequestCode
from pyritemq.server.registry import Registry, broker_handlers, namesrv_handlers

if TYPE_CHECKING:
    from collections.abc import Iterator

LITE = {
    RequestCode.POP_LITE_MESSAGE,
    RequestCode.LITE_SUBSCRIPTION_CTL,
}
"""Lite topics are not there: docs/pop.md."""


def disassembled(name: str) -> list[str]:
    command = ["javap", "-p", "-c", "-cp", class_path(), name]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def switched_codes(processor: str) -> Iterator[int]:
    """The cases of the switch over request codes."""
    lines = iter(disassembled(processor))
    for line in lines:
        if re.search(r" processRequest\(", line):
            break
    for line in lines:
        if re.search(r"lookupswitch|tableswitch", line):
            break
    for line in lines:
        case = re.match(r" +(\d+): \d+$", line)
        if case is None:
            break
        yield int(case[1])


def registered_codes(controller: str) -> Iterator[int]:
    """Codes that have a processor of their own: the constants before registerProcessor."""
    code = 0
    for line in disassembled(controller):
        if constant := re.search(r"[sb]ipush +(\d+)$|ldc(?:_w)? +#\d+ +// int (\d+)", line):
            code = int(constant[1] or constant[2])
        elif "registerProcessor:(I" in line:
            yield code


def ours(registry: Registry[Any]) -> set[int]:
    return set(registry.table())


def named(codes: set[int]) -> set[RequestCode]:
    return {RequestCode(code) for code in codes}


def test_every_code_that_a_java_broker_handles_is_handled() -> None:
    package = "org.apache.rocketmq.broker"
    theirs = set(switched_codes(f"{package}.processor.AdminBrokerProcessor"))
    assert len(theirs) > 70
    own = set(registered_codes(f"{package}.BrokerController"))
    assert len(own) > 30
    assert named((theirs | own) - ours(broker_handlers)) == LITE
    assert named(ours(broker_handlers) - theirs - own) == set()


def test_every_code_that_a_java_name_server_handles_is_handled_and_no_other() -> None:
    package = "org.apache.rocketmq.namesrv"
    theirs = set(switched_codes(f"{package}.processor.DefaultRequestProcessor"))
    own = set(registered_codes(f"{package}.NamesrvController"))
    assert named(theirs | own) == named(ours(namesrv_handlers))
