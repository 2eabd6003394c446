"""Spark checks the first batch's Arrow schema against the declared one, to the letter."""

from pyspark.sql.pandas.types import to_arrow_schema

from pyritemq.spark.columns import ALL_COLUMNS, arrow_schema
from pyritemq.spark.schema import spark_schema


def test_the_arrow_schema_is_the_one_that_spark_makes_of_its_own():
    assert to_arrow_schema(spark_schema(), timezone="UTC").equals(arrow_schema(ALL_COLUMNS))
