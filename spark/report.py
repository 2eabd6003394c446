"""What `pyritemq spark-report` tells of a store: topics, rates, sizes, keys, dead letters, latency.

Three aggregations over one scan's columns; bodies are not inflated, only their sizes counted.
"""

from dataclasses import dataclass
from typing import Any, Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

COLUMNS: Final = "key,value,topic,tags,bornTimestamp,storeTimestamp,properties"
DEAD_LETTERS: Final = "%DLQ%"
MINUTES_MAX: Final = 240  # bars that a chart can still show: beyond it, minutes are joined
TOP: Final = 15

Table = list[dict[str, Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """Figures, ready to be shown."""

    store: str
    topics: Table
    per_slot: Table
    slot_minutes: int
    hot_keys: Table
    tags: Table
    dead_letters: Table

    @property
    def messages(self) -> int:
        return sum(topic["messages"] for topic in self.topics)


def make_report(spark: SparkSession, path: str, *, pattern: str = ".*") -> Report:
    """Raises what Spark raises; its text ends with our own sentence."""
    source = spark.read.format("rocketmq").option("path", path).option("inflate", "false")
    frame = source.option("subscribePattern", pattern).option("columns", COLUMNS).load()
    frame = frame.select(
        "topic",
        "key",
        "tags",
        f.length("value").alias("size"),
        f.unix_millis("storeTimestamp").alias("stored"),
        (f.unix_millis("storeTimestamp") - f.unix_millis("bornTimestamp")).alias("latency"),
        f.col("properties")["DLQ_ORIGIN_TOPIC"].alias("origin"),
    )
    topics = _rows(_by_topic(frame))
    minutes = _slot_minutes(topics)
    return Report(
        store=path,
        topics=topics,
        per_slot=_rows(_by_slot(frame, minutes)),
        slot_minutes=minutes,
        hot_keys=_rows(_most(frame.where("key is not null"), "topic", "key")),
        tags=_rows(_most(frame, "topic", "tags")),
        dead_letters=_rows(_most(_dead(frame), "topic", "origin")),
    )


def _by_topic(frame: DataFrame) -> DataFrame:
    quantiles = f.percentile_approx("latency", [0.5, 0.99, 1.0])
    return (
        frame.groupBy("topic")
        .agg(
            f.count("*").alias("messages"),
            f.sum("size").alias("bytes"),
            f.percentile_approx("size", 0.5).alias("size_median"),
            f.max("size").alias("size_max"),
            f.min("stored").alias("first"),
            f.max("stored").alias("last"),
            quantiles.alias("latency"),
        )
        .orderBy(f.desc("messages"), "topic")
    )


def _slot_minutes(topics: Table) -> int:
    if not topics:
        return 1
    span: int = max(each["last"] for each in topics) - min(each["first"] for each in topics)
    return max(-(-span // (60_000 * MINUTES_MAX)), 1)


def _by_slot(frame: DataFrame, minutes: int) -> DataFrame:
    slot = (f.floor(f.col("stored") / (60_000 * minutes)) * (60_000 * minutes)).alias("slot")
    return frame.groupBy(slot).agg(f.count("*").alias("messages")).orderBy("slot")


def _dead(frame: DataFrame) -> DataFrame:
    return frame.where(f.col("topic").startswith(DEAD_LETTERS))


def _most(frame: DataFrame, *names: str) -> DataFrame:
    counted = frame.groupBy(*names).agg(f.count("*").alias("messages"))
    return counted.orderBy(f.desc("messages"), *names).limit(TOP)


def _rows(frame: DataFrame) -> Table:
    return [row.asDict() for row in frame.collect()]
