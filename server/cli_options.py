"""Options that several of our commands share, each declared once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from pyritemq.server.remoting_server import FRAME_MAX_BYTES

if TYPE_CHECKING:
    from collections.abc import Callable

    Option = Callable[[Callable[..., Any]], Callable[..., Any]]

HELP = {"help_option_names": ["-h", "--help"], "max_content_width": 100}

STORE = click.option(
    "--store",
    type=click.Path(),
    default=None,
    metavar="DIR",
    help="Where messages are kept.  [default: ~/.local/share/pyritemq/store]",
)
LISTEN = click.option(
    "--listen", default=None, metavar="HOST", help="Address to listen on.  [default: 0.0.0.0]"
)
ADVERTISE = click.option(
    "--advertise",
    default=None,
    metavar="HOST[:PORT]",
    help="The broker's address as clients shall see it, when it is not the one it listens on: "
    "behind NAT, in a container, through a tunnel.",
)
FRAME_MAX = click.option(
    "--frame-max",
    type=click.IntRange(min=1024),
    default=FRAME_MAX_BYTES,
    show_default=True,
    metavar="BYTES",
    help="The largest frame that is read; a longer one closes its connection.",
)
LOG_LEVEL = click.option(
    "--log-level",
    type=click.Choice(["debug", "info", "warning", "error"]),
    default="warning",
    show_default=True,
)


def port(flag: str, text: str) -> Option:
    """A port that may be left to a default."""
    ports = click.IntRange(0, 65535)
    return click.option(flag, type=ports, default=None, metavar="PORT", help=text)


METRICS_PORT_DEFAULT = 5557
"""RocketMQ's metricsPromExporterPort."""

METRICS_PORT = click.option(
    "--metrics-port",
    type=click.IntRange(0, 65535),
    is_flag=False,
    flag_value=METRICS_PORT_DEFAULT,
    default=None,
    metavar="[PORT]",
    help="Serve /metrics, /healthz and /readyz over HTTP on this port; 0 takes a free one.  "
    f"[default: off; {METRICS_PORT_DEFAULT} if no port is given]",
)
ALLOW_RESET = click.option(
    "--allow-reset",
    is_flag=True,
    help="For tests: let POST /reset on the metrics port drop all topics, groups, offsets and "
    "messages.  Turns that port on.",
)


def config_file(*flags: str, text: str) -> Option:
    """A file of properties, given to the command as `config_path`."""
    return click.option(
        *flags, "config_path", type=click.Path(), default=None, metavar="FILE", help=text
    )
