"""The commands: `pyritemq serve|namesrv|broker|store` and Java's `mqnamesrv` and `mqbroker`.

This module only turns a command line into a configuration and prints what a person must read; the
work is in `lifecycle`.  A user's mistake ends as one sentence on standard error and exit code 1.
"""

from __future__ import annotations

import functools
import os
import sys
from importlib.metadata import entry_points
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn, ParamSpec

import click

from pyritemq.compat.broker_conf import BrokerConfig
from pyritemq.compat.conf.settings import ConfigError, Settings
from pyritemq.compat.namesrv_conf import NamesrvConfig
from pyritemq.compat.properties_file import parse_properties
from pyritemq.server import client_cli, lifecycle, log, store_cli, top_cli
from pyritemq.server.cli_options import (
    ADVERTISE,
    ALLOW_RESET,
    FRAME_MAX,
    HELP,
    LISTEN,
    LOG_LEVEL,
    METRICS_PORT,
    METRICS_PORT_DEFAULT,
    STORE,
    config_file,
    port,
)
from pyritemq.server.host import host_facts
from pyritemq.server.listener import AddressInUse
from pyritemq.storage.errors import StorageError

if TYPE_CHECKING:
    from collections.abc import Callable

P = ParamSpec("P")

EVERYWHERE = ("0.0.0.0", "::")  # noqa: S104 - compared with, not listened on


def _default_store() -> Path:
    data = os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share"
    return Path(data) / "pyritemq" / "store"


def _fail(sentence: str) -> NoReturn:
    click.echo(f"pyritemq: {sentence}", err=True)
    sys.exit(1)


def _plain_errors(command: Callable[P, None]) -> Callable[P, None]:
    """Turn the errors that a user can mend into one sentence."""

    @functools.wraps(command)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        try:
            command(*args, **kwargs)
        except (ConfigError, AddressInUse, StorageError, ValueError) as error:
            _fail(str(error))
        except OSError as error:
            _fail(f"{error.filename or 'cannot start'}: {error.strerror or error}")

    return run


def _read_properties(path: str | None) -> dict[str, str]:
    if path is None:
        return {}
    try:
        return parse_properties(Path(path).read_text(encoding="utf-8"))
    except UnicodeDecodeError:
        raise ConfigError(f"{path}: not a text file in UTF-8") from None
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror}") from None


def _broker_config(path: str | None, overrides: dict[str, str | None]) -> BrokerConfig:
    properties = _read_properties(path)
    properties.update({name: text for name, text in overrides.items() if text is not None})
    config, warnings = BrokerConfig.from_properties(
        properties, host=host_facts(), source=path or "command line"
    )
    if path is not None:
        # Where a configuration that is changed at run time is saved, as in Java.
        config.broker_config_path = path
    _print_warnings(warnings)
    return config


def _namesrv_config(path: str | None, overrides: dict[str, str | None]) -> NamesrvConfig:
    properties = _read_properties(path)
    properties.update({name: text for name, text in overrides.items() if text is not None})
    config, warnings = NamesrvConfig.from_properties(
        properties, host=host_facts(), source=path or "command line"
    )
    if path is not None:
        # As in Java, a configuration that is changed at run time is saved where it came from.
        config.config_store_path = path
    _print_warnings(warnings)
    return config


def _print_warnings(warnings: list[str]) -> None:
    for warning in warnings:
        click.echo(f"pyritemq: warning: {warning}", err=True)


def _own_defaults(path: str | None, listen: str | None, store: str | None) -> dict[str, str | None]:
    """Where our commands differ from Java's script when neither file nor option says anything."""
    set_in_file = _read_properties(path)
    defaults: dict[str, str | None] = {"bindAddress": listen, "storePathRootDir": store}
    if store is None and "storePathRootDir" not in set_in_file:
        defaults["storePathRootDir"] = str(_default_store())
    if listen not in (None, *EVERYWHERE) and "brokerIP1" not in set_in_file:
        # Java would advertise the machine's address, where nobody listens then.
        defaults["brokerIP1"] = listen
    return defaults


def _metrics_port(asked: int | None, *, allow_reset: bool) -> int | None:
    return METRICS_PORT_DEFAULT if asked is None and allow_reset else asked


def _text(number: int | None) -> str | None:
    return None if number is None else str(number)


class _Commands(click.Group):
    """Our own commands, and those that other parts declare as entry points, loaded when called."""

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        command = super().get_command(ctx, cmd_name)
        for point in entry_points(group="pyritemq.commands", name=cmd_name) if not command else ():
            try:
                loaded: click.Command = point.load()
            except ModuleNotFoundError as error:
                _fail(
                    f"{cmd_name} needs the Python package '{error.name}': install the extra that "
                    "brings it, as in pip install 'pyritemq[spark]'"
                )
            return loaded
        return command

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted({*self.commands, *entry_points(group="pyritemq.commands").names})

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Help loads nothing: a command of another part may lack what it needs."""
        own = [(name, each.get_short_help_str()) for name, each in sorted(self.commands.items())]
        others = entry_points(group="pyritemq.commands")
        with formatter.section("Commands"):
            formatter.write_dl(own + [(each.name, "See its --help.") for each in others])


@click.group(cls=_Commands, context_settings=HELP)
@click.version_option(package_name="pyritemq", prog_name="pyritemq")
def main() -> None:
    """A drop-in server for RocketMQ clients.

    Start with `pyritemq serve`: a name server on port 9876 and a broker on port 10911 in one
    process.  Clients need nothing but the name server's address.
    """


main.add_command(store_cli.store)
for _command in (*client_cli.COMMANDS, top_cli.top):
    main.add_command(_command)


@main.command(context_settings=HELP)
@STORE
@LISTEN
@port("--namesrv-port", "Name server's port; 0 takes a free one.  [default: 9876]")
@port(
    "--broker-port",
    "Broker's port; 0 takes a free one.  The VIP channel is two below.  [default: 10911]",
)
@ADVERTISE
@click.option(
    "--brokers",
    type=click.IntRange(1, 64),
    default=1,
    show_default=True,
    metavar="N",
    help="Number of broker processes, each with its own store and ports (10911, 10921 …).",
)
@config_file("-c", "--config", text="A broker.conf with Java's property names.")
@METRICS_PORT
@ALLOW_RESET
@FRAME_MAX
@LOG_LEVEL
@_plain_errors
def serve(
    store: str | None,
    listen: str | None,
    namesrv_port: int | None,
    broker_port: int | None,
    advertise: str | None,
    brokers: int,
    config_path: str | None,
    metrics_port: int | None,
    allow_reset: bool,
    frame_max: int,
    log_level: str,
) -> None:
    """Run a name server and a broker in one process."""
    log.configure(log_level)
    # The name server is our own: an address from the environment is somebody else's.
    os.environ.pop("NAMESRV_ADDR", None)
    overrides = _own_defaults(config_path, listen, store) | {"listenPort": _text(broker_port)}
    broker_config = _broker_config(config_path, overrides)
    namesrv_config = _namesrv_config(
        None, {"listenPort": _text(namesrv_port), "bindAddress": listen}
    )
    lifecycle.serve(
        namesrv_config,
        broker_config,
        lifecycle.Options(
            advertise=advertise,
            metrics_port=_metrics_port(metrics_port, allow_reset=allow_reset),
            allow_reset=allow_reset,
            brokers=brokers,
            config_path=config_path,
            log_level=log_level,
            frame_max=frame_max,
        ),
    )


@main.command(context_settings=HELP)
@config_file("-c", "--config", text="A namesrv.conf with Java's property names.")
@LISTEN
@port("--port", "Port; 0 takes a free one.  [default: 9876]")
@METRICS_PORT
@FRAME_MAX
@LOG_LEVEL
@_plain_errors
def namesrv(
    config_path: str | None,
    listen: str | None,
    port: int | None,
    metrics_port: int | None,
    frame_max: int,
    log_level: str,
) -> None:
    """Run a name server alone."""
    log.configure(log_level)
    config = _namesrv_config(config_path, {"listenPort": _text(port), "bindAddress": listen})
    lifecycle.serve_namesrv(
        config, lifecycle.Options(metrics_port=metrics_port, frame_max=frame_max)
    )


@main.command(context_settings=HELP)
@click.option(
    "-n",
    "--namesrv",
    "namesrv_addr",
    default=None,
    metavar="HOST:PORT[;…]",
    help="Name servers to register with.  [default: $NAMESRV_ADDR]",
)
@config_file("-c", "--config", text="A broker.conf with Java's property names.")
@click.option("--name", default=None, help="The broker's name.  [default: the host's name]")
@STORE
@LISTEN
@port("--port", "Port; 0 takes a free one.  The VIP channel is two below.  [default: 10911]")
@ADVERTISE
@METRICS_PORT
@ALLOW_RESET
@FRAME_MAX
@LOG_LEVEL
@_plain_errors
def broker(
    namesrv_addr: str | None,
    config_path: str | None,
    name: str | None,
    store: str | None,
    listen: str | None,
    port: int | None,
    advertise: str | None,
    metrics_port: int | None,
    allow_reset: bool,
    frame_max: int,
    log_level: str,
) -> None:
    """Run a broker alone."""
    log.configure(log_level)
    overrides = _own_defaults(config_path, listen, store) | {
        "namesrvAddr": namesrv_addr,
        "brokerName": name,
        "listenPort": _text(port),
    }
    config = _broker_config(config_path, overrides)
    options = lifecycle.Options(
        advertise=advertise,
        metrics_port=_metrics_port(metrics_port, allow_reset=allow_reset),
        allow_reset=allow_reset,
        frame_max=frame_max,
    )
    lifecycle.serve_broker(config, options)


@click.command(context_settings=HELP)
@config_file("-c", "--configFile", text="Name server config properties file.")
@click.option("-n", "--namesrvAddr", "_namesrv_addr", default=None, hidden=True)
@click.option(
    "-p", "--printConfigItem", "print_all", is_flag=True, help="Print all config items and exit."
)
@_plain_errors
def mqnamesrv(config_path: str | None, _namesrv_addr: str | None, print_all: bool) -> None:
    """Run a name server, with the flags of RocketMQ's own script."""
    config = _namesrv_config(config_path, {})
    if print_all:
        _print_items(config, important_only=False)
        return
    log.configure("warning")
    lifecycle.serve_namesrv(config, lifecycle.Options())


@click.command(context_settings=HELP)
@config_file("-c", "--configFile", text="Broker config properties file.")
@click.option(
    "-n",
    "--namesrvAddr",
    "namesrv_addr",
    default=None,
    metavar="HOST:PORT[;…]",
    help="Name server address list, eg: '192.168.0.1:9876;192.168.0.2:9876'.",
)
@click.option(
    "-p", "--printConfigItem", "print_all", is_flag=True, help="Print all config items and exit."
)
@click.option(
    "-m",
    "--printImportantConfig",
    "print_important",
    is_flag=True,
    help="Print important config items and exit.",
)
@_plain_errors
def mqbroker(
    config_path: str | None,
    namesrv_addr: str | None,
    print_all: bool,
    print_important: bool,
) -> None:
    """Run a broker, with the flags of RocketMQ's own script."""
    config = _broker_config(config_path, {"namesrvAddr": namesrv_addr})
    if print_all or print_important:
        _print_items(config, important_only=not print_all)
        return
    log.configure("warning")
    lifecycle.serve_broker(config, lifecycle.Options())


def _print_items(config: Settings, *, important_only: bool) -> None:
    for line in config.describe(important=important_only):
        click.echo(line)
