"""The image and the compose file of this project, used as those of apache/rocketmq are."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING

import docker
import pytest

from pyritemq.conformance.clients import ProcessClients, wait_until
from pyritemq.conformance.compose import ComposeProject
from pyritemq.conformance.containers import LABEL, ContainerClients
from pyritemq.conformance.server_image import build_server_image
from pyritemq.conformance.traffic import received_messages, sent_messages
from pyritemq.protocol.codes import RequestCode
from pyritemq.server.testing.calls import call
from pyritemq.testing import CallRefused, RocketMQContainer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from docker.models.containers import Container

ROOT = Path(__file__).parents[3]
SECONDS = 90.0
POLL_SECONDS = 0.2
LABELS = {LABEL: str(os.getpid())}

pytestmark = pytest.mark.skipif(
    os.environ.get("PYRITEMQ_JAVA_CLIENTS") == "process", reason="no Docker engine"
)


@pytest.fixture(scope="module")
def engine() -> Iterator[docker.DockerClient]:
    client = docker.from_env()
    yield client
    client.close()


@pytest.fixture(scope="module")
def image(engine: docker.DockerClient) -> str:
    return build_server_image(engine, ROOT)


def _wait_for_log(container: Container, text: str) -> None:
    deadline = time.monotonic() + SECONDS
    while text not in (said := container.logs().decode()):
        container.reload()
        assert container.status != "exited", said
        assert time.monotonic() < deadline, said
        time.sleep(POLL_SECONDS)


def test_the_compose_file_serves_official_clients_and_keeps_messages(engine, image, clients):
    assert isinstance(clients, ContainerClients)
    project = ComposeProject(
        f"pyritemq{os.getpid()}", ROOT / "docker-compose.yml", image=image, session=os.getpid()
    )
    with project:
        broker = engine.containers.get(project.container("broker"))
        _wait_for_log(broker, "boot success")
        # The file tells clients 127.0.0.1, this machine: a client in the broker's own network has
        # that address too, and finds the name server by its name as every service does.
        here = {"namesrv": "rmqnamesrv:9876", "network": f"container:{broker.id}"}
        with clients.start("quickstart.Producer", **here) as producer:
            producer.wait(timeout=SECONDS)
            sent = {message.key for message in sent_messages(producer.output())}
        assert len(sent) == 1000

        project("restart", "--timeout", "10", "broker")
        broker.reload()
        _wait_for_log(broker, "boot success")
        here["network"] = f"container:{broker.id}"

        def has_all(text: str) -> bool:
            return {message.key for message in received_messages(text)} >= sent

        with clients.start("quickstart.Consumer", **here) as consumer:
            assert has_all(wait_until(consumer, has_all, timeout=SECONDS))
        assert _health(engine, project.container("namesrv")) == "healthy"


def _health(engine: docker.DockerClient, container: str) -> str:
    return str(engine.api.inspect_container(container)["State"]["Health"]["Status"])


def test_one_container_runs_as_no_root_with_any_uid_and_stops_in_order(engine, image):
    """A platform that gives each container a uid of its own (in group 0) can run it."""
    for user in ("", "123456:0"):
        volume = engine.volumes.create(labels=LABELS)
        binds = {volume.name: {"bind": "/home/rocketmq/store", "mode": "rw"}}
        container = engine.containers.run(
            image, detach=True, user=user, labels=LABELS, volumes=binds
        )
        try:
            _wait_for_log(container, "The broker[")
            uid = container.exec_run(["python3", "-c", "import os; print(os.getuid())"]).output
            assert int(uid) == int(user.partition(":")[0] or 3000)
            checked = container.exec_run(["healthcheck"])
            assert checked.exit_code == 0, checked.output
            files = container.exec_run(
                ["sh", "-c", "echo store/* store/config/*"], workdir="/home/rocketmq"
            )
            assert b"store/abort" in files.output, files.output

            container.stop(timeout=20)
            container.reload()
            assert container.attrs["State"]["ExitCode"] == 0, container.logs().decode()
            assert b"abort" not in b"".join(container.get_archive("/home/rocketmq/store")[0])
        finally:
            container.remove(force=True)
            volume.remove()


def test_the_testcontainers_class_tells_clients_where_to_go_and_resets(image, tmp_path):
    with RocketMQContainer(image, labels=LABELS) as rocketmq:
        clients = ProcessClients(tmp_path)
        with clients.start("quickstart.Producer", namesrv=rocketmq.namesrv) as producer:
            producer.wait(timeout=SECONDS)
            assert sent_messages(producer.output())  # its address is one that this machine reaches
        route = {"topic": "TopicTest"}
        call(rocketmq.namesrv, RequestCode.GET_ROUTEINFO_BY_TOPIC, route)
        rocketmq.reset()
        with pytest.raises(CallRefused, match="No topic route"):
            call(rocketmq.namesrv, RequestCode.GET_ROUTEINFO_BY_TOPIC, route)


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("sh mqadmin clusterList", "RocketMQ's own mqadmin"),
        ("sh mqproxy", "not part of this server"),
        ("sh mqbroker -c /nowhere.conf", "/nowhere.conf"),
    ],
)
def test_what_cannot_run_says_why_in_a_sentence(engine, image, command, said):
    container = engine.containers.run(image, command, detach=True, labels=LABELS)
    try:
        assert container.wait(timeout=30)["StatusCode"] != 0
        text = container.logs().decode()
        assert said in text
        assert "Traceback" not in text
    finally:
        container.remove(force=True)
