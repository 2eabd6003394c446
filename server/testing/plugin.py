"""The pytest plug-in: a `rocketmq` fixture that every test finds empty.

One server serves the whole session (with pytest-xdist: one for each worker) and is started by the
first test that asks for it.  Between two tests it is reset, which takes milliseconds and leaves
clients connected; a test should close its own all the same, since a consumer that goes on makes its
group anew.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, cast

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyritemq.server.testing.servers import RocketMQ

MODES = ("thread", "process")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addini(
        "rocketmq_mode",
        "Where the server of the `rocketmq` fixture runs: in a `thread` of the tests, or as a "
        "`process` of its own.",
        default="thread",
    )
    parser.addini(
        "rocketmq_properties",
        "Properties of the broker, one `name=value` a line, by the names of broker.conf.",
        type="linelist",
        default=[],
    )
    group = parser.getgroup("rocketmq")
    group.addoption(
        "--rocketmq-mode",
        choices=MODES,
        default=None,
        help="where the server of the `rocketmq` fixture runs; comes before the ini option",
    )


@pytest.fixture(scope="session")
def rocketmq_properties(pytestconfig: pytest.Config) -> dict[str, str]:
    """Properties of the broker; override this fixture, or set the ini option of the same name."""
    properties = {}
    for line in pytestconfig.getini("rocketmq_properties"):
        name, equals, value = line.partition("=")
        if not equals:
            raise pytest.UsageError(f"rocketmq_properties: {line!r} is not of the form name=value")
        properties[name.strip()] = value.strip()
    return properties


@pytest.fixture(scope="session")
def rocketmq_session(
    pytestconfig: pytest.Config, rocketmq_properties: dict[str, str]
) -> Iterator[RocketMQ]:
    """One server for the session, never reset by itself."""
    # Not at the top: every pytest run loads this module, and few need a server.
    from pyritemq.server.testing.servers import rocketmq_server

    mode = pytestconfig.getoption("--rocketmq-mode") or pytestconfig.getini("rocketmq_mode")
    if mode not in MODES:
        raise pytest.UsageError(f"rocketmq_mode: {mode!r} is neither of {', '.join(MODES)}")
    known = cast("Literal['thread', 'process']", mode)
    with rocketmq_server(known, properties=rocketmq_properties) as server:
        yield server


@pytest.fixture
def rocketmq(rocketmq_session: RocketMQ) -> Iterator[RocketMQ]:
    """An empty server: `rocketmq.namesrv` is the address that clients need."""
    yield rocketmq_session
    rocketmq_session.reset()
