"""`pyritemq topic|group|message|send|tail`: quick work on a cluster, ours or a Java one."""

from __future__ import annotations

import functools
import os
import sys
from datetime import datetime
from typing import TYPE_CHECKING, ParamSpec, TypeVar

import click
import trio

from pyritemq.protocol.codes import RequestCode
from pyritemq.protocol.record import decode_properties
from pyritemq.server.broker.state.names import (
    DLQ_TOPIC_PREFIX,
    RETRY_TOPIC_PREFIX,
    SYSTEM_TOPIC_PREFIX,
    SYSTEM_TOPICS,
    is_pulling_system_group,
)
from pyritemq.server.cli_options import HELP
from pyritemq.server.client import GROUP, PERM_READ, PULL_MAX, Client, ClientError, open_client

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Sequence

    from pyritemq.protocol.record import Record
    from pyritemq.server.client import Queue, Sent

P = ParamSpec("P")
T = TypeVar("T")

DEFAULT_NAMESRV = "127.0.0.1:9876"
TAIL_WAIT_MS = 15_000
"""Java's brokerSuspendMaxTimeMillis."""

BODY_SHOWN = 200
OURS = ("UNIQ_KEY", "WAIT", "CLUSTER", "MSG_REGION", "TRACE_ON")
"""Properties that every message has and nobody asked for."""

NAMESRV = click.option(
    "-n",
    "--namesrv",
    envvar="NAMESRV_ADDR",
    default=DEFAULT_NAMESRV,
    show_default=True,
    metavar="HOST:PORT[;…]",
    help="Name servers; the environment's NAMESRV_ADDR if that is set.",
)


def run(namesrv: str, work: Callable[[Client], Awaitable[T]]) -> T:
    """Work with a client; what goes wrong becomes one sentence and exit code 1."""

    async def with_client() -> T:
        async with open_client(namesrv) as client:
            return await work(client)

    try:
        return trio.run(with_client)
    except* ClientError as group:
        error: BaseException = group
        while isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
        click.echo(f"pyritemq: {error}", err=True)
    sys.exit(1)


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Columns as wide as they need to be; numbers to the right."""
    texts = [list(map(str, row)) for row in rows]
    widths = [max(map(len, column)) for column in zip(head, *texts, strict=True)]
    lines = []
    for line in [list(head), *texts]:
        cells = [
            cell.rjust(width) if cell.lstrip("-").isdigit() else cell.ljust(width)
            for cell, width in zip(line, widths, strict=True)
        ]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)


def quietly(command: Callable[P, None]) -> Callable[P, None]:
    """Ctrl-C and a closed pipe end a command without a word."""

    @functools.wraps(command)
    def call(*args: P.args, **kwargs: P.kwargs) -> None:
        try:
            command(*args, **kwargs)
        except KeyboardInterrupt:
            sys.exit(130)
        except BrokenPipeError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            sys.exit(0)

    return call


# -- topics -------------------------------------------------------------------------------------


@click.group(context_settings=HELP)
def topic() -> None:
    """List, show, create and delete topics."""


@topic.command("list", context_settings=HELP)
@click.option("--all", "with_system", is_flag=True, help="System, retry and DLQ topics as well.")
@NAMESRV
@quietly
def topic_list(with_system: bool, namesrv: str) -> None:
    """All topics with their queues and messages."""

    async def work(client: Client) -> None:
        found = await client.topics()
        if not with_system:
            found = {name: found[name] for name in await user_topics(client, found)}
        rows = []
        for name in sorted(found):
            stats = await client.topic_stats(name)
            kept = sum(one["maxOffset"] - one["minOffset"] for one in stats.values())
            rows.append((name, len(found[name]), len(stats), kept))
        click.echo(table(("TOPIC", "BROKERS", "QUEUES", "MESSAGES"), rows))

    run(namesrv, work)


async def user_topics(client: Client, topics: Iterable[str]) -> list[str]:
    """Those that are neither the server's nor made for a group."""
    system = await client.system_topics() | SYSTEM_TOPICS
    prefixes = (RETRY_TOPIC_PREFIX, DLQ_TOPIC_PREFIX, SYSTEM_TOPIC_PREFIX)
    return [name for name in topics if name not in system and not name.startswith(prefixes)]


@topic.command("show", context_settings=HELP)
@click.argument("name")
@NAMESRV
@quietly
def topic_show(name: str, namesrv: str) -> None:
    """The queues of a topic."""

    async def work(client: Client) -> None:
        stats = await client.topic_stats(name)
        rows = [
            (queue.broker, queue.queue_id, one["minOffset"], one["maxOffset"], _time(one))
            for queue, one in sorted(stats.items())
        ]
        click.echo(table(("BROKER", "QUEUE", "FIRST", "END", "LAST MESSAGE"), rows))

    run(namesrv, work)


def _time(stats: dict[str, int]) -> str:
    return time_text(stats["lastUpdateTimestamp"]) if stats["lastUpdateTimestamp"] > 0 else "-"


def time_text(time_ms: int) -> str:
    local = datetime.fromtimestamp(time_ms / 1000).astimezone()
    return local.strftime("%Y-%m-%d %H:%M:%S.") + f"{time_ms % 1000:03d}"


@topic.command("create", context_settings=HELP)
@click.argument("name")
@click.option(
    "--queues", type=click.IntRange(1, 1024), default=8, show_default=True, help="On each broker."
)
@NAMESRV
@quietly
def topic_create(name: str, queues: int, namesrv: str) -> None:
    """Make a topic, or change its number of queues, on every broker."""
    run(namesrv, lambda client: client.create_topic(name, queue_nums=queues))


@topic.command("delete", context_settings=HELP)
@click.argument("name")
@click.confirmation_option("--yes", prompt="Delete the topic and all its messages?")
@NAMESRV
@quietly
def topic_delete(name: str, namesrv: str) -> None:
    """Delete a topic and its messages."""
    run(namesrv, lambda client: client.delete_topic(name))


# -- groups -------------------------------------------------------------------------------------


@click.group(context_settings=HELP)
def group() -> None:
    """List, show, create and delete consumer groups."""


@group.command("list", context_settings=HELP)
@click.option("--all", "with_system", is_flag=True, help="Groups of brokers and tools as well.")
@NAMESRV
@quietly
def group_list(with_system: bool, namesrv: str) -> None:
    """All groups, who is connected, and how far they are behind."""

    async def work(client: Client) -> None:
        found = await client.groups()
        rows = []
        for name in sorted(found if with_system else user_groups(found)):
            members = await client.members(name)
            progress = await client.progress(name)
            lag = sum(one["brokerOffset"] - one["consumerOffset"] for one in progress.values())
            rows.append((name, len(members), lag))
        click.echo(table(("GROUP", "CONNECTED", "LAG"), rows))

    run(namesrv, work)


def user_groups(groups: Iterable[str]) -> list[str]:
    """Those that neither a broker nor a tool has made for itself."""
    return [name for name in groups if name != GROUP and not is_pulling_system_group(name)]


@group.command("show", context_settings=HELP)
@click.argument("name")
@NAMESRV
@quietly
def group_show(name: str, namesrv: str) -> None:
    """A group's offsets in each queue, and its members."""

    async def work(client: Client) -> None:
        if name not in await client.groups():
            raise ClientError(f"there is no group {name}")
        rows = []
        for queue, one in sorted((await client.progress(name)).items()):
            lag = one["brokerOffset"] - one["consumerOffset"]
            place = (queue.topic, queue.broker, queue.queue_id)
            rows.append((*place, one["consumerOffset"], one["brokerOffset"], lag))
        click.echo(table(("TOPIC", "BROKER", "QUEUE", "CONSUMED", "END", "LAG"), rows))
        members = [
            (one["clientId"], one["clientAddr"], one["language"])
            for one in await client.members(name)
        ]
        click.echo("\n" + table(("CLIENT", "ADDRESS", "LANGUAGE"), members))

    run(namesrv, work)


@group.command("create", context_settings=HELP)
@click.argument("name")
@NAMESRV
@quietly
def group_create(name: str, namesrv: str) -> None:
    """Make a group with the default settings on every broker."""
    run(namesrv, lambda client: client.create_group(name))


@group.command("delete", context_settings=HELP)
@click.argument("name")
@click.confirmation_option("--yes", prompt="Delete the group and its offsets?")
@NAMESRV
@quietly
def group_delete(name: str, namesrv: str) -> None:
    """Delete a group and its offsets."""
    run(namesrv, lambda client: client.delete_group(name))


# -- messages -----------------------------------------------------------------------------------


@click.group(context_settings=HELP)
def message() -> None:
    """Look at single messages."""


@message.command("show", context_settings=HELP)
@click.argument("message_id")
@NAMESRV
@quietly
def message_show(message_id: str, namesrv: str) -> None:
    """The message of an id that names its place: the `msgId` that a send got."""

    async def work(client: Client) -> None:
        click.echo(describe(await client.message(message_id)))

    run(namesrv, work)


@message.command("find", context_settings=HELP)
@click.argument("topic_name", metavar="TOPIC")
@click.argument("key")
@click.option("--count", type=click.IntRange(1, 1000), default=PULL_MAX, show_default=True)
@NAMESRV
@quietly
def message_find(topic_name: str, key: str, count: int, namesrv: str) -> None:
    """Messages of a topic by key, or by the id that a client gave them."""

    async def work(client: Client) -> None:
        found = await client.messages(topic_name, key, count=count)
        if not found:
            raise ClientError(f"no message of {topic_name} has the key {key}")
        click.echo("\n\n".join(describe(record) for record in found))

    run(namesrv, work)


def describe(record: Record) -> str:
    """A message in lines, its body last."""
    lines = [
        f"topic      {record.topic}",
        f"queue      {record.queue_id} at {record.queue_offset}",
        f"stored     {time_text(record.store_timestamp)}",
        f"born       {time_text(record.born_timestamp)}",
    ]
    if record.reconsume_times:
        lines.append(f"tried      {record.reconsume_times} times")
    properties = decode_properties(record.properties)
    lines += [f"property   {name}={value}" for name, value in sorted(properties.items())]
    return "\n".join([*map(printable, lines), f"body       {body_text(record.body)}"])


def printable(text: str) -> str:
    """What a producer wrote must not move the reader's cursor."""
    return "".join(mark if mark.isprintable() else f"\\x{ord(mark):02x}" for mark in text)


def body_text(body: bytes, longest: int | None = None) -> str:
    """As text if it is printable, else in hex."""
    try:
        text = body.decode()
    except UnicodeDecodeError:
        text = ""
    shown = text if text.isprintable() and text else "0x" + body.hex() if body else ""
    return shown if longest is None or len(shown) <= longest else shown[:longest] + "…"


@click.command(context_settings=HELP)
@click.argument("topic_name", metavar="TOPIC")
@click.argument("body", required=False)
@click.option("--tag", default=None, help="What consumers filter by.")
@click.option("--key", "keys", multiple=True, help="What the message is found by; may be repeated.")
@click.option("--property", "pairs", multiple=True, metavar="NAME=VALUE", help="May be repeated.")
@click.option("--delay", type=click.IntRange(0), default=None, metavar="SECONDS")
@click.option("--count", type=click.IntRange(1, 1_000_000), default=1, show_default=True)
@NAMESRV
@quietly
def send(
    topic_name: str,
    body: str | None,
    tag: str | None,
    keys: tuple[str, ...],
    pairs: tuple[str, ...],
    delay: int | None,
    count: int,
    namesrv: str,
) -> None:
    """Send BODY to a topic; without one, each line of the standard input."""
    properties = message_properties(tag, keys, pairs, delay)
    bodies = [body.encode()] * count if body is not None else None

    async def work(client: Client) -> None:
        lines = bodies if bodies is not None else (line.rstrip(b"\r\n") for line in _stdin())
        for text in lines:
            if text:
                click.echo(_receipt(await client.send(topic_name, text, properties=properties)))

    run(namesrv, work)


def _stdin() -> Iterable[bytes]:
    return sys.stdin.buffer


def message_properties(
    tag: str | None, keys: Iterable[str], pairs: Iterable[str], delay: int | None
) -> dict[str, str]:
    """RocketMQ's own names; a name or value that would break the others is refused."""
    properties = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not name or not equals:
            raise click.BadParameter(f"{pair!r} is not NAME=VALUE", param_hint="--property")
        properties[name] = value
    if tag:
        properties["TAGS"] = tag
    if joined := " ".join(keys):
        properties["KEYS"] = joined
    if delay is not None:
        properties["TIMER_DELAY_SEC"] = str(delay)
    if any(mark in text for pair in properties.items() for text in pair for mark in "\x01\x02"):
        raise click.BadParameter("\\x01 and \\x02 separate properties and cannot be in one")
    return properties


def _receipt(sent: Sent) -> str:
    place = f"{sent.queue.broker} queue {sent.queue.queue_id} offset {sent.offset}"
    return f"{sent.message_id}  {place}" + ("" if sent.is_durable else "  not synced in time")


@click.command(context_settings=HELP)
@click.argument("topic_name", metavar="TOPIC")
@click.option("--from-start", is_flag=True, help="All that is there first, then what comes.")
@click.option("--tag", default="*", show_default=True, help="Only these: A, or A||B.")
@click.option("--count", type=click.IntRange(1), default=None, help="End after so many messages.")
@click.option("--follow/--no-follow", default=True, show_default=True, help="Wait for more.")
@NAMESRV
@quietly
def tail(
    topic_name: str, from_start: bool, tag: str, count: int | None, follow: bool, namesrv: str
) -> None:
    """Print messages of a topic as they come; no group's offsets are touched."""

    async def work(client: Client) -> None:
        watch = Tail(client, tag, count, follow=follow)
        await watch.run(await client.queues(topic_name, perm=PERM_READ), from_start=from_start)

    run(namesrv, work)


class Tail:
    """One task for each queue, until enough messages were printed."""

    def __init__(self, client: Client, tags: str, count: int | None, *, follow: bool) -> None:
        self._client = client
        self._tags = tags
        self._left = count
        self._follow = follow
        self._scope = trio.CancelScope()

    async def run(self, queues: list[Queue], *, from_start: bool) -> None:
        code = RequestCode.GET_MIN_OFFSET if from_start else RequestCode.GET_MAX_OFFSET
        starts = [(queue, await self._client.offset(queue, code)) for queue in queues]
        click.echo(f"{len(queues)} queues", err=True)  # from here on nothing is missed
        with self._scope:
            async with trio.open_nursery() as nursery:
                for queue, start in starts:
                    nursery.start_soon(self._watch, queue, start)

    async def _watch(self, queue: Queue, offset: int) -> None:
        wait_ms = TAIL_WAIT_MS if self._follow else 0
        while True:
            found = await self._client.pull(queue, offset, tags=self._tags, wait_ms=wait_ms)
            for record in found.records:
                self._print(record)
            if not found.records and found.next_offset <= offset and not self._follow:
                return
            offset = max(offset, found.next_offset)

    def _print(self, record: Record) -> None:
        if self._left == 0:
            return
        properties = decode_properties(record.properties)
        shown = " ".join(f"{n}={v}" for n, v in properties.items() if n not in OURS)
        place = f"{time_text(record.store_timestamp)} {record.queue_id}:{record.queue_offset}"
        body = body_text(record.body, BODY_SHOWN)
        click.echo("  ".join(part for part in (place, printable(shown), body) if part))
        if self._left is not None:
            self._left -= 1
            if self._left == 0:
                self._scope.cancel()


COMMANDS: tuple[click.Command, ...] = (topic, group, message, send, tail)
