"""A large store, made by our own storage code in a process of its own: python -m bench.store_fill.

The messages look as an official client sends them: a UNIQ_KEY, a tag, WAIT. Everything is in the
index and durable when it ends, as after the clean stop of a server that was idle for a while.
"""

from __future__ import annotations

import argparse
import json
import random
import time
from pathlib import Path

from pyritemq.compat.java_hash import tags_code
from pyritemq.storage import MessageStore, MessageToStore, StoreConfig

TOPIC = "BenchStore"
QUEUES = 8
BATCH = 64
WRITE_OUT_MESSAGES = 200_000  # units held in memory at most; a server writes them every second


def write_topics(root: Path) -> None:
    """The table that either server reads the topic from."""
    topic = {
        "topicName": TOPIC,
        "perm": 6,
        "readQueueNums": QUEUES,
        "writeQueueNums": QUEUES,
        "topicFilterType": "SINGLE_TAG",
        "topicSysFlag": 0,
        "order": False,
    }
    version = {"counter": 1, "stateVersion": 0, "timestamp": time.time_ns() // 10**6}
    folder = root / "config"
    folder.mkdir(parents=True)
    text = json.dumps({"topicConfigTable": {TOPIC: topic}, "dataVersion": version})
    (folder / "topics.json").write_text(text, encoding="utf-8")


def fill(root: Path, messages: int, body_sizes: tuple[int, int], *, index: bool) -> int:
    """Make a store of so many messages and stop it cleanly; the bytes of its CommitLog."""
    write_topics(root)
    config = StoreConfig(root=root, message_index_enable=index)
    store = MessageStore.open(config, now_ms=lambda: time.time_ns() // 10**6)
    chance = random.Random(7)
    pool = chance.randbytes(1 << 16)
    code, topic = tags_code("TagA"), TOPIC.encode()
    for first in range(0, messages, BATCH):
        batch = []
        for number in range(first, min(first + BATCH, messages)):
            size = chance.randint(*body_sizes)
            start = number * 37 % ((1 << 16) - size)
            properties = b"UNIQ_KEY\x01AC110001%024X\x02WAIT\x01true\x02TAGS\x01TagA\x02" % number
            batch.append(
                MessageToStore(
                    topic,
                    number % QUEUES,
                    pool[start : start + size],
                    properties,
                    tags_code=code,
                    born_host=b"\x7f\0\0\1\0\0\x27\x10",
                    store_host=b"\x7f\0\0\1\0\0\x2a\x9f",
                )
            )
        store.put_batch(batch)
        if first % WRITE_OUT_MESSAGES < BATCH:
            store.prepare_next()
            store.queues.write_out()
    if index:
        store.index.catch_up()
    end = store.max_phy_offset
    store.close()
    return end


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.store_fill", description=__doc__)
    parser.add_argument("root", type=Path)
    parser.add_argument("--messages", type=int, default=10_000_000)
    parser.add_argument("--smallest", type=int, default=32, help="bytes of a body [32]")
    parser.add_argument("--largest", type=int, default=96, help="bytes of a body [96]")
    parser.add_argument("--no-index", action="store_true")
    options = parser.parse_args()
    begin = time.monotonic()
    sizes = (options.smallest, options.largest)
    size = fill(options.root, options.messages, sizes, index=not options.no_index)
    seconds = time.monotonic() - begin
    print(f"{options.messages:,} messages, {size / 1e6:,.0f} MB of CommitLog, {seconds:.0f} s")


if __name__ == "__main__":
    main()
