"""`spark.read.format("rocketmq")`: the data source that Spark meets.

Spark calls `schema` and `reader` in Python processes of the driver; a reader's `read` runs in
workers, to which it is pickled: it holds options and nothing else.
"""

from collections.abc import Iterator, Sequence
from contextlib import closing
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
    InputPartition,
)
from pyspark.sql.types import StructType

from pyritemq.spark.backend import Backend, open_backend, read_partition
from pyritemq.spark.options import SourceOptions, parse_source_options
from pyritemq.spark.partitions import ReadPartition
from pyritemq.spark.schema import spark_schema
from pyritemq.spark.selection import make_ranges, resolve, select_queues
from pyritemq.spark.sink import RocketMQStreamWriter, RocketMQWriter, parse_sink_options
from pyritemq.spark.stream import RocketMQStreamReader

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FORMAT = "rocketmq"


class RocketMQDataSource(DataSource):
    """A RocketMQ or PyriteMQ store, or a cluster of live brokers."""

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def schema(self) -> StructType:
        """Checks all options: a mistake shows when `load` is called, before any job runs."""
        options = parse_source_options(self.options, streaming=None)
        return spark_schema(options.columns)

    def reader(self, schema: StructType) -> DataSourceReader:
        return RocketMQReader(parse_source_options(self.options, streaming=False))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 - Spark's
        return RocketMQStreamReader(parse_source_options(self.options, streaming=True))

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        return RocketMQWriter(parse_sink_options(self.options), schema, overwrite=overwrite)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:  # noqa: N802
        return RocketMQStreamWriter(parse_sink_options(self.options), schema)


def plan_batch(options: SourceOptions, backend: Backend) -> list[ReadPartition]:
    """The tasks of one batch read."""
    keys = select_queues(options, backend)
    starts = resolve(options.starting, keys, backend, option="starting")
    ends = resolve(options.ending, keys, backend, option="ending")
    bounds = backend.bounds(keys)
    ranges = make_ranges(starts, ends, bounds, fail_on_data_loss=options.fail_on_data_loss)
    return backend.plan(ranges)


class RocketMQReader(DataSourceReader):
    """One batch read."""

    def __init__(self, options: SourceOptions) -> None:
        self._options = options

    def partitions(self) -> Sequence[InputPartition]:
        with closing(open_backend(self._options)) as backend:
            return list(plan_batch(self._options, backend))

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        if not isinstance(partition, ReadPartition):  # Spark's stand-in for "no partitions"
            return iter(())
        return read_partition(self._options, partition)


def register(spark: "SparkSession") -> None:
    """Let the session know the format `rocketmq`, for reading and writing."""
    spark.dataSource.register(RocketMQDataSource)
