"""The stock mqadmin 5.5.0, sub-command by sub-command, with a producer and a consumer at work.

With PYRITEMQ_SERVER_UNDER_TEST=rocketmq the same expectations are held against the real broker.
The tests share one server and run in the order of this file; each makes what it needs itself.
"""

from __future__ import annotations

import os
import re
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest

from integration.java.mqadmin import Mqadmin
from pyritemq.conformance.clients import ProcessClients, wait_until
from pyritemq.conformance.servers.cluster import CLUSTERS, Cluster
from pyritemq.conformance.traffic import received_messages

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyritemq.conformance.clients import RunningClient

    Run = Callable[[str], str]

TOPIC, GROUP = "TopicTest", "please_rename_unique_group_name_4"
"""What the quickstart examples have written into them."""

SENT = 1000
SECONDS = 90.0


class World(NamedTuple):
    """A cluster with traffic, and mqadmin that knows its addresses."""

    cluster: Cluster
    run: Run
    consumer: RunningClient
    client_id: str
    message_id: str


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("mqadmin")
    kind = os.environ.get("PYRITEMQ_SERVER_UNDER_TEST", "pyritemq")
    with ExitStack() as stack:
        enter = stack.enter_context
        properties = {"brokerName": "broker-a", "mappedFileSizeCommitLog": 64 << 20}
        cluster = enter(CLUSTERS[kind](folder / "server", properties=properties))
        mqadmin = enter(Mqadmin(folder / "tools"))

        def run(line: str) -> str:
            words = line.format(ns=cluster.namesrv, broker=cluster.broker).split()
            return mqadmin(*words)

        clients = ProcessClients(folder / "clients")
        producer = enter(clients.start("quickstart.Producer", namesrv=cluster.namesrv))
        consumer = enter(clients.start("quickstart.Consumer", namesrv=cluster.namesrv))
        producer.wait(timeout=SECONDS)
        wait_until(consumer, lambda text: len(received_messages(text)) >= SENT, timeout=SECONDS)
        online = run(f"consumerConnection -n {{ns}} -g {GROUP}")
        client = re.search(r"^(\S+@\S+)\s", online, re.MULTILINE)
        message = re.search(r"offsetMsgId=(\w+)", producer.output())
        assert client is not None, online
        assert message is not None
        yield World(cluster, run, consumer, client[1], message[1])


def check(output: str, *patterns: str) -> None:
    for pattern in patterns:
        assert re.search(pattern, output, re.MULTILINE | re.DOTALL), (
            f"{pattern!r} is not in:\n{output}"
        )


# -- topics ----------------------------------------------------------------------------------------


def test_topics_are_made_shown_and_deleted(world: World) -> None:
    made = world.run("updateTopic -n {ns} -b {broker} -t Made -r 2 -w 3")
    check(made, r"create topic to .* success\.", r"readQueueNums=2, writeQueueNums=3, perm=RW-")
    check(world.run("topicList -n {ns}"), r"^Made$")
    check(world.run("topicList -n {ns} -c"), rf"DefaultCluster\s+{TOPIC}\s+{GROUP}")
    check(world.run("topicRoute -n {ns} -t Made"), r'"readQueueNums":2', r'"writeQueueNums":3')
    check(world.run("topicClusterList -n {ns} -t Made"), "DefaultCluster")
    check(
        world.run("updateTopicPerm -n {ns} -b {broker} -t Made -p 4"),
        r"update topic perm from 6 to 4 in .* success",
    )
    check(world.run("topicRoute -n {ns} -t Made"), r'"perm":4')
    check(
        world.run("deleteTopic -n {ns} -c DefaultCluster -t Made"),
        r"delete topic \[Made\] from cluster \[DefaultCluster\] success",
        r"delete topic \[Made\] from NameServer success",
    )
    assert "Made" not in world.run("topicList -n {ns}").split()


def test_topic_status_shows_every_queue(world: World) -> None:
    status = world.run(f"topicStatus -n {{ns}} -t {TOPIC}")
    rows = re.findall(r"^broker-a\s+(\d)\s+(\d+)\s+(\d+)\s+20", status, re.MULTILINE)
    assert [row[0] for row in rows] == ["0", "1", "2", "3"]
    assert sum(int(row[2]) for row in rows) == SENT
    check(status, r"Topic Put TPS: \d")


def test_topic_of_a_list_are_made(world: World, tmp_path: Path) -> None:
    file = tmp_path / "topics.json"
    file.write_text('[{"topicName":"L1"},{"topicName":"L2","readQueueNums":1,"writeQueueNums":1}]')
    said = world.run(f"updateTopicList -n {{ns}} -b {{broker}} -f {file}")
    check(said, r"submit batch of topic config to .* success")
    check(world.run("topicList -n {ns}"), r"^L1$", r"^L2$")


def test_order_and_kv_configuration_is_kept_by_the_name_server(world: World) -> None:
    put = world.run(f"updateOrderConf -n {{ns}} -t {TOPIC} -v broker-a:4 -m put")
    check(put, r"update orderConf success\. topic=\[TopicTest\], orderConf=\[broker-a:4\]")
    check(world.run(f"updateOrderConf -n {{ns}} -t {TOPIC} -m get"), r"broker-a:4")
    check(world.run(f"updateOrderConf -n {{ns}} -t {TOPIC} -m delete"), "success")
    check(
        world.run("updateKvConfig -n {ns} -s N -k k -v v"), "create or update kv config .*success"
    )
    check(world.run("deleteKvConfig -n {ns} -s N -k k"), "delete kv config .*success")


# -- brokers and name servers ----------------------------------------------------------------------


def test_broker_status_prints_javas_keys(world: World) -> None:
    keys = (Path(__file__).parents[1] / "java_runtime_keys.txt").read_text().split()
    printed = world.run("brokerStatus -n {ns} -b {broker}")
    shown = {line.partition(":")[0].strip() for line in printed.splitlines()}
    assert set(keys) - shown == set()
    check(printed, r"^msgPutTotalTodayNow\s*: 1000$", r"^brokerVersionDesc\s*: V5_5_0$")


def test_cluster_list_shows_the_broker(world: World) -> None:
    check(world.run("clusterList -n {ns}"), rf"broker-a\s+0\s+{world.cluster.broker}\s+V5_5_0")
    check(world.run("clusterList -n {ns} -m"), r"DefaultCluster\s+broker-a\s+0\s+\d+")


def test_broker_configuration_changes_while_it_runs(world: World) -> None:
    check(world.run("getBrokerConfig -n {ns} -b {broker}"), r"^brokerName\s+=\s+broker-a")
    said = world.run("updateBrokerConfig -n {ns} -b {broker} -k traceOn -v false")
    check(said, r"update broker config success, ")
    check(world.run("getBrokerConfig -n {ns} -b {broker}"), r"^traceOn\s+=\s+false")
    world.run("updateBrokerConfig -n {ns} -b {broker} -k traceOn -v true")


def test_broker_permission_is_in_the_routes_at_once(world: World) -> None:
    for permission in (4, 6):
        world.run(f"updateBrokerConfig -n {{ns}} -b {{broker}} -k brokerPermission -v {permission}")
        check(world.run(f"topicRoute -n {{ns}} -t {TOPIC}"), rf'"perm":{permission}')


def test_write_permission_can_be_wiped_and_added(world: World) -> None:
    check(world.run("wipeWritePerm -n {ns} -b broker-a"), r"wipe write perm of broker\[broker-a\]")
    check(world.run(f"topicRoute -n {{ns}} -t {TOPIC}"), r'"perm":4')
    check(world.run("addWritePerm -n {ns} -b broker-a"), r"add write perm of broker\[broker-a\]")
    check(world.run(f"topicRoute -n {{ns}} -t {TOPIC}"), r'"perm":6')


def test_name_server_configuration_is_shown_and_changed(world: World) -> None:
    check(world.run("getNamesrvConfig -n {ns}"), r"^listenPort\s+=\s+\d+", "serverWorkerThreads")
    check(world.run("updateNamesrvConfig -n {ns} -k clusterTest -v false"), "success")


def test_clean_ups_report_success(world: World) -> None:
    check(world.run("cleanExpiredCQ -n {ns} -b {broker}"), "success")
    check(world.run("cleanUnusedTopic -n {ns} -b {broker}"), "success")
    check(world.run("deleteExpiredCommitLog -n {ns} -b {broker}"), "success")


def test_replication_status_is_that_of_a_master_alone(world: World) -> None:
    check(world.run("haStatus -n {ns} -b {broker}"), r"#MasterAddr", r"#InSyncSlaveNum\s+0")


def test_cold_data_limits_come_and_go(world: World) -> None:
    world.run(f"updateColdDataFlowCtrGroupConfig -n {{ns}} -b {{broker}} -g {GROUP} -v 1000")
    shown = world.run("getColdDataFlowCtrInfo -n {ns} -b {broker}")
    check(shown, rf'"{GROUP}":1000', "globalColdReadThreshold")
    world.run(f"removeColdDataFlowCtrGroupConfig -n {{ns}} -b {{broker}} -g {GROUP}")
    assert GROUP not in world.run("getColdDataFlowCtrInfo -n {ns} -b {broker}")


def test_what_is_not_there_says_so_in_javas_words(world: World) -> None:
    check(
        world.run("listUser -n {ns} -b {broker}"),
        r"CODE: 1  DESC: An system error occurred, please try again later\.",
    )
    check(world.run("getBrokerEpoch -n {ns} -b broker-a"), "this request only for controllerMode")


# -- groups, consumers, producers ------------------------------------------------------------------


def test_groups_are_made_shown_and_deleted(world: World) -> None:
    said = world.run("updateSubGroup -n {ns} -b {broker} -g made-group -r 3")
    check(said, r"create subscription group to .* success", r"groupName=made-group")
    check(world.run("getConsumerConfig -n {ns} -g made-group"), r"groupName\s+=\s+made-group")
    said = world.run("deleteSubGroup -n {ns} -b {broker} -g made-group -r true")
    check(said, r"delete subscription group \[made-group\] from broker .* success")


def test_a_running_consumer_is_shown(world: World) -> None:
    shown = world.run(f"consumerConnection -n {{ns}} -g {GROUP}")
    check(shown, rf"{re.escape(world.client_id)}\s+127\.0\.0\.1:\d+\s+JAVA\s+V5_5_0")
    check(shown, rf"^{TOPIC}\s+\*$", "MessageModel: CLUSTERING")


def test_a_consumer_tells_of_itself_through_the_broker(world: World) -> None:
    status = world.run(f"consumerStatus -n {{ns}} -g {GROUP} -i {world.client_id}")
    check(status, r"#Consumer Properties#", r"#Consumer MQ Detail#", rf"{TOPIC}\s+broker-a\s+0")
    check(
        world.run(f"consumerStatus -n {{ns}} -g {GROUP}"),
        rf"^1\s+{world.client_id}\s+V5_5_0",
        "Rebalance OK",
    )


def test_progress_shows_no_lag_once_all_is_consumed(world: World) -> None:
    shown = world.run(f"consumerProgress -n {{ns}} -g {GROUP}")
    rows = re.findall(rf"^{TOPIC}\s+broker-a\s+\d\s+(\d+)\s+(\d+)", shown, re.MULTILINE)
    assert sum(int(broker) for broker, _ in rows) == SENT
    check(shown, r"Consume TPS: \d", r"Diff Total: \d")
    check(world.run("consumerProgress -n {ns}"), rf"{GROUP}\s+1\s+V5_5_0\s+PUSH\s+CLUSTERING")


def test_broker_consume_stats_and_all_statistics_list_the_group(world: World) -> None:
    shown = world.run("brokerConsumeStats -n {ns} -b {broker}")
    check(shown, rf"{TOPIC}\s+{GROUP}\s+broker-a\s+0", r"Diff Total: \d+")
    check(world.run("statsAll -n {ns}"), rf"{TOPIC}\s+{GROUP}")


def test_producers_are_listed(world: World) -> None:
    assert "Exception" not in world.run("producer -b {broker}")


def test_offsets_are_cloned_and_reset(world: World) -> None:
    world.run("updateSubGroup -n {ns} -b {broker} -g copy")
    # A group's retry topic, by which tools find its brokers, comes with its first consumer.
    world.run("updateTopic -n {ns} -b {broker} -t %RETRY%copy -r 1 -w 1")
    said = world.run(f"cloneGroupOffset -n {{ns}} -s {GROUP} -d copy -t {TOPIC} -o true")
    check(said, r"clone group offset success\.")
    said = world.run(f"resetOffsetByTime -n {{ns}} -g copy -t {TOPIC} -s 0")
    check(said, r"broker-a\s+0\s+0", "rollback|reset")
    shown = world.run("consumerProgress -n {ns} -g copy")
    check(shown, rf"Diff Total: {SENT}")
    said = world.run(f"skipAccumulatedMessage -n {{ns}} -g copy -t {TOPIC}")
    check(said, r"broker-a\s+0\s+\d+")
    check(world.run("consumerProgress -n {ns} -g copy"), r"Diff Total: 0")


def test_queues_are_allotted_to_addresses(world: World) -> None:
    said = world.run(f"allocateMQ -n {{ns}} -t {TOPIC} -i 127.0.0.1,127.0.0.2")
    check(said, r'"127\.0\.0\.1":\[', r'"127\.0\.0\.2":\[')


# -- messages --------------------------------------------------------------------------------------


def test_messages_are_sent_and_read(world: World) -> None:
    said = world.run(f"sendMessage -n {{ns}} -t {TOPIC} -p hello -b broker-a -i 0 -c TagX -k K1")
    check(said, r"broker-a\s+0\s+SEND_OK\s+\w{32}")
    said = world.run(f"consumeMessage -n {{ns}} -t {TOPIC} -b broker-a -i 0 -o 0 -c 2 -g tools")
    check(said, "Consume ok", r"TAGS=TagA")
    said = world.run(f"queryMsgByOffset -n {{ns}} -t {TOPIC} -b broker-a -i 0 -o 0")
    check(said, r"^OffsetID:", r"^Queue Offset:\s+0$", rf"^Topic:\s+{TOPIC}$")


def test_consume_queue_units_are_shown(world: World) -> None:
    said = world.run(f"queryCq -n {{ns}} -b {{broker}} -t {TOPIC} -q 0 -i 0 -c 2")
    check(said, r"ConsumeQueueData\{physicOffset=\d+, physicSize=\d+, tagsCode=2598919")
    said = world.run(f"queryCq -n {{ns}} -b {{broker}} -t {TOPIC} -q 99 -i 0 -c 2")
    check(said, rf"99@{TOPIC} is not exist!")


def test_messages_of_a_topic_are_printed(world: World) -> None:
    said = world.run(f"printMsgByQueue -n {{ns}} -t {TOPIC} -a broker-a -i 0 -p true -f true")
    check(said, r"Tag: TagA\s+Count: \d+")


def test_exports_are_written(world: World, tmp_path: Path) -> None:
    for command, word in (
        ("exportConfigs", "configs"),
        ("exportMetrics", "metrics"),
        ("exportMetadata", "metadata"),
    ):
        said = world.run(f"{command} -n {{ns}} -c DefaultCluster -f {tmp_path}")
        check(said, rf"export {tmp_path}/{word}\.json success|write .* success|success")
        assert (tmp_path / f"{word}.json").stat().st_size > 2


def test_a_message_is_found_by_its_id_and_consumed_directly(world: World) -> None:
    shown = world.run(f"queryMsgById -n {{ns}} -t {TOPIC} -i {world.message_id}")
    check(shown, rf"^OffsetID:\s+{world.message_id}", r"^Tags:\s+\[?TagA")
    told = f"queryMsgById -n {{ns}} -t {TOPIC} -i {world.message_id} -g {GROUP} "
    check(world.run(told + f"-d {world.client_id}"), r"consumeResult=CR_SUCCESS")
    check(world.run(told + "-d nobody"), r"nobody")


def test_an_online_group_that_is_reset_consumes_again(world: World) -> None:
    """Last: it moves the group that the other tests look at."""
    before = len(received_messages(world.consumer.output()))
    world.run(f"resetOffsetByTime -n {{ns}} -g {GROUP} -t {TOPIC} -s 0")

    def again(text: str) -> bool:
        return len(received_messages(text)) >= before + SENT

    output = wait_until(world.consumer, again, timeout=SECONDS)
    assert len(received_messages(output)) >= before + SENT
