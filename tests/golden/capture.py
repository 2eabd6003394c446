"""Remake the golden vectors: record official clients and servers through a proxy on loopback.

    python tests/golden/capture.py [--out tests/golden]

Needs Java 17 and the jars of scripts/fetch-jars, and takes about 8 minutes. A real RocketMQ 5.5.0
name server and broker listen on 127.0.0.2; proxies stand on 127.0.0.1 (for clients) and 127.0.0.3
(for brokers that register), so the routes that the name server hands out lead through the proxy.
One example of every kind of frame is kept: kind means source, direction, code, serialisation, names
of the ext fields, and whether remark and body are there.

The second round runs a name server and a broker whose own headers are binary: a Java server answers
in the serialisation that it is set to, not in that of the request.
"""

from __future__ import annotations

import argparse
import datetime
import json
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from recorder import Proxy, Recorder, Vector

from pyritemq.conformance.clients import MQADMIN, ProcessClients
from pyritemq.conformance.jars import class_path
from pyritemq.conformance.processes import Child, ChildError
from pyritemq.conformance.servers import java

if TYPE_CHECKING:
    from collections.abc import Iterator

HERE = Path(__file__).parent
CLIENTS, REAL, BROKERS = "127.0.0.1", "127.0.0.2", "127.0.0.3"
NAMESRV_PORT, SECOND_NAMESRV_PORT = 9876, 9886
"""The first is written into the examples PullConsumer and OnewayProducer."""
BROKER_PORTS = {"broker-a": 20911, "broker-b": 20921, "broker-c": 20931, "broker-d": 20941}
BINARY = ("-Drocketmq.serialize.type=ROCKETMQ",)

PRODUCERS = (
    "quickstart.Producer",
    "ordermessage.Producer",
    "simple.Producer",
    "simple.OnewayProducer",
    "filter.SqlFilterProducer",
)
LITE_PULL = ("simple.LitePullConsumerSubscribe", "simple.LitePullConsumerAssign")
CONSUMERS = (
    "quickstart.Consumer",
    "quickstart.Consumer",  # the second one changes the group: NOTIFY_CONSUMER_IDS_CHANGED
    "ordermessage.Consumer",
    "ordermessage.Consumer",  # takes queues from the first: UNLOCK_BATCH_MQ
    "filter.SqlFilterConsumer",  # CHECK_CLIENT_CONFIG
    "broadcast.PushConsumer",
    *LITE_PULL,
    "simple.PullConsumer",
)
ACCIDENTS = frozenset({2})
"""SYSTEM_BUSY comes only when the machine is slow; without it a capture is repeatable."""
BATCH_SECONDS = 10
CONSUME_SECONDS = 22
"""Offsets are first persisted 10 s after a start, then every 5 s; the rest is the JVM's start."""

ADMIN = """
updateTopic -c DefaultCluster -t GoldenTopic -r 4 -w 4
updateTopic -b 127.0.0.1:20911 -t GoldenTopic -r 2 -w 2 -p 6 -o true
topicRoute -t TopicTest
topicRoute -t NoSuchTopic
topicStatus -t TopicTest
topicList
topicList -c
topicClusterList -t TopicTest
clusterList
brokerStatus -b 127.0.0.1:20911
consumerProgress
consumerProgress -g please_rename_unique_group_name_4
updateSubGroup -c DefaultCluster -g GoldenGroup
deleteSubGroup -c DefaultCluster -g GoldenGroup
sendMessage -t GoldenTopic -p hello -k key1 -c TagA
printMsg -t GoldenTopic
printMsg -t GoldenTopic -b 2020-01-01#00:00:00:000 -e 2100-01-01#00:00:00:000
consumeMessage -t GoldenTopic -g GoldenConsume -c 1
queryMsgByOffset -t TopicTest -b broker-a -i 0 -o 0
queryMsgByKey -t GoldenTopic -k key1
updateKvConfig -s golden -k name -v value
deleteKvConfig -s golden -k name
updateOrderConf -t GoldenTopic -v broker-a:4 -m put
updateOrderConf -t GoldenTopic -m get
updateOrderConf -t GoldenTopic -m delete
wipeWritePerm -b broker-a
addWritePerm -b broker-a
getNamesrvConfig
updateNamesrvConfig -k orderMessageEnable -v false
getBrokerConfig -b 127.0.0.1:20911
deleteTopic -c DefaultCluster -t GoldenTopic
"""


class Session:
    """The servers, the proxies, and the children of one capture."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self.folder, self.stack = folder, stack
        self.recorder = Recorder()
        self.client_source = "client 5.5.0"
        self.namesrv = f"{CLIENTS}:{NAMESRV_PORT}"
        self.clients = ProcessClients(folder)

    def proxy(self, listen: str, port: int, dialler: str | None, listener: str) -> None:
        def name() -> str:
            return dialler or self.client_source

        proxy = Proxy(
            self.recorder,
            listen=(listen, port),
            target=(REAL, port),
            dialler=name,
            listener=listener,
        )
        self.stack.callback(proxy.close)

    def start_namesrv(self, port: int, **options: object) -> None:
        namesrv = java.start_namesrv(self.folder / f"n{port}", port=port, bind=REAL, **options)
        self.stack.enter_context(namesrv)
        namesrv.wait_for_line(java.NAMESRV_READY, timeout=java.READY_SECONDS)
        self.proxy(CLIENTS, port, None, "namesrv 5.5.0")
        self.proxy(BROKERS, port, "broker 5.5.0", "namesrv 5.5.0")

    def start_broker(
        self,
        name: str,
        namesrv_port: int,
        *,
        flags: tuple[str, ...] = (),
        **more: object,
    ) -> Child:
        port = BROKER_PORTS[name]
        properties = {
            "brokerName": name,
            "brokerIP1": CLIENTS,
            "brokerIP2": CLIENTS,
            "bindAddress": REAL,
            "listenPort": port,
            "namesrvAddr": f"{BROKERS}:{namesrv_port}",
            "registerNameServerPeriod": 10_000,  # the second round asks QUERY_DATA_VERSION
            "enablePropertyFilter": "true",
            "mappedFileSizeCommitLog": 64 << 20,
            **more,
        }
        broker = java.start_broker(self.folder / name, properties=properties, flags=flags)
        self.stack.enter_context(broker)
        broker.wait_for_line(java.BROKER_READY, timeout=java.READY_SECONDS)
        self.proxy(CLIENTS, port, None, "broker 5.5.0")
        return broker

    @contextmanager
    def example(self, name: str, version: str, **options: object) -> Iterator[Child]:
        with self.clients.start(
            name, namesrv=self.namesrv, client_version=version, **options
        ) as child:
            yield child

    def run(self, name: str, version: str, timeout: float = 60, **options: object) -> None:
        with self.example(name, version, **options) as child:
            try:
                child.wait(timeout=timeout)
            except ChildError as failure:
                print(f"  {failure}")

    def consume(self, names: tuple[str, ...], version: str, **options: object) -> None:
        with ExitStack() as running:
            for name in names:
                running.enter_context(self.example(name, version, **options))
            time.sleep(CONSUME_SECONDS)

    def send_batch(self, version: str, **options: object) -> None:
        """This example never ends, and that of 4.x does not say when it has sent."""
        with self.example("batch.SimpleBatchProducer", version, **options):
            time.sleep(BATCH_SECONDS)

    def client_traffic(self, version: str) -> None:
        self.client_source = f"client {version}"
        for name in PRODUCERS:
            print(f"{version} {name}")
            self.run(name, version)
        self.send_batch(version)
        print(f"{version} consumers")
        self.consume(CONSUMERS, version)
        print(f"{version} binary headers")
        self.run("simple.Producer", version, flags=BINARY)
        self.consume(("ordermessage.Consumer", "quickstart.Consumer"), version, flags=BINARY)

    def benchmark_traffic(self, namesrv: str) -> None:
        self.client_source = "client 5.5.0"
        at = ("-n", namesrv)
        self.run("benchmark.Producer", "5.5.0", arguments=(*at, "-w", "4", "-q", "400"))
        with self.example("benchmark.Consumer", "5.5.0", arguments=at):
            time.sleep(CONSUME_SECONDS)

    def admin_traffic(self) -> None:
        self.client_source = "client 5.5.0"
        for line in ADMIN.strip().splitlines():
            print(f"mqadmin {line}")
            arguments = (*line.split(), "-n", self.namesrv)
            self.run(MQADMIN, "5.5.0", timeout=30, arguments=arguments)

    def acting_master_traffic(self) -> None:
        """Registration with a compressed body and the ways in which such a broker says it lives."""
        for name, old_namesrv in (("broker-b", "true"), ("broker-c", "false")):
            broker = self.start_broker(
                name,
                NAMESRV_PORT,
                compressedRegister="true" if name == "broker-b" else "false",
                enableSlaveActingMaster="true",
                compatibleWithOldNameSrv=old_namesrv,
            )
            time.sleep(12)
            broker.stop()

    def binary_server_traffic(self) -> None:
        self.start_namesrv(SECOND_NAMESRV_PORT, flags=BINARY)
        broker = self.start_broker("broker-d", SECOND_NAMESRV_PORT, flags=BINARY)
        self.namesrv = f"{CLIENTS}:{SECOND_NAMESRV_PORT}"
        self.benchmark_traffic(self.namesrv)
        self.run("ordermessage.Producer", "5.5.0", flags=BINARY)
        self.run("simple.Producer", "5.5.0", flags=BINARY)
        self.send_batch("5.5.0", flags=BINARY)
        self.consume((*("ordermessage.Consumer",) * 2, *LITE_PULL), "5.5.0", flags=BINARY)
        broker.stop()


def request_names() -> dict[int, str]:
    """Code -> name, from the constants of the real RequestCode class."""
    command = ["javap", "-constants", "-cp"]
    jar = next(Path(class_path().removesuffix("/*")).glob("rocketmq-remoting-*.jar"))
    command += [str(jar), "org.apache.rocketmq.remoting.protocol.RequestCode"]
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return {int(code): name for name, code in re.findall(r"int (\w+) = (-?\d+);", text)}


def write_fixtures(vectors: list[Vector], out: Path) -> None:
    names = request_names()
    vectors = [vector for vector in vectors if vector.code not in ACCIDENTS]
    today = datetime.datetime.now(tz=datetime.UTC).date().isoformat()
    vectors.sort(key=lambda v: (v.direction, v.request_code, v.serialisation, v.code, v.frame))
    for source in sorted({vector.source for vector in vectors}):
        rows = []
        for vector in (v for v in vectors if v.source == source):
            label = names.get(vector.request_code, "UNKNOWN")
            row = {
                "name": f"{label} {vector.serialisation} {vector.direction} {len(rows)}",
                "direction": vector.direction,
                "source": source,
                "captured": today,
                "request_code": vector.request_code,
                "code": vector.code,
                "serialisation": vector.serialisation,
                "frame_hex": vector.frame.hex(),
            }
            rows.append(row)
        path = out / f"{source.replace(' ', '-')}.json"
        lines = ",\n".join(json.dumps(row) for row in rows)
        path.write_text(f"[\n{lines}\n]\n", encoding="ascii")
        print(f"{path}: {len(rows)} vectors, {path.stat().st_size} bytes")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=HERE)
    parser.add_argument("--keep", action="store_true", help="keep the folder of logs and stores")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that the children are stopped too
    folder = Path(tempfile.mkdtemp(prefix="pyritemq-golden-"))
    with ExitStack() as stack:
        session = Session(folder, stack)
        session.start_namesrv(NAMESRV_PORT)
        broker = session.start_broker("broker-a", NAMESRV_PORT)
        session.acting_master_traffic()
        session.client_traffic("5.5.0")
        session.benchmark_traffic(session.namesrv)
        session.admin_traffic()
        session.client_traffic("4.9.8")
        broker.stop()
        session.binary_server_traffic()
        write_fixtures(session.recorder.vectors(), options.out)
    if options.keep:
        print(f"kept {folder}")
    else:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
