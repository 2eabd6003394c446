"""Each sub-command of the stock mqadmin on two servers in the same state: the same words?

The real RocketMQ 5.5.0 and the server under test are started empty and given the same commands in
the same order. Outputs are compared after addresses, times, ids and measured figures are made
equal. What still differs must be in DIFFERENT with its reason. The table in docs/compatibility.md
is made from a run: PYRITEMQ_WRITE_TABLE=1 writes it, otherwise it must say what was found.
"""

from __future__ import annotations

import json
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from integration.java.mqadmin import Mqadmin
from pyritemq.conformance.clients import java_flags
from pyritemq.conformance.jars import class_path
from pyritemq.conformance.processes import Child
from pyritemq.conformance.servers.cluster import java_cluster, pyrite_cluster

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from pyritemq.conformance.servers.cluster import Cluster

DASHBOARD = Path(__file__).with_name("Dashboard.java")
DASHBOARD_SECONDS = 90.0
PAGE = Path(__file__).parents[3] / "docs" / "compatibility.md"
BEGIN = "<!-- mqadmin: made by tests/integration/java/test_mqadmin_same.py -->"
END = "<!-- end of mqadmin -->"

COMMANDS = """
updateTopic -n {ns} -b {broker} -t AT -r 2 -w 2
updateTopic -n {ns} -c DefaultCluster -t CT -r 4 -w 4 -p 6
topicRoute -n {ns} -t AT
topicStatus -n {ns} -t AT
topicClusterList -n {ns} -t AT
updateSubGroup -n {ns} -b {broker} -g AG
getConsumerConfig -n {ns} -g AG
sendMessage -n {ns} -t AT -p hello -b broker-a -i 0 -k K1 -c TagA
consumeMessage -n {ns} -t AT -b broker-a -i 0 -o 0 -c 1 -g tools
queryMsgByOffset -n {ns} -t AT -b broker-a -i 0 -o 0
queryMsgByKey -n {ns} -t AT -k K1
printMsgByQueue -n {ns} -t AT -a broker-a -i 0 -p true
brokerStatus -n {ns} -b {broker}
clusterList -n {ns} -m
getBrokerConfig -n {ns} -b {broker}
updateBrokerConfig -n {ns} -b {broker} -k brokerPermission -v 4
topicRoute -n {ns} -t AT
updateBrokerConfig -n {ns} -b {broker} -k brokerPermission -v 6
resetOffsetByTime -n {ns} -g AG -t AT -s 0
consumerProgress -n {ns} -g AG
consumerProgress -n {ns}
brokerConsumeStats -n {ns} -b {broker}
cloneGroupOffset -n {ns} -s AG -d BG -t AT -o true
skipAccumulatedMessage -n {ns} -g AG -t AT
queryCq -n {ns} -b {broker} -t AT -q 0 -i 0 -c 5
queryCq -n {ns} -b {broker} -t AT -q 9 -i 0 -c 5
statsAll -n {ns}
topicList -n {ns}
topicList -n {ns} -c
cleanExpiredCQ -n {ns} -b {broker}
cleanUnusedTopic -n {ns} -b {broker}
deleteExpiredCommitLog -n {ns} -b {broker}
haStatus -n {ns} -b {broker}
getColdDataFlowCtrInfo -n {ns} -b {broker}
updateColdDataFlowCtrGroupConfig -n {ns} -b {broker} -g AG -v 1000
removeColdDataFlowCtrGroupConfig -n {ns} -b {broker} -g AG
setCommitLogReadAheadMode -n {ns} -b {broker} -m 0
setCommitLogReadAheadMode -n {ns} -b {broker} -m 7
producer -b {broker}
consumerConnection -n {ns} -g AG
producerConnection -n {ns} -g PG -t AT
consumerStatus -n {ns} -g AG
updateTopicPerm -n {ns} -t AT -b {broker} -p 4
updateOrderConf -n {ns} -t AT -v broker-a:2 -m put
updateOrderConf -n {ns} -t AT -m get
updateOrderConf -n {ns} -t AT -m delete
updateKvConfig -n {ns} -s NSP -k k1 -v v1
deleteKvConfig -n {ns} -s NSP -k k1
wipeWritePerm -n {ns} -b broker-a
addWritePerm -n {ns} -b broker-a
getNamesrvConfig -n {ns}
updateNamesrvConfig -n {ns} -k clusterTest -v false
allocateMQ -n {ns} -t AT -i 127.0.0.1,127.0.0.2
resetMasterFlushOffset -n {ns} -b {broker} -o 0
getBrokerEpoch -n {ns} -b broker-a
setConsumeMode -n {ns} -b {broker} -t AT -g AG -m POP -q 0
queryMsgById -n {ns} -t AT -i {offset_id}
queryMsgByUniqueKey -n {ns} -t AT -i {id}
queryMsgTraceById -n {ns} -i {id}
printMsg -n {ns} -t AT -d true
updateTopicList -n {ns} -b {broker} -f {folder}/topics.json
updateSubGroupList -n {ns} -b {broker} -f {folder}/groups.json
topicRoute -n {ns} -t L1
getConsumerConfig -n {ns} -g LG
sendMsgStatus -n {ns} -b broker-a -c 2
checkMsgSendRT -n {ns} -t AT -a 2 -s 16
@2 clusterRT -n {ns} -c DefaultCluster -a 2 -s 16
exportMetadata -n {ns} -c DefaultCluster -f {folder}
exportConfigs -n {ns} -c DefaultCluster -f {folder}
exportMetrics -n {ns} -c DefaultCluster -f {folder}
updateStaticTopic -n {ns} -t ST -qn 3 -b broker-a
topicRoute -n {ns} -t ST
sendMessage -n {ns} -t ST -p hello -b broker-a -i 1
topicStatus -n {ns} -t ST
remappingStaticTopic -n {ns} -t ST -b broker-a
updateStaticTopic -n {ns} -t ST -qn 5 -b broker-a
updateStaticTopic -n {ns} -t ST -qn 4 -b broker-a
topicRoute -n {ns} -t ST
remappingStaticTopic -n {ns} -t AT -b broker-a
addBroker -n {ns} -c {broker} -b /nowhere/broker.conf
removeBroker -n {ns} -c {broker} -b DefaultCluster:broker-a:1
exportMetadataInRocksDB -p /nowhere -t topics
exportPopRecord -n {ns} -b {broker}
rocksDBConfigToJson -n {ns} -c DefaultCluster
rocksDBConfigToJson -b {broker} -t topics
dumpCompactionLog -f {store}/commitlog/00000000000000000000
getSyncStateSet -a {broker} -b broker-a
getControllerMetaData -a {broker}
getControllerConfig -a {broker}
updateControllerConfig -a {broker} -k a -v b
electMaster -a {broker} -b 1 -bn broker-a -c DefaultCluster
cleanBrokerMetadata -a {broker} -bn broker-a -c DefaultCluster
copyUser -n {ns} -f {broker} -t {broker} -u u1
copyAcl -n {ns} -f {broker} -t {broker} -s User:u1
getBrokerLiteInfo -n {ns} -b {broker} -d
getParentTopicInfo -n {ns} -p AT
getLiteTopicInfo -n {ns} -p AT -l one
getLiteClientInfo -n {ns} -p AT -g AG -c nobody
getLiteGroupInfo -n {ns} -p AT -g AG
triggerLiteDispatch -n {ns} -p AT -g AG
startMonitoring -n {ns}
createUser -n {ns} -b {broker} -u u1 -p p1
updateUser -n {ns} -b {broker} -u u1 -p p2
listUser -n {ns} -b {broker}
getUser -n {ns} -b {broker} -u u1
deleteUser -n {ns} -b {broker} -u u1
createAcl -n {ns} -b {broker} -s User:u1 -r Topic:AT -a Pub -d Allow
updateAcl -n {ns} -b {broker} -s User:u1 -r Topic:AT -a Pub -d Allow
listAcl -n {ns} -b {broker}
getAcl -n {ns} -b {broker} -s User:u1
deleteAcl -n {ns} -b {broker} -s User:u1
checkRocksdbCqWriteProgress -n {ns} -c DefaultCluster
switchTimerEngine -n {ns} -b {broker} -e F
deleteSubGroup -n {ns} -b {broker} -g AG -r true
deleteTopic -n {ns} -c DefaultCluster -t CT
topicRoute -n {ns} -t CT
""".strip().splitlines()

DIFFERENT = {
    "brokerStatus": "measured figures; offsets of delay levels are shown from the start",
    "clusterList": "measured figures",
    "exportMetrics": "measured figures",
    "getBrokerConfig": "addresses, paths and what the two are started with",
    "getBrokerLiteInfo": "Java counts a queue as soon as somebody asks about it, without messages",
    "getNamesrvConfig": "addresses, paths and what the two are started with",
    "listAcl": "Java's text ends in a stack trace of its own",
    "statsAll": "measured figures",
}
"""Sub-commands whose output may differ, and why."""

DASHBOARD_DIFFERENT = {
    "getBrokerConfig, keys": "names without a value are left out: what the two are started with",
    "getNameServerConfig": "as above",
    "listAcl": "Java's text ends in a stack trace of its own",
}
"""Calls of the dashboard that may differ, and why."""

CONTROLLER = "a controller, which neither broker runs by default"
ACL_STORE = "an ACL store, which neither broker has by default"
ROCKSDB = "a store in RocksDB"
CONTAINER = "a broker container"
NOT_APPLICABLE = {
    **dict.fromkeys(("addBroker", "removeBroker"), CONTAINER),
    **dict.fromkeys(("cleanBrokerMetadata", "electMaster", "getControllerConfig"), CONTROLLER),
    **dict.fromkeys(("getControllerMetaData", "getSyncStateSet"), CONTROLLER),
    **dict.fromkeys(("updateControllerConfig", "getBrokerEpoch"), CONTROLLER),
    **dict.fromkeys(("copyAcl", "createAcl", "deleteAcl", "getAcl", "updateAcl"), ACL_STORE),
    **dict.fromkeys(("copyUser", "createUser", "deleteUser", "getUser", "listUser"), ACL_STORE),
    "updateUser": ACL_STORE,
    **dict.fromkeys(("checkRocksdbCqWriteProgress", "exportMetadataInRocksDB"), ROCKSDB),
    "rocksDBConfigToJson": ROCKSDB,
}
"""What a sub-command needs that is not there: both servers must refuse with the same words."""

LEARNED = {
    "id": r"SEND_OK\s+([0-9A-F]{32})",
    "offset_id": r"OffsetID:\s+([0-9A-F]+)",
    "store": r"storePathRootDir\s+=\s+(\S+)",
}
"""Words of later commands that an earlier one prints."""

_EQUAL = (
    (r"\b1[78]\d{11}\b", "TIME"),
    (r"20\d\d-\d\d-\d\d[ #]\d\d:\d\d:\d\d[,.:]?\d*", "DATE"),
    (r"\bCommitLogOffset=\d+", "PLACE"),
    (r"\b20\d{15}\b", "DATE"),
    (r"\b(?:[0-9A-F]{32}|[0-9A-F]{56})\b", "ID"),
    (r"127\.0\.0\.1:\d+", "ADDRESS"),
    (r"\b\d+\.\d+\b *", "FIGURE "),
    (r"\brt=\d+ms", "RT"),
    (r"( (?:true|false) +)\d+$", r"\1RT"),
)


def _normalised(text: str, cluster: Cluster, folder: Path) -> list[str]:
    text = text.replace(cluster.namesrv, "NAMESRV").replace(cluster.broker, "BROKER")
    text = text.replace(str(folder), "FOLDER")
    for pattern, word in _EQUAL:
        text = re.sub(pattern, word, text, flags=re.MULTILINE)
    # Lines that come out of Java's hash maps have no order.
    return sorted(line.rstrip() for line in text.splitlines() if line.strip())


def _answered(mqadmin: Mqadmin, words: list[str]) -> str:
    """What a tool printed; once more if the machine was too busy for an answer in time."""
    said = mqadmin(*words)
    return mqadmin(*words) if "RemotingTimeoutException" in said else said


def _with_written_file(said: str) -> str:
    """What a tool printed, and what is in the file that it says it has written."""
    named = re.search(r"export (\S+\.json) success", said)
    return said + "\n" + Path(named[1]).read_text(encoding="utf-8") if named else said


def _listed(mqadmin: Mqadmin) -> set[str]:
    """The sub-commands that the stock tools know of, by their own list."""
    return set(re.findall(r"^ {3}(\w+) +\S", mqadmin(), re.MULTILINE))


def _outputs(
    server: AbstractContextManager[Cluster], mqadmin: Mqadmin, folder: Path
) -> tuple[dict[tuple[int, str], list[str]], dict[str, str]]:
    (folder / "topics.json").write_text('[{"topicName":"L1","readQueueNums":1,"order":true}]')
    (folder / "groups.json").write_text('[{"groupName":"LG","retryMaxTimes":3}]')
    known = {"folder": str(folder)}
    with server as cluster:
        known |= {"ns": cluster.namesrv, "broker": cluster.broker}
        # First: with a static topic there, Java's own client cannot read Java's list of topics.
        pages = _dashboard(cluster, folder / "dashboard")
        outputs = {}
        for number, line in enumerate(COMMANDS):
            said = _with_written_file(_answered(mqadmin, line.format_map(known).split()))
            for name, pattern in LEARNED.items():
                if found := re.search(pattern, said):
                    known.setdefault(name, found[1])
            outputs[number, line] = _normalised(said, cluster, folder)
        return outputs, pages


def _dashboard(cluster: Cluster, folder: Path) -> dict[str, str]:
    """What each call that RocketMQ's dashboard makes came back with: name -> words."""
    folder.mkdir()
    flags = java_flags(str(folder))
    command = ["java", *flags, "-cp", class_path(), str(DASHBOARD), cluster.namesrv, cluster.broker]
    with Child("dashboard", command, folder=folder, env={}) as dashboard:
        dashboard.wait_for_line("all calls are made", timeout=DASHBOARD_SECONDS)
        lines = _normalised(dashboard.output(), cluster, folder)
    calls = (line.partition(" = ") for line in lines)
    return {name: came for name, sign, came in calls if sign}


@dataclass(frozen=True)
class Found:
    """What the two runs showed."""

    listed: set[str]
    """All sub-commands of the stock tools."""
    differing: dict[str, list[str]]
    """Each sub-command that was run, and the lines that differ: none for most."""
    dashboards: tuple[dict[str, str], dict[str, str]]
    """What the dashboard's calls got from each server."""


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Found:
    folder = tmp_path_factory.mktemp("same")
    properties = {"brokerName": "broker-a", "mappedFileSizeCommitLog": 16 << 20}
    outputs = []
    for name, make in (("java", java_cluster), ("pyritemq", pyrite_cluster)):
        # A JVM for each: tools keep clients and name server addresses in static fields.
        files = folder / f"{name}-tools"
        with Mqadmin(files) as mqadmin:
            server = make(folder / name, properties=properties)
            outputs.append(_outputs(server, mqadmin, files))
            listed = _listed(mqadmin)
    differing: dict[str, list[str]] = {}
    (theirs, their_pages), (ours, our_pages) = outputs
    for key, expected in theirs.items():
        lines = differing.setdefault(key[1].removeprefix("@2 ").split()[0], [])
        lines += [f"- {line}" for line in expected if line not in ours[key]]
        lines += [f"+ {line}" for line in ours[key] if line not in expected]
    (folder / "differing.json").write_text(json.dumps(differing, indent=1))  # for a look by hand
    return Found(listed, differing, (their_pages, our_pages))


def test_every_sub_command_is_run(found: Found) -> None:
    assert len(found.listed) > 90
    assert set(found.differing) == found.listed


def test_outputs_are_the_same_but_for_what_is_explained(found: Found) -> None:
    unexplained = {
        name: lines for name, lines in found.differing.items() if lines and name not in DIFFERENT
    }
    shown = "\n".join(f"{name}\n  " + "\n  ".join(lines) for name, lines in unexplained.items())
    assert not unexplained, shown


def test_a_dashboard_is_told_the_same(found: Found) -> None:
    theirs, ours = found.dashboards
    assert len(theirs) > 60
    names = theirs.keys() - DASHBOARD_DIFFERENT
    different = {name: (theirs[name], ours[name]) for name in names if theirs[name] != ours[name]}
    assert different == {}, "\n".join(f"{name}: {came}" for name, came in different.items())


def _verdict(name: str) -> str:
    """By what is declared, which the test above holds true: figures are equal now and then."""
    if name in NOT_APPLICABLE:
        return f"not applicable: needs {NOT_APPLICABLE[name]}; the answer is the same"
    return f"differs: {DIFFERENT[name]}" if name in DIFFERENT else "same"


def test_the_page_shows_what_was_found(found: Found) -> None:
    rows = "\n".join(f"| `{name}` | {_verdict(name)} |" for name in sorted(found.differing))
    table = f"{BEGIN}\n| sub-command | output |\n|---|---|\n{rows}\n{END}"
    page = PAGE.read_text(encoding="utf-8")
    head, _, rest = page.partition(BEGIN)
    wanted = head + table + rest.partition(END)[2]
    if os.environ.get("PYRITEMQ_WRITE_TABLE"):
        PAGE.write_text(wanted, encoding="utf-8")
    assert PAGE.read_text(encoding="utf-8") == wanted
