"""Servers, stores and one Spark session for the data source's tests."""

import os
import sys

import pytest

from pyritemq.conformance.servers.cluster import pyrite_cluster

SMALL_FILES = {"mappedFileSizeCommitLog": 1 << 20, "mappedFileSizeConsumeQueue": 20 * 1000}


@pytest.fixture(scope="module")
def live(tmp_path_factory):
    """A server in a process of its own, and where its store lies."""
    folder = tmp_path_factory.mktemp("live")
    with pyrite_cluster(folder, properties=SMALL_FILES) as running:
        yield running, folder / "store"


@pytest.fixture(scope="session")
def spark(tmp_path_factory):
    """One JVM for all tests: it takes as long to start as most tests to run."""
    from pyspark.sql import SparkSession

    from pyritemq.spark import register

    os.environ["PYSPARK_PYTHON"] = sys.executable
    folder = tmp_path_factory.mktemp("spark")
    builder = SparkSession.builder.master("local[2]").appName("tests")
    settings = {
        "spark.ui.enabled": "false",
        "spark.driver.memory": "768m",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        # short queries: no time for compilers to pay off
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
        "spark.python.authenticate.socketTimeout": "60s",  # a loaded machine starts Python slowly
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.warehouse.dir": str(folder),
        "spark.ui.showConsoleProgress": "false",
    }
    for name, value in settings.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    register(session)
    yield session
    session.stop()
