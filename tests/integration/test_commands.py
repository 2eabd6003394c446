"""The commands as people run them: their output and their exit codes.

Servers that run are child processes. What ends before one would run is called in this process,
which costs a hundredth of it.
"""

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from pyritemq.server import cli

TIMEOUT_SECONDS = 30
ENVIRONMENT = {name: text for name, text in os.environ.items() if name != "NAMESRV_ADDR"}


def command(*arguments, entry="main"):
    run = f"from pyritemq.server.cli import {entry}; {entry}()"
    return [sys.executable, "-c", run, *map(str, arguments)]


def run(*arguments, entry="main", **options):
    return subprocess.run(
        command(*arguments, entry=entry),
        capture_output=True,
        text=True,
        timeout=TIMEOUT_SECONDS,
        env=ENVIRONMENT,
        check=False,
        **options,
    )


@pytest.fixture
def call(monkeypatch):
    """Runs a command in this process, without its hand on this process's log and environment."""
    monkeypatch.delenv("NAMESRV_ADDR", raising=False)
    monkeypatch.setattr(cli.log, "configure", lambda *_, **__: None)

    def call(*arguments, entry="main"):
        return CliRunner().invoke(getattr(cli, entry), [str(word) for word in arguments])

    return call


class Child:
    """A server process that is stopped by SIGTERM at the end."""

    def __init__(self, *arguments, entry="main"):
        self.process = subprocess.Popen(
            command(*arguments, entry=entry),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=ENVIRONMENT | {"PYTHONUNBUFFERED": "1"},
        )

    def line(self):
        return self.process.stdout.readline()

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        _, errors = self.process.communicate(timeout=TIMEOUT_SECONDS)
        return self.process.returncode, errors


@pytest.fixture
def child():
    children = []

    def start(*arguments, entry="main"):
        children.append(Child(*arguments, entry=entry))
        return children[-1]

    yield start
    for one in children:
        if one.process.poll() is None:
            one.process.kill()
        one.process.communicate()


def serve_arguments(tmp_path):
    ports = ["--namesrv-port", "0", "--broker-port", "0", "--listen", "127.0.0.1"]
    return ["serve", "--store", tmp_path / "store", *ports]


def test_serve_prints_the_lines_that_people_wait_for_and_stops_cleanly(tmp_path, child):
    server = child(*serve_arguments(tmp_path))
    assert server.line().startswith("The Name Server boot success.")
    ready = server.line()
    assert ready.startswith("The broker[")
    assert ", 127.0.0.1:" in ready, "it listens on loopback only, so that is what it must say"
    assert "boot success." in ready
    assert (tmp_path / "store" / "abort").exists()
    code, errors = server.stop()
    assert (code, errors) == (0, "")
    assert not (tmp_path / "store" / "abort").exists()


def test_a_second_server_on_the_same_store_is_refused_in_one_sentence(tmp_path, child):
    first = child(*serve_arguments(tmp_path))
    first.line()
    first.line()
    second = run(*serve_arguments(tmp_path))
    assert second.returncode == 1
    assert str(tmp_path / "store") in second.stderr
    assert len(second.stderr.strip().splitlines()) == 1
    assert first.stop()[0] == 0


def test_a_port_in_use_is_one_sentence(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        result = run("namesrv", "--listen", "127.0.0.1", "--port", port)
    assert result.returncode == 1
    assert result.stderr == (
        f"pyritemq: cannot listen on 127.0.0.1:{port}: Address already in use\n"
    )


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("listenPort=many\n", "listenPort"),
        ("flushDiskType=SOMETIMES\n", "flushDiskType"),
        ("brokerRole=KING\n", "brokerRole"),
    ],
)
def test_a_bad_value_is_one_sentence_that_names_file_key_and_value(call, tmp_path, text, complaint):
    conf = tmp_path / "broker.conf"
    conf.write_text(text)
    result = call("-c", conf, entry="mqbroker")
    assert result.exit_code == 1
    assert len(result.stderr.strip().splitlines()) == 1
    assert str(conf) in result.stderr
    assert complaint in result.stderr


def test_an_unknown_key_warns_with_the_nearest_known_one(call, tmp_path):
    conf = tmp_path / "broker.conf"
    conf.write_text("brokerNmae=x\n")
    result = call("-c", conf, "-m", entry="mqbroker")
    assert result.exit_code == 0
    assert "brokerNmae" in result.stderr
    assert "did you mean brokerName?" in result.stderr


def test_a_missing_file_is_one_sentence(call, tmp_path):
    result = call("-c", tmp_path / "nowhere.conf", entry="mqbroker")
    assert result.exit_code == 1
    assert result.stderr.strip().endswith("nowhere.conf: No such file or directory")


def test_config_items_are_printed_with_javas_names(call, tmp_path):
    conf = tmp_path / "broker.conf"
    conf.write_text("brokerName=broker-x\nmappedFileSizeCommitLog=1048576\n")
    everything = call("-c", conf, "-p", entry="mqbroker").stdout.splitlines()
    assert "brokerName=broker-x" in everything
    assert "mappedFileSizeCommitLog=1048576" in everything
    important = call("-c", conf, "-m", entry="mqbroker").stdout.splitlines()
    assert "brokerName=broker-x" in important
    assert len(important) < len(everything)


def test_mqnamesrv_and_mqbroker_work_together(tmp_path, child):
    namesrv_conf = tmp_path / "namesrv.conf"
    namesrv_conf.write_text("listenPort=0\nbindAddress=127.0.0.1\n")
    namesrv = child("-c", namesrv_conf, entry="mqnamesrv")
    address = namesrv.line().strip().rpartition("address ")[2]
    broker_conf = tmp_path / "broker.conf"
    broker_conf.write_text(
        f"listenPort=0\nbindAddress=127.0.0.1\nbrokerIP1=127.0.0.1\nbrokerName=b1\n"
        f"storePathRootDir={tmp_path / 'store'}\n"
    )
    broker = child("-n", address, "-c", broker_conf, entry="mqbroker")
    line = broker.line()
    assert line.startswith("The broker[b1, 127.0.0.1:")
    assert f"name server is {address}" in line
    assert broker.stop() == (0, "")
    assert namesrv.stop() == (0, "")


def test_several_brokers_are_processes_with_stores_of_their_own(tmp_path, child):
    server = child(*serve_arguments(tmp_path), "--brokers", 2, "--metrics-port", 0)
    lines = [server.line() for _ in range(6)]
    assert sum(line.startswith("The operations port is 127.0.0.1:") for line in lines) == 3
    lines = [line for line in lines if "operations" not in line]
    assert lines[0].startswith("The Name Server boot success.")
    assert all("boot success." in line for line in lines[1:])
    stores = [path for path in (tmp_path / "store").iterdir() if (path / "commitlog").is_dir()]
    assert len(stores) == 2
    assert server.stop()[0] == 0


def test_the_advertised_address_is_what_the_ready_line_and_routes_say(tmp_path, child):
    server = child(*serve_arguments(tmp_path), "--advertise", "127.0.0.9:4711")
    server.line()
    assert ", 127.0.0.9:4711]" in server.line()
    assert server.stop()[0] == 0


@pytest.mark.parametrize("address", ["127.0.0.9:nine", "127.0.0.9:70000"])
def test_a_bad_advertised_port_is_one_sentence(tmp_path, address):
    result = run(*serve_arguments(tmp_path), "--advertise", address)
    assert result.returncode == 1
    assert "is not a port number" in result.stderr


def test_help_names_every_command(call):
    text = call("--help").stdout
    for name in ("serve", "namesrv", "broker"):
        assert name in text


def test_nothing_of_the_extras_is_imported_by_the_server():
    probe = (
        "import sys, pyritemq.server.lifecycle;"
        "print([m for m in ('construct','rich','pyspark','numpy','testcontainers')"
        " if m in sys.modules])"
    )
    result = subprocess.run(
        [sys.executable, "-c", probe], capture_output=True, text=True, check=True, cwd=Path.home()
    )
    assert result.stdout.strip() == "[]"
