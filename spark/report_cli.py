"""`pyritemq spark-report STORE`: loaded by the command line when it is called, and not before."""

import os
import shutil
import sys
from pathlib import Path

import click

from pyritemq.spark.errors import SparkSourceError
from pyritemq.spark.store_backend import open_stores


@click.command()
@click.argument("store", type=click.Path(path_type=Path))
@click.option(
    "--out",
    type=click.Path(dir_okay=False, path_type=Path),
    default="store-report.html",
    show_default=True,
    help="The file to write.",
)
@click.option("--topics", default=".*", help="A regular expression of topics.  [default: all]")
@click.option("--master", default="local[*]", show_default=True, help="Where Spark runs.")
def spark_report(store: Path, out: Path, topics: str, master: str) -> None:
    """Write a small HTML report of a STORE folder, made with Spark."""
    try:
        open_stores(str(store), None)
    except SparkSourceError as error:
        _fail(str(error))
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        _fail("Spark needs Java 17 or newer, and there is no java on the PATH")
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    from pyspark.sql import SparkSession

    from pyritemq.spark.report import make_report
    from pyritemq.spark.report_html import render
    from pyritemq.spark.source import register

    builder = SparkSession.builder.master(master).appName("pyritemq spark-report")
    spark = builder.config("spark.ui.enabled", "false").getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    try:
        register(spark)
        report = make_report(spark, str(store.resolve()), pattern=topics)
    finally:
        spark.stop()
    out.write_text(render(report), encoding="utf-8")
    click.echo(f"{out}: {report.messages:,} messages in {len(report.topics)} topics")


def _fail(sentence: str) -> None:
    click.echo(f"pyritemq: {sentence}", err=True)
    sys.exit(1)
