"""Writes docs/grafana/pyritemq.json: `.venv/bin/python scripts/grafana_dashboard.py`.

The dashboard is data made from the rows below; a test holds the file equal to them, and each metric
that a panel asks for is one that a server shows.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

FILE = Path(__file__).parents[1] / "docs" / "grafana" / "pyritemq.json"
BROKER = 'cluster=~"$cluster",node_id=~"$node"'
NODE = 'node_id=~"$node"'
USER = BROKER + ',is_system="false"'
SOURCE = {"type": "prometheus", "uid": "${datasource}"}
WIDTH, HEIGHT, COLUMNS = 8, 8, 3

# Row, then panels: title, unit, and pairs of an expression and its legend.
ROWS: list[tuple[str, list[tuple[str, str, list[tuple[str, str]]]]]] = [
    (
        "Messages",
        [
            (
                "Messages in",
                "cps",
                [
                    (
                        f"sum by (topic) (rate(rocketmq_messages_in_total{{{USER}}}[1m]))",
                        "{{topic}}",
                    )
                ],
            ),
            (
                "Messages out",
                "cps",
                [
                    (
                        (
                            "sum by (topic, consumer_group)"
                            f" (rate(rocketmq_messages_out_total{{{USER}}}[1m]))"
                        ),
                        "{{topic}} → {{consumer_group}}",
                    )
                ],
            ),
            (
                "Bytes in and out",
                "Bps",
                [
                    (f"sum(rate(rocketmq_throughput_in_total{{{USER}}}[1m]))", "in"),
                    (f"sum(rate(rocketmq_throughput_out_total{{{USER}}}[1m]))", "out"),
                ],
            ),
            (
                "Message size, 95 %",
                "bytes",
                [
                    (
                        (
                            "histogram_quantile(0.95, sum by (le, topic)"
                            f" (rate(rocketmq_message_size_bucket{{{USER}}}[5m])))"
                        ),
                        "{{topic}}",
                    )
                ],
            ),
            (
                "Topics and groups",
                "short",
                [
                    (f"rocketmq_topic_number{{{BROKER}}}", "topics {{node_id}}"),
                    (f"rocketmq_consumer_group_number{{{BROKER}}}", "groups {{node_id}}"),
                ],
            ),
            (
                "Connections",
                "short",
                [
                    (f"sum(rocketmq_producer_connections{{{BROKER}}})", "producers"),
                    (
                        f"sum by (consumer_group) (rocketmq_consumer_connections{{{BROKER}}})",
                        "{{consumer_group}}",
                    ),
                ],
            ),
        ],
    ),
    (
        "Consumers",
        [
            (
                "Lag",
                "short",
                [
                    (
                        (
                            "sum by (consumer_group, topic)"
                            f" (rocketmq_consumer_lag_messages{{{BROKER}}})"
                        ),
                        "{{consumer_group}} {{topic}}",
                    )
                ],
            ),
            (
                "Oldest unconsumed message",
                "ms",
                [
                    (
                        (
                            "max by (consumer_group, topic)"
                            f" (rocketmq_consumer_lag_latency_milliseconds{{{BROKER}}})"
                        ),
                        "{{consumer_group}} {{topic}}",
                    )
                ],
            ),
            (
                "Dead letters",
                "short",
                [
                    (
                        (
                            "sum by (consumer_group) (increase("
                            f"rocketmq_send_to_dlq_messages_total{{{BROKER}}}[5m]))"
                        ),
                        "{{consumer_group}}",
                    )
                ],
            ),
            (
                "Timers that wait",
                "short",
                [(f"sum by (topic) (rocketmq_timing_messages{{{BROKER}}})", "{{topic}}")],
            ),
            (
                "Transactions",
                "cps",
                [
                    (f"sum(rate(rocketmq_commit_messages_total{{{BROKER}}}[1m]))", "committed"),
                    (f"sum(rate(rocketmq_rollback_messages_total{{{BROKER}}}[1m]))", "rolled back"),
                ],
            ),
            (
                "Pulls that wait for messages",
                "short",
                [(f"pyritemq_pulls_held{{{NODE}}}", "{{node_id}}")],
            ),
        ],
    ),
    (
        "Requests and lanes",
        [
            (
                "Request latency, 99 %",
                "ms",
                [
                    (
                        (
                            "histogram_quantile(0.99, sum by (le, request_code)"
                            f" (rate(rocketmq_rpc_latency_milliseconds_bucket{{{BROKER}}}[5m])))"
                        ),
                        "{{request_code}}",
                    )
                ],
            ),
            (
                "Lane depth",
                "short",
                [("pyritemq_lane_queue_depth", "{{service}} {{lane}}")],
            ),
            (
                "Mean wait in a lane",
                "s",
                [
                    (
                        (
                            "rate(pyritemq_lane_wait_seconds_total[1m])"
                            " / (rate(pyritemq_lane_requests_total[1m]) > 0)"
                        ),
                        "{{service}} {{lane}}",
                    )
                ],
            ),
            (
                "Lane threads at work",
                "percentunit",
                [("rate(pyritemq_lane_serve_seconds_total[1m])", "{{service}} {{lane}}")],
            ),
            (
                "Requests a batch",
                "short",
                [
                    (
                        (
                            "rate(pyritemq_lane_requests_total[1m])"
                            " / (rate(pyritemq_lane_drains_total[1m]) > 0)"
                        ),
                        "{{service}} {{lane}}",
                    )
                ],
            ),
            (
                "Refused with SYSTEM_BUSY",
                "cps",
                [("rate(pyritemq_lane_refused_total[1m])", "{{service}} {{lane}}")],
            ),
        ],
    ),
    (
        "Store and process",
        [
            (
                "Not synced yet",
                "bytes",
                [(f"rocketmq_storage_flush_behind_bytes{{{BROKER}}}", "{{node_id}}")],
            ),
            (
                "Mean sync of the CommitLog",
                "s",
                [
                    (
                        (
                            f"rate(pyritemq_store_sync_seconds_total{{{NODE}}}[1m])"
                            f" / (rate(pyritemq_store_syncs_total{{{NODE}}}[1m]) > 0)"
                        ),
                        "{{node_id}}",
                    )
                ],
            ),
            (
                "Time to store, 99 %",
                "s",
                [
                    (
                        (
                            "histogram_quantile(0.99, sum by (le, node_id)"
                            f" (rate(pyritemq_store_put_seconds_bucket{{{NODE}}}[5m])))"
                        ),
                        "{{node_id}}",
                    )
                ],
            ),
            (
                "CommitLog and disk",
                "bytes",
                [
                    (f"pyritemq_store_commitlog_bytes{{{NODE}}}", "CommitLog {{node_id}}"),
                    (f"rocketmq_storage_size_bytes{{{BROKER}}}", "disk used {{node_id}}"),
                ],
            ),
            (
                "Takes messages",
                "bool",
                [(f"pyritemq_store_writable{{{NODE}}}", "{{node_id}}")],
            ),
            (
                "CPU and memory",
                "short",
                [
                    ("rate(process_cpu_seconds_total[1m])", "CPUs {{instance}}"),
                    ("process_resident_memory_bytes / 2^30", "GiB {{instance}}"),
                ],
            ),
        ],
    ),
]


def dashboard() -> dict[str, Any]:
    panels: list[dict[str, Any]] = []
    top = 0
    for title, row in ROWS:
        place = {"h": 1, "w": WIDTH * COLUMNS, "x": 0, "y": top}
        panels.append({"type": "row", "title": title, "id": len(panels) + 1, "gridPos": place})
        top += 1
        for index, (name, unit, targets) in enumerate(row):
            at = {"x": index % COLUMNS * WIDTH, "y": top + index // COLUMNS * HEIGHT}
            panels.append(_panel(len(panels) + 1, name, unit, targets, at))
        top += -(-len(row) // COLUMNS) * HEIGHT
    return {
        "title": "PyriteMQ",
        "uid": "pyritemq",
        "tags": ["rocketmq", "pyritemq"],
        "schemaVersion": 39,
        "version": 1,
        "editable": True,
        "refresh": "10s",
        "time": {"from": "now-30m", "to": "now"},
        "templating": {"list": _variables()},
        "panels": panels,
    }


def _panel(
    number: int, title: str, unit: str, targets: list[tuple[str, str]], at: dict[str, int]
) -> dict[str, Any]:
    return {
        "type": "timeseries",
        "id": number,
        "title": title,
        "datasource": SOURCE,
        "gridPos": at | {"h": HEIGHT, "w": WIDTH},
        "fieldConfig": {"defaults": {"unit": unit, "min": 0}, "overrides": []},
        "options": {"tooltip": {"mode": "multi", "sort": "desc"}},
        "targets": [
            {
                "refId": chr(ord("A") + index),
                "datasource": SOURCE,
                "expr": expression,
                "legendFormat": legend,
            }
            for index, (expression, legend) in enumerate(targets)
        ],
    }


def _variables() -> list[dict[str, Any]]:
    queries = {
        "cluster": "label_values(rocketmq_broker_permission, cluster)",
        "node": 'label_values(rocketmq_broker_permission{cluster=~"$cluster"}, node_id)',
    }
    source = {"name": "datasource", "type": "datasource", "query": "prometheus"}
    return [source] + [
        {
            "name": name,
            "type": "query",
            "datasource": SOURCE,
            "query": query,
            "refresh": 2,
            "multi": True,
            "includeAll": True,
            "allValue": ".*",
            "current": {"text": "All", "value": "$__all"},
        }
        for name, query in queries.items()
    ]


def text() -> str:
    return json.dumps(dashboard(), indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    FILE.write_text(text())
