"""The same code on `spark://`: a master and two workers, started from the pip package."""

import json
import sys
from contextlib import ExitStack
from pathlib import Path

import pyspark
import pytest

from integration.spark.kit import numbers, send, wait_for_route, wait_until
from pyritemq.conformance.processes import Child, free_port
from pyritemq.spark import latest_offsets

pytestmark = pytest.mark.slow

JOB = Path(__file__).with_name("cluster_job.py")
COUNT = 4000
SECONDS = 240.0


def spark_class(name, folder, *words):
    command = [str(Path(sys.executable).parent / "spark-class")]
    command += [f"org.apache.spark.deploy.{words[0]}", "--host", "127.0.0.1", "--webui-port", "0"]
    environment = {
        "SPARK_HOME": pyspark.__path__[0],  # spark-class asks the `python` on the PATH otherwise
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_MASTER_OPTS": "-Dspark.master.rest.enabled=false",
    }
    return Child(name, [*command, *words[1:]], folder=folder / name, env=environment)


def test_a_cluster_reads_a_shared_folder_and_brokers_and_writes(live, tmp_path):
    running, store = live
    send(running.namesrv, "Shared", numbers(0, COUNT))
    wait_until(
        lambda: sum(latest_offsets(str(store)).get("Shared", {}).values()) == COUNT,
        "the queues are not written",
    )
    with ExitStack() as stack:
        port = str(free_port())
        master = stack.enter_context(
            spark_class("master", tmp_path, "master.Master", "--port", port)
        )
        master.wait_for_line(r"Starting Spark master at", timeout=SECONDS)
        url = f"spark://127.0.0.1:{port}"
        for name in ("worker-1", "worker-2"):
            words = ("worker.Worker", "--cores", "1", "--memory", "1g", url)
            stack.enter_context(spark_class(name, tmp_path, *words))
        command = [sys.executable, str(JOB), url, str(store), running.namesrv, "Shared"]
        # without this Spark asks the `python3` of the PATH for data sources
        python = {"PYSPARK_PYTHON": sys.executable}
        job = stack.enter_context(Child("job", command, folder=tmp_path / "job", env=python))
        found = json.loads(job.wait_for_line(r"found (\{.*\})", timeout=SECONDS)[1])
    assert found["files"] == [COUNT, sum(range(COUNT)), COUNT]
    assert found["brokers"] == found["files"]
    assert len(found["executors"]) == 2, "both workers took part"
    wait_for_route(running.namesrv, "SharedAgain")
    wait_until(
        lambda: sum(latest_offsets(str(store)).get("SharedAgain", {}).values()) == COUNT,
        "not all rows were stored once",
    )
