"""python -m bench.spark: the data source's speed, beside the same rows as Parquet, in one run.

Makes a store with our own storage/, reads it once so that the page cache is warm, measures decoding
alone on one core, then Spark's queries on the store and on Parquet (snappy) that Spark wrote of it:
each once unmeasured and then --rounds times; the median counts. Then a stream that follows the
official Producer, and the memory of workers that read a large store. --parts chooses; --docs puts
the table into docs/spark.md.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import platform
import random
import resource
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.spark_memory import worker_memory
from bench.spark_page import put_figures
from bench.spark_stream import follow
from pyritemq.spark.columns import ALL_COLUMNS, FROM_PROPERTIES
from pyritemq.spark.options import parse_source_options
from pyritemq.spark.source import plan_batch, register
from pyritemq.spark.store_backend import StoreBackend, read_store
from pyritemq.storage import MessageStore, MessageToStore, StoreConfig

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import DataFrame, SparkSession

RESULTS = Path(__file__).parent / "results" / "spark.json"
QUEUES = 16
BATCH = 500
FIXED = ",".join(name for name in ALL_COLUMNS if name not in FROM_PROPERTIES)


def make_store(root: Path, messages: int) -> None:
    """Bodies of 128 to 1024 bytes, 576 on average, and seven properties, as clients send them."""
    dice = random.Random(7)
    noise = dice.randbytes(1 << 20)
    store = MessageStore.open(StoreConfig(root=root), now_ms=lambda: time.time_ns() // 1_000_000)
    for first in range(0, messages, BATCH):
        batch = []
        for at in range(first, min(first + BATCH, messages)):
            start, size = dice.randrange(len(noise) - 1024), dice.randint(128, 1024)
            properties = (
                f"UNIQ_KEY\x01{at:032X}\x02KEYS\x01order-{at}\x02TAGS\x01tag{at % 5}\x02"
                f"WAIT\x01true\x02CLUSTER\x01DefaultCluster\x02region\x01eu-{at % 3}\x02"
                "TRACE_ON\x01true\x02"
            ).encode()
            body = noise[start : start + size]
            batch.append(MessageToStore(b"Bench", at % QUEUES, body, properties))
        store.put_batch(batch)
        store.prepare_next()
    store.close()


def decode_seconds(root: str, columns: str) -> tuple[float, int]:
    """CPU seconds and peak KiB of a process that decodes the whole store; no Spark in it."""
    given = {"path": root, "subscribe": "Bench", "columns": columns}
    options = parse_source_options(given, streaming=False)
    parts = plan_batch(options, StoreBackend(options))
    begin = time.process_time()
    for part in parts:
        for _ in read_store(options, part):
            pass
    used = time.process_time() - begin
    return used, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def alone(root: Path, columns: str) -> tuple[float, int]:
    """In a fresh process, twice: the first maps the files."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        pool.apply(decode_seconds, (str(root), columns))
        return pool.apply(decode_seconds, (str(root), columns))


def session(work: Path) -> SparkSession:
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.driver.memory", "2g").config("spark.local.dir", str(work))
    spark = builder.config("spark.ui.showConsoleProgress", "false").getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    register(spark)
    return spark


def seconds(run: Callable[[], Any], rounds: int) -> float:
    run()
    taken = []
    for _ in range(rounds):
        begin = time.perf_counter()
        run()
        taken.append(time.perf_counter() - begin)
    return statistics.median(taken)


def sum_of_lengths(frame: DataFrame) -> Callable[[], Any]:
    return lambda: frame.selectExpr("sum(length(value))").collect()


def to_nowhere(frame: DataFrame) -> Callable[[], Any]:
    return lambda: frame.write.format("noop").mode("overwrite").save()


def compare(spark: SparkSession, work: Path, messages: int, rounds: int) -> dict[str, Any]:
    source = spark.read.format("rocketmq").options(path=str(work / "store"), subscribe="Bench")
    whole = source.load()
    parquet = work / "parquet"
    whole.write.option("compression", "snappy").parquet(str(parquet))
    columns = spark.read.parquet(str(parquet))
    ours = source.option("columns", "value").load()
    found = {}
    for name, store_run, parquet_run in (
        ("sum of lengths", sum_of_lengths(ours), sum_of_lengths(columns)),
        ("all columns to noop", to_nowhere(whole), to_nowhere(columns)),
    ):
        mine, theirs = seconds(store_run, rounds), seconds(parquet_run, rounds)
        found[name] = {
            "store rows/s": round(messages / mine),
            "parquet rows/s": round(messages / theirs),
            "ratio": round(theirs / mine, 2),
        }
    return found


def decode_alone(root: Path, messages: int) -> dict[str, Any]:
    log = sum(file.stat().st_blocks * 512 for file in (root / "commitlog").iterdir())
    found: dict[str, Any] = {"CommitLog MB": log // 10**6}
    parts = (("fixed columns + value", FIXED), ("with key, tags, id, map", ",".join(ALL_COLUMNS)))
    for name, columns in parts:
        used, peak = alone(root, columns)
        found[f"decode alone, {name}"] = {
            "M rows/s of CPU": round(messages / used / 1e6, 2),
            "MB/s": round(log / used / 1e6),
            "peak MB": peak // 1024,
        }
    return found


def measure(work: Path, chosen: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """What each part found, as soon as it is known."""
    yield {
        "messages": chosen.messages,
        "machine": f"{os.cpu_count()} cores, Python {platform.python_version()}",
        "load before": round(os.getloadavg()[0], 1),
    }
    if {"decode", "queries"} & chosen.parts:
        make_store(work / "store", chosen.messages)
    if "decode" in chosen.parts:
        yield decode_alone(work / "store", chosen.messages)
    if chosen.parts == {"decode"}:
        return
    spark = session(work)
    if "queries" in chosen.parts:
        yield compare(spark, work, chosen.messages, chosen.rounds)
    if "stream" in chosen.parts:
        yield {"stream": follow(spark, work, chosen.stream_messages)}
    if "memory" in chosen.parts:
        yield {"memory": worker_memory(spark, work, int(chosen.large * 2**30))}
    spark.stop()


PARTS = ("decode", "queries", "stream", "memory")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.spark", description=__doc__)
    parser.add_argument("--messages", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--stream-messages", type=int, default=400_000)
    parser.add_argument("--large", type=float, default=10, help="GiB of the store read for memory")
    parser.add_argument("--parts", type=lambda text: set(text.split(",")), default=set(PARTS))
    parser.add_argument("--docs", action="store_true", help="put the table into docs/spark.md")
    parser.add_argument("--work", type=Path, help="folder for the store and the Parquet files")
    parser.add_argument("--out", type=Path, default=RESULTS)
    chosen = parser.parse_args()
    if not chosen.parts <= set(PARTS):
        parser.error(f"--parts are of {', '.join(PARTS)}")
    chosen.out.parent.mkdir(exist_ok=True)
    result: dict[str, Any] = {}
    with tempfile.TemporaryDirectory(dir=chosen.work) as folder:
        for found in measure(Path(folder), chosen):
            result |= found
            print(json.dumps(found, indent=2), flush=True)
            chosen.out.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
    if chosen.docs:
        put_figures(result)


if __name__ == "__main__":
    main()
