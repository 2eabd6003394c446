"""`pyritemq topic|group|message|send|tail|top` against a server in this process."""

import re

import pytest
import trio
from click.testing import CliRunner

from integration.test_reset import held
from pyritemq.protocol.record import decode_properties
from pyritemq.server.cli import main
from pyritemq.server.client import PERM_READ, ClientError, open_client
from pyritemq.server.top import GroupLine, TopicLine, compare, look


@pytest.fixture
def run(server):
    """Runs a command in a thread; the server has this one."""

    async def run(*arguments, stdin=None):
        words = [*arguments, "-n", server.namesrv_address]
        call = lambda: CliRunner().invoke(main, words, input=stdin)  # noqa: E731
        with trio.fail_after(30):
            return await trio.to_thread.run_sync(call)

    return run


async def ok(result):
    result = await result
    assert result.exit_code == 0, result.output + repr(result.exception)
    return result.stdout


def rows(text):
    return [re.split(r"  +", line.strip()) for line in text.splitlines()[1:]]


async def test_topics_are_made_listed_shown_and_deleted(run):
    await ok(run("topic", "create", "Orders", "--queues", "2"))
    await ok(run("send", "Orders", "hello"))
    assert rows(await ok(run("topic", "list"))) == [["Orders", "1", "2", "1"]]
    assert len(rows(await ok(run("topic", "list", "--all")))) > 5
    shown = rows(await ok(run("topic", "show", "Orders")))
    assert sorted(row[:4] for row in shown) == [
        ["broker-a", "0", "0", "1"],
        ["broker-a", "1", "0", "0"],
    ]
    await ok(run("topic", "delete", "Orders", "--yes"))
    assert rows(await ok(run("topic", "list"))) == []
    result = await run("topic", "show", "Orders")
    assert (result.exit_code, result.stderr) == (1, "pyritemq: there is no topic Orders\n")


async def test_a_message_is_sent_found_by_key_and_id_and_read_by_tail(run):
    options = ["--tag", "A", "--key", "k1", "--key", "k2", "--property", "colour=blue"]
    receipt = await ok(run("send", "Orders", "hello", *options))
    message_id = receipt.split()[0]
    by_place = await ok(run("message", "show", message_id))
    for line in ("topic      Orders", "property   KEYS=k1 k2", "property   colour=blue"):
        assert line in by_place.splitlines()
    assert by_place.endswith("body       hello\n")
    assert await ok(run("message", "find", "Orders", "k2")) == by_place
    unique_id = re.search(r"UNIQ_KEY=(\w+)", by_place)[1]
    assert await ok(run("message", "find", "Orders", unique_id)) == by_place
    assert (await run("message", "find", "Orders", "k3")).exit_code == 1
    read = await ok(run("tail", "Orders", "--from-start", "--no-follow", "--tag", "A"))
    assert read.endswith("  colour=blue TAGS=A KEYS=k1 k2  hello\n")
    assert await ok(run("tail", "Orders", "--from-start", "--no-follow", "--tag", "B")) == ""


async def test_each_line_of_the_input_is_a_message_and_bytes_are_shown_in_hex(run):
    await ok(run("send", "Orders", stdin=b"one\ntwo\r\n\n\xff\x00\n"))
    read = await ok(run("tail", "Orders", "--from-start", "--count", "3"))
    assert sorted(line.split()[-1] for line in read.splitlines()) == ["0xff00", "one", "two"]


async def test_a_message_cannot_write_on_the_readers_terminal(run):
    receipt = await ok(run("send", "Orders", "\x1b[2Jx", "--property", "colour=\x1b[31m"))
    for command in (["tail", "Orders", "--from-start", "--no-follow"], ["message", "show"]):
        more = [] if command[0] == "tail" else [receipt.split()[0]]
        text = await ok(run(*command, *more))
        assert "\x1b" not in text
        assert "colour=\\x1b[31m" in text


async def test_tail_prints_what_comes(server, run, nursery):
    await ok(run("topic", "create", "Orders", "--queues", "2"))
    printed = []

    async def watch():
        printed.append(await ok(run("tail", "Orders", "--count", "1")))

    async with trio.open_nursery() as commands:
        commands.start_soon(watch)
        await held(server, 2)
        async with open_client(server.namesrv_address) as client:  # one command at a time
            await client.send("Orders", b"news")
    assert printed[0].endswith("  news\n")


async def test_groups_are_made_listed_shown_and_deleted(server, run):
    await ok(run("group", "create", "readers"))
    await ok(run("send", "Orders", "x", "--count", "3"))
    broker = server.broker.broker
    for queue_id in range(4):
        broker.offsets.commit("readers", "Orders", queue_id, 0)
    assert rows(await ok(run("group", "list"))) == [["readers", "0", "3"]]
    assert len(rows(await ok(run("group", "list", "--all")))) > 5
    shown = await ok(run("group", "show", "readers"))
    assert len(re.findall(r"^Orders +broker-a +\d +0 +\d +\d$", shown, re.MULTILINE)) == 4
    await ok(run("group", "delete", "readers", "--yes"))
    result = await run("group", "show", "readers")
    assert (result.exit_code, result.stderr) == (1, "pyritemq: there is no group readers\n")


@pytest.mark.parametrize(
    "arguments",
    [
        ["topic", "create", "a/../b"],
        ["topic", "create", "x" * 10_000],
        ["topic", "create", "nul\x00"],
        ["group", "create", "a b"],
        ["message", "show", "nonsense"],
        ["message", "show", "7F00000100002A9F00000000FFFFFFFF"],
        ["send", "a b", "x"],
        ["send", "T", "x", "--property", "nonsense"],
        ["send", "T", "x", "--property", "a=\x01\x02"],
        ["send", "T", "x", "--delay", "-1"],
        ["topic", "delete", "nowhere", "--yes"],
    ],
)
async def test_bad_input_is_one_sentence(run, arguments):
    result = await run(*arguments)
    assert result.exit_code in (1, 2)
    assert "Traceback" not in result.output
    assert result.stderr.strip()
    assert result.exception is None or isinstance(result.exception, SystemExit)


async def test_no_server_is_one_sentence():
    call = lambda: CliRunner().invoke(main, ["topic", "list", "-n", "127.0.0.1:1"])  # noqa: E731
    result = await trio.to_thread.run_sync(call)
    assert result.exit_code == 1
    assert re.fullmatch(r"pyritemq: no connection to 127.0.0.1:1: .*refused\n", result.stderr)


async def test_the_client_goes_round_queues_and_reads_from_any_offset(server):
    async with open_client(server.namesrv_address) as client:
        await client.create_topic("Orders", queue_nums=3)
        sent = [await client.send("Orders", b"%d" % number) for number in range(6)]
        assert sorted(one.queue.queue_id for one in sent) == [0, 0, 1, 1, 2, 2]
        queues = await client.queues("Orders", perm=PERM_READ)
        found = [record for queue in queues for record in (await client.pull(queue, 1)).records]
        assert sorted(record.body for record in found) == [b"3", b"4", b"5"]
        ids = {decode_properties(record.properties)["UNIQ_KEY"] for record in found}
        assert ids == {one.unique_id for one in sent[3:]}
        with pytest.raises(ClientError, match=r"127\.0\.0\.1:\d+ answers [A-Z_]+: "):
            await client.send("SCHEDULE_TOPIC_XXXX", b"x", queue=queues[0])


async def test_top_shows_topics_groups_and_lanes(server, run):
    await ok(run("topic", "create", "Orders", "--queues", "2"))
    await ok(run("group", "create", "readers"))
    await ok(run("send", "Orders", "x", "--count", "3"))
    for queue_id in range(2):
        server.broker.broker.offsets.commit("readers", "Orders", queue_id, 0)
    text = await ok(run("top", "--once", "--interval", "0.1"))
    lines = [line.split() for line in text.splitlines()]
    assert ["Orders", "2", "3", "0.0", "0.0"] in lines
    assert ["readers", "0", "3", "0.0"] in lines
    assert ["send", "broker-a", "0", "10000"] in lines


async def test_a_look_sees_what_moved_since_the_last(server):
    async with open_client(server.namesrv_address) as client:
        await client.create_topic("Orders", queue_nums=2)
        await client.create_group("readers")
        server.broker.broker.offsets.commit("readers", "Orders", 0, 0)
        before = await look(client)
        for _ in range(4):
            await client.send("Orders", b"x")
        server.broker.broker.offsets.commit("readers", "Orders", 0, 2)
        now = (await look(client))._replace(seconds=before.seconds + 2)
    view = compare(before, now)
    assert view.topics == [TopicLine("Orders", 2, 4, 2.0, 1.0)]
    assert view.groups[0] == GroupLine("readers", 0, 2, 1.0)
