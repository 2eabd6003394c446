"""`pyritemq.testing` as its users have it: the pytest plug-in, and the servers without pytest."""

import subprocess
import sys
import textwrap
import threading

import pytest

from pyritemq.protocol.codes import RequestCode
from pyritemq.server.testing.calls import call
from pyritemq.testing import CallRefused, TestingError, rocketmq_server

SECONDS = 240  # a bound, for machines that do much else

SEND = {
    "producerGroup": "producers",
    "defaultTopic": "TBW102",
    "defaultTopicQueueNums": 4,
    "queueId": 0,
    "sysFlag": 0,
    "bornTimestamp": 1,
    "flag": 0,
    "properties": "",
    "reconsumeTimes": 0,
    "unitMode": False,
    "batch": False,
}


def send(server, topic, body=b"hello"):
    """The offset in its queue that the message got."""
    fields = SEND | {"topic": topic}
    return int(
        call(server.broker, RequestCode.SEND_MESSAGE, fields, body).ext_fields["queueOffset"]
    )


def pytest_run(folder, text, *options):
    """Run pytest on a file, as a user would: the plug-in is found by its entry point."""
    (folder / "test_it.py").write_text(textwrap.dedent(text))
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", "/dev/null"]
    return subprocess.run(
        [*command, "--rootdir", str(folder), *options, "test_it.py"],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )


CYCLES = """
    import pytest
    from pyritemq.protocol.codes import RequestCode
    from pyritemq.server.testing.calls import call
    from pyritemq.testing import CallRefused

    SEND = {send!r}
    seen = set()

    @pytest.mark.parametrize("number", range({count}))
    def test_each_test_finds_an_empty_server(rocketmq, number):
        seen.add(rocketmq.namesrv)
        with pytest.raises(CallRefused, match="No topic route"):
            call(rocketmq.namesrv, RequestCode.GET_ROUTEINFO_BY_TOPIC, {{"topic": "Orders"}})
        reply = call(rocketmq.broker, RequestCode.SEND_MESSAGE, SEND, b"hello")
        assert reply.ext_fields["queueOffset"] == "0"  # the first message, each time

    def test_it_was_one_server(rocketmq):
        assert seen == {{rocketmq.namesrv}}
"""


def test_a_hundred_tests_share_a_server_and_each_finds_it_empty(tmp_path):
    done = pytest_run(tmp_path, CYCLES.format(send=SEND | {"topic": "Orders"}, count=100))
    assert "101 passed" in done.stdout, done.stdout + done.stderr


def test_the_server_of_the_fixture_can_be_a_process(tmp_path):
    text = CYCLES.format(send=SEND | {"topic": "Orders"}, count=3)
    done = pytest_run(tmp_path, text, "--rocketmq-mode", "process")
    assert "4 passed" in done.stdout, done.stdout + done.stderr


def test_properties_come_from_the_ini_file_and_a_wrong_one_is_named(tmp_path):
    text = """
        def test_refused(rocketmq):
            pass
    """
    done = pytest_run(tmp_path, text, "-o", "rocketmq_properties=sendMessageThreadPoolNums=many")
    assert "sendMessageThreadPoolNums" in done.stdout


def test_tests_that_ask_for_no_server_start_none(tmp_path):
    text = """
        import sys, threading

        def test_nothing_was_loaded():
            assert "trio" not in sys.modules
            assert "pyritemq.server.lifecycle" not in sys.modules
    """
    done = pytest_run(tmp_path, text, "-p", "no:trio", "-p", "no:hypothesispytest")
    assert "1 passed" in done.stdout, done.stdout + done.stderr


@pytest.mark.parametrize("mode", ["thread", "process"])
def test_a_server_serves_resets_and_leaves_nothing_behind(mode, tmp_path):
    threads = set(threading.enumerate())
    with rocketmq_server(mode, properties={"autoCreateTopicEnable": False}) as server:
        with pytest.raises(CallRefused, match="not exist"):
            send(server, "Orders")
        server.create_topic("Orders", queues=1)
        assert [send(server, "Orders"), send(server, "Orders")] == [0, 1]
        server.reset()
        with pytest.raises(CallRefused, match="not exist"):
            send(server, "Orders")
        server.create_topic("Orders", queues=1)
        assert send(server, "Orders") == 0
        folder = server.folder
        assert folder.exists()
    assert not folder.exists()
    assert {thread for thread in threading.enumerate() if not thread.daemon} <= threads
    with pytest.raises(OSError, match="refused"):
        send(server, "Orders")


@pytest.mark.parametrize("mode", ["thread", "process"])
def test_a_server_that_cannot_start_says_why(mode, tmp_path):
    (tmp_path / "store").write_text("a file where the folder should be")
    with (
        pytest.raises(TestingError, match="store"),
        rocketmq_server(mode, store=tmp_path / "store"),
    ):
        pass


async def test_a_server_can_be_used_where_an_event_loop_runs():
    with rocketmq_server() as server:
        assert send(server, "Orders") == 0
        server.reset()
        assert send(server, "Orders") == 0


def test_a_store_of_the_caller_stays(tmp_path):
    with rocketmq_server(store=tmp_path / "kept") as server:
        send(server, "Orders")
    with rocketmq_server(store=tmp_path / "kept") as server:
        assert send(server, "Orders") == 1
    assert (tmp_path / "kept" / "commitlog").is_dir()
