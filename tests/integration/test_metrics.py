"""/metrics against what a real RocketMQ 5.5.0 broker shows after the same traffic."""

import json
import re
import runpy
from pathlib import Path

import pytest
import trio

from integration.metrics_traffic import SETTINGS, counts, is_complete, make_traffic, parse, shape
from pyritemq.server.operations import Operations

ROOT = Path(__file__).parents[2]
METRIC = r"\b((?:rocketmq|pyritemq|process)_\w+)"
GOLDEN = json.loads(
    (Path(__file__).parents[1] / "golden" / "metrics" / "broker-5.5.0.json").read_text()
)

# What the real broker shows and we do not, and why.
MISSING = {
    "rocketmq_half_messages": "Java keeps the counts in a file of their own; there is none here",
    "rocketmq_pop_buffer_scan_time_consume_milliseconds": "a thread of Java's pop processor",
    "rocketmq_pop_checkpoint_buffer_size": "a buffer of Java's pop processor",
    "rocketmq_pop_offset_buffer_size": "a buffer of Java's pop processor",
    "rocketmq_pop_revive_lag_milliseconds": "Java's revive topic",
    "rocketmq_pop_revive_latency_milliseconds": "Java's revive topic",
    "target_info": "OpenTelemetry's, and empty",
}


async def scrape(operations):
    return await trio.to_thread.run_sync(operations._render)


@pytest.fixture(scope="module")
def text_of():
    return {}


@pytest.fixture
async def text(start_server, stop_server, text_of):
    """The whole text after the traffic, made once."""
    if not text_of:
        server = await start_server(**SETTINGS)
        operations = Operations(namesrv=server.namesrv, broker=server.broker)
        wire = await server.connect()
        await make_traffic(wire)
        with trio.fail_after(20):
            while not is_complete(text := await scrape(operations)):
                pass  # each look takes a while
        text_of["text"] = text
        await stop_server(server)
    return text_of["text"]


async def test_names_types_labels_and_bounds_are_those_of_the_real_broker(text):
    ours = {name: one for name, one in shape(text).items() if name.startswith("rocketmq_")}
    theirs = {name: one for name, one in GOLDEN["metrics"].items() if name not in MISSING}
    assert sorted(ours) == sorted(theirs)
    assert ours == theirs


async def test_what_is_missing_is_missing(text):
    assert not set(shape(text)) & set(MISSING)
    assert set(MISSING) <= set(GOLDEN["metrics"])


async def test_the_same_traffic_is_counted_as_often(text):
    """But for the type `fifo`, which is told by the topic here and by the message there."""
    ours = {key(row): row[2] for row in counts(text) if is_theirs(row)}
    theirs = {}
    for row in filter(is_theirs, GOLDEN["counts"]):
        fifo = [
            ("message_type", "normal") if pair == ["message_type", "fifo"] else tuple(pair)
            for pair in row[1]
        ]
        theirs[key([row[0], fifo])] = theirs.get(key([row[0], fifo]), 0) + row[2]
    assert ours == theirs


def is_theirs(row):
    return row[0].startswith("rocketmq_") and "throughput" not in row[0]


def key(row):
    return row[0], tuple(sorted(tuple(pair) for pair in row[1]))


async def test_every_sample_of_a_metric_is_there_once_and_histograms_add_up(text):
    samples, types = parse(text)
    keys = [(name, tuple(sorted(labels.items()))) for name, labels, _ in samples]
    assert len(keys) == len(set(keys))
    table = {key: value for key, (_, _, value) in zip(keys, samples, strict=True)}
    for name, labels, value in samples:
        if name.endswith("_bucket") and labels["le"] == "+Inf":
            del labels["le"]
            count = (name.replace("_bucket", "_count"), tuple(sorted(labels.items())))
            assert table[count] == value
    assert all(kind in ("gauge", "counter", "histogram") for kind in types.values())


async def test_a_label_that_was_asked_for_is_on_every_sample(start_server, stop_server):
    server = await start_server(metricsLabel="team:a,node_id:mine,bad", enableStatsMetrics="false")
    samples, types = parse(await scrape(Operations(broker=server.broker)))
    found = [labels for name, labels, _ in samples if name.startswith("rocketmq_")]
    assert found
    assert all(labels["team"] == "a" for labels in found)
    assert all(labels["node_id"] == "broker-a" for labels in found)
    assert "rocketmq_topic_number" not in types
    await stop_server(server)


async def test_every_metric_and_label_of_the_dashboard_exists(text):
    board = json.loads((ROOT / "docs" / "grafana" / "pyritemq.json").read_text())
    queries = [target["expr"] for panel in board["panels"] for target in panel.get("targets", ())]
    queries += [one["query"] for one in board["templating"]["list"]]
    samples, _ = parse(text)
    labels_of = {}
    for name, labels, _ in samples:
        labels_of.setdefault(name, set()).update(labels)
    asked = [name for query in queries for name in re.findall(METRIC, query)]
    assert len(set(asked)) > 25
    assert sorted(set(asked) - set(labels_of)) == []
    for query in queries:
        for name, selector in re.findall(METRIC + r"\{(.*?)\}", query):
            wanted = set(re.findall(r"(\w+)=", selector))
            assert wanted <= labels_of[name], query
        grouped = {
            label for labels in re.findall(r"by \((.*?)\)", query) for label in labels.split(", ")
        }
        for name in re.findall(METRIC, query):
            assert grouped <= labels_of[name], query


async def test_the_dashboard_is_what_its_script_makes():
    made = runpy.run_path(str(ROOT / "scripts" / "grafana_dashboard.py"))
    assert made["FILE"].read_text() == made["text"]()
