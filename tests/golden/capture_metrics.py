"""Remakes metrics/broker-5.5.0.json: names, types and labels of a real broker's metrics.

    .venv/bin/python tests/golden/capture_metrics.py        about half a minute

Needs the jars of scripts/fetch-jars.  The whole text goes to standard output, for people.
"""

import json
import sys
import tempfile
import urllib.request
from datetime import UTC, datetime
from pathlib import Path

import trio

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

from integration.metrics_traffic import (  # noqa: E402
    SETTINGS,
    counts,
    is_complete,
    make_traffic,
    shape,
)
from integration.wire import Wire  # noqa: E402
from pyritemq.conformance.processes import free_port  # noqa: E402
from pyritemq.conformance.servers.cluster import java_cluster  # noqa: E402

LOOKS = 60


def scrape(port):
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as reply:
        return reply.read().decode()


async def capture(address, port):
    wire = await Wire.connect(address)  # stays open: connections are counted, too
    await make_traffic(wire)
    for _ in range(LOOKS):
        text = scrape(port)
        if is_complete(text):
            break
        await trio.sleep(0.5)
    await wire.aclose()
    return text


def main():
    port = free_port()
    properties = SETTINGS | {"metricsExporterType": "PROM", "metricsPromExporterPort": port}
    properties["metricsPromExporterHost"] = "127.0.0.1"
    with (
        tempfile.TemporaryDirectory() as folder,
        java_cluster(Path(folder), properties=properties) as cluster,
    ):
        text = trio.run(capture, cluster.broker, port)
    print(text)
    golden = {"source": "broker 5.5.0", "date": f"{datetime.now(UTC):%Y-%m-%d}"}
    golden |= {"metrics": shape(text), "counts": counts(text)}
    (HERE / "metrics" / "broker-5.5.0.json").write_text(json.dumps(golden, indent=1) + "\n")


if __name__ == "__main__":
    main()
