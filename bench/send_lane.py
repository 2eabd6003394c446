"""The send lane by itself, in this process: python -m bench.send_lane [--backlog 10000000].

Hands drains of recorded frames to the lane's handler, on a real broker whose sockets nobody opens,
and prints the least CPU time of the thread over many drains: a figure that hardly moves with
whatever else the machine does, so that a change of a few per cent shows. With a backlog, the same
again after every million messages that nobody consumes.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from pyritemq.compat.broker_conf import BrokerConfig
from pyritemq.protocol.frames import FrameDecoder
from pyritemq.server.broker.broker import Broker
from pyritemq.server.broker.processors.send import send_messages
from pyritemq.server.clock import SystemClock
from pyritemq.server.lanes import Lane, Outbox
from pyritemq.server.registry import Request
from pyritemq.storage.messages import MessageToStore

FRAMES = Path(__file__).parent.parent / "tests" / "golden" / "client-5.5.0.json"
HOST = b"\x7f\0\0\1\0\0\x27\x10"
STEP = 1_000_000
BATCH = 128
WRITE_OUT_BATCHES = 100  # units held in memory at most; a server writes them every second


class _Channel:
    """Where the replies would go; the outbox asks for its identity only."""

    remote_address = "127.0.0.1:10000"
    born_host = HOST


def frame(serialisation: str) -> bytes:
    """A SEND_MESSAGE_V2 of the official client."""
    rows = json.loads(FRAMES.read_text(encoding="utf-8"))
    return next(
        bytes.fromhex(row["frame_hex"])
        for row in rows
        if (row["code"], row["direction"]) == (310, "request")
        and row["serialisation"] == serialisation
    )


def broker_in(folder: str) -> Broker:
    properties = {"storePathRootDir": folder, "brokerName": "broker-a", "brokerIP1": "127.0.0.1"}
    config, _ = BrokerConfig.from_properties(properties)
    broker = Broker(config, advertised=("127.0.0.1", 10911), clock=SystemClock())
    dispatcher: Any = SimpleNamespace(lanes={Lane.SEND: None}, handler_of=lambda _: None)
    broker.connect(dispatcher)
    return broker


def microseconds(broker: Broker, sent: bytes, *, drain: int, drains: int = 400) -> float:
    """For each message of a drain."""
    least = 1 << 62
    channel: Any = _Channel()
    handler: Any = None
    for _ in range(drains):
        now_ns = time.monotonic_ns()
        commands = FrameDecoder().feed(sent * drain)
        requests: list[Request[Any]] = [
            Request(command, channel, handler, now_ns) for command in commands
        ]
        began_ns = time.thread_time_ns()
        send_messages(broker, requests, Outbox())
        least = min(least, time.thread_time_ns() - began_ns)
    return least / drain / 1000


def anonymous_mib() -> float:
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    return int(status.split("RssAnon:")[1].split()[0]) / 1024


def add_backlog(broker: Broker, count: int) -> None:
    topic = next(iter(broker.store.queues.queues))[0]
    batch = [
        MessageToStore(topic, number % 4, bytes(100), born_host=HOST, store_host=HOST)
        for number in range(BATCH)
    ]
    for number in range(count // BATCH):
        broker.store.put_batch(batch)
        if number % WRITE_OUT_BATCHES == 0:
            broker.store.prepare_next()
            broker.store.queues.write_out()


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.send_lane", description=__doc__)
    parser.add_argument("--backlog", type=int, default=0, help="messages that nobody consumes [0]")
    parser.add_argument("--drain", type=int, default=32, help="messages of a drain [32]")
    parser.add_argument("--work", help="folder for the store [a temporary one]")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.work) as folder:
        broker = broker_in(folder)
        for serialisation in ("json", "rocketmq"):
            least = microseconds(broker, frame(serialisation), drain=options.drain)
            print(f"{serialisation:9} {least:6.2f} µs a message, drains of {options.drain}")
        for stored in range(STEP, options.backlog + 1, STEP):
            add_backlog(broker, STEP)
            least = microseconds(broker, frame("rocketmq"), drain=options.drain)
            print(
                f"rocketmq  {least:6.2f} µs a message, {stored:,} waiting, "
                f"{anonymous_mib():.1f} MiB of memory",
                flush=True,
            )
        broker.store.close()


if __name__ == "__main__":
    main()
