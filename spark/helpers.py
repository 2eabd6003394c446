"""Small questions that people would otherwise write code for."""

import json
from collections.abc import Mapping
from typing import Any

from pyritemq.spark.options import parse_source_options
from pyritemq.spark.queues import Offsets, offsets_from_json
from pyritemq.spark.selection import select_queues
from pyritemq.spark.store_backend import StoreBackend

ByTopic = dict[str, dict[str, int]]


def latest_offsets(path: str, topics: str | None = None) -> ByTopic:
    """Where each queue of a store ends: `{topic: {"broker:queue": offset}}`.

    That is what `startingOffsets` and `endingOffsets` take, as JSON: two calls bound what came in
    between. Topics are separated by commas; without them it is all but system topics.
    """
    chosen = {"subscribePattern": ".*"} if topics is None else {"subscribe": topics}
    options = parse_source_options({"path": path, **chosen}, streaming=False)
    backend = StoreBackend(options)
    found: ByTopic = {}
    for key, (_, end) in backend.bounds(select_queues(options, backend)).items():
        found.setdefault(key.topic, {})[f"{key.broker}:{key.queue_id}"] = end
    return found


def lag(progress: Mapping[str, Any]) -> int:
    """Messages that a streaming query has yet to read, by its `lastProgress`."""
    behind = 0
    for source in progress["sources"]:
        latest, done = _offsets(source["latestOffset"]), _offsets(source["endOffset"])
        behind += sum(max(end - done.get(key, 0), 0) for key, end in latest.items())
    return behind


def _offsets(shown: Any) -> Offsets:  # noqa: ANN401 - Spark gives a string of JSON, or its tree
    tree = json.loads(shown) if isinstance(shown, str) else shown
    return offsets_from_json(tree or {})
