"""POP with the official client: mqadmin switches a group, a stock push consumer pops."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyritemq.conformance.clients import MQADMIN, Clients, wait_until
from pyritemq.conformance.traffic import received_messages, sent_messages

if TYPE_CHECKING:
    from pyritemq.conformance.servers.cluster import Cluster

SECONDS = 120.0
TOPIC = "TopicTest"
GROUP = "CID_JODIE_1"


def run(clients: Clients, cluster: Cluster, name: str, *arguments: str) -> str:
    with clients.start(name, namesrv=cluster.namesrv, arguments=list(arguments)) as client:
        client.wait(timeout=SECONDS)
        return client.output()


def test_the_pop_example_switches_its_group_and_consumes_everything_once(
    clients: Clients, cluster: Cluster
) -> None:
    """Two consumers: each may pop from every queue, and no message goes to both."""
    run(
        clients,
        cluster,
        MQADMIN,
        *("updateSubGroup", "-n", cluster.namesrv, "-c", "DefaultCluster", "-g", GROUP),
    )
    wanted = {message.key for message in sent_messages(run(clients, cluster, "simple.Producer"))}
    assert len(wanted) == 128
    mode = run(
        clients,
        cluster,
        MQADMIN,
        *("setConsumeMode", "-n", cluster.namesrv, "-c", "DefaultCluster"),
        *("-t", TOPIC, "-g", GROUP, "-m", "POP", "-q", "8"),
    )
    assert "success" in mode
    start = [clients.start("simple.PopConsumer", namesrv=cluster.namesrv) for _ in range(2)]
    with start[0] as first, start[1] as second:

        def has_all(_: str) -> bool:
            found = received_messages(first.output()) + received_messages(second.output())
            return {message.key for message in found} >= wanted

        wait_until(first, has_all, timeout=SECONDS)
        more = sent_messages(run(clients, cluster, "simple.Producer"))
        wanted |= {message.key for message in more}
        wait_until(first, has_all, timeout=SECONDS)
        found = received_messages(first.output()) + received_messages(second.output())
    assert sorted(message.key for message in found) == sorted(wanted)
    assert len(wanted) == 256
