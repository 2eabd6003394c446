"""`pyritemq top`: a live view in the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
import trio

from pyritemq.server.cli_options import HELP
from pyritemq.server.client_cli import NAMESRV, quietly, run
from pyritemq.server.top import View, compare, look

if TYPE_CHECKING:
    from rich.console import Group
    from rich.table import Table

    from pyritemq.server.client import Client

LINES_AT_REST = 10
FULL = 0.8


@click.command(context_settings=HELP)
@click.option(
    "--interval",
    type=click.FloatRange(0.1, 3600),
    default=2.0,
    show_default=True,
    metavar="SECONDS",
    help="Between two looks.",
)
@click.option("--once", is_flag=True, help="Print one view and end, for scripts and pipes.")
@NAMESRV
@quietly
def top(interval: float, once: bool, namesrv: str) -> None:
    """Topics with messages in and out, groups with lag, lanes; Ctrl-C ends it."""
    # Here, since nothing else needs it and it takes a while to import.
    from rich.console import Console
    from rich.live import Live

    console = Console()

    async def work(client: Client) -> None:
        before = await look(client)
        if once:
            await trio.sleep(interval)
            console.print(picture(compare(before, await look(client)), lines=None))
            return
        with Live(console=console, screen=True, auto_refresh=False) as live:
            while True:
                lines = max(3, (console.height - 14) // 3)
                now = await look(client)
                live.update(picture(compare(before, now), lines=lines), refresh=True)
                before = now
                await trio.sleep(interval)

    run(namesrv, work)


def picture(view: View, *, lines: int | None) -> Group:
    """The three tables, each cut to so many lines."""
    from rich.console import Group
    from rich.markup import escape

    topics = _table("TOPIC", "QUEUES", "MESSAGES", "IN/S", "OUT/S")
    for topic in view.topics[:lines]:
        rates = (f"{topic.in_tps:.1f}", f"{topic.out_tps:.1f}")
        topics.add_row(escape(topic.name), str(topic.queues), str(topic.kept), *rates)
    groups = _table("GROUP", "CONNECTED", "LAG", "OUT/S")
    for group in view.groups[:lines]:
        groups.add_row(escape(group.name), str(group.members), str(group.lag), f"{group.tps:.1f}")
    lanes = _table("LANE", "BROKER", "WAITING", "CAPACITY")
    for lane in view.lanes[: lines or LINES_AT_REST]:
        is_full = lane.queued > lane.capacity * FULL and lane.capacity > 0
        style = "red" if is_full else None
        lanes.add_row(
            escape(lane.lane),
            escape(lane.broker),
            str(lane.queued),
            str(lane.capacity),
            style=style,
        )
    hidden = view.left_out
    if lines is not None:
        hidden += max(0, len(view.topics) - lines) + max(0, len(view.groups) - lines)
    more = [f"{hidden} topics and groups are not shown"] if hidden else []
    return Group(topics, groups, lanes, *more)


def _table(*columns: str) -> Table:
    from rich.table import Table

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for index, column in enumerate(columns):
        is_text = index == 0 or column == "BROKER"
        table.add_column(column, justify="left" if is_text else "right", no_wrap=True, min_width=8)
    return table
