"""The source's columns as Spark types; Arrow's are in columns.py, held equal by a test."""

from typing import Final

from pyspark.sql.types import (
    BinaryType,
    DataType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from pyritemq.spark.columns import ALL_COLUMNS

_INTEGERS: Final = {"queueId", "sysFlag", "flag", "reconsumeTimes", "bodyCrc"}
_LONGS: Final = {"queueOffset", "commitLogOffset", "preparedTransactionOffset"}
_TIMES: Final = {"bornTimestamp", "storeTimestamp"}


def _spark_type(name: str) -> DataType:
    if name in _INTEGERS:
        return IntegerType()
    if name in _LONGS:
        return LongType()
    if name in _TIMES:
        return TimestampType()
    if name == "value":
        return BinaryType()
    return MapType(StringType(), StringType()) if name == "properties" else StringType()


def spark_schema(columns: tuple[str, ...] = ALL_COLUMNS) -> StructType:
    return StructType([StructField(name, _spark_type(name)) for name in columns])
