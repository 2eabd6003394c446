"""Messages by key and by id: the official producer and mqadmin ask for what was sent."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from integration.java.mqadmin import Mqadmin
from pyritemq.conformance.clients import java_flags
from pyritemq.conformance.jars import class_path
from pyritemq.conformance.processes import Child
from pyritemq.conformance.servers.cluster import CLUSTERS

if TYPE_CHECKING:
    from collections.abc import Iterator

QUERIES = Path(__file__).with_name("Queries.java")
SECONDS = 90.0
INDEX_LAG_MS = {"rocketmq": "3000"}
"""The real broker indexes a moment after it acknowledges; ours is asked at once."""


@pytest.fixture(scope="module")
def kind() -> str:
    return os.environ.get("PYRITEMQ_SERVER_UNDER_TEST", "pyritemq")


@pytest.fixture(scope="module")
def namesrv(tmp_path_factory: pytest.TempPathFactory, kind: str) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("queries")
    with CLUSTERS[kind](folder, properties={"mappedFileSizeCommitLog": 64 << 20}) as cluster:
        yield cluster.namesrv


@pytest.fixture(scope="module")
def said(tmp_path_factory: pytest.TempPathFactory, kind: str, namesrv: str) -> str:
    """What the official producer printed about its messages."""
    folder = tmp_path_factory.mktemp("producer")
    arguments = [namesrv] + ([INDEX_LAG_MS[kind]] if kind in INDEX_LAG_MS else [])
    command = ["java", *java_flags(str(folder)), "-cp", class_path(), str(QUERIES), *arguments]
    with Child("queries", command, folder=folder, env={}) as producer:
        producer.wait_for_line("done", timeout=SECONDS)
        return producer.output()


def answer(said: str, how: str) -> str:
    found = re.search(rf"^{re.escape(how)}: (.*)$", said, re.MULTILINE)
    assert found, said
    return found[1]


def test_official_producer_finds_what_it_sent_just_now(said: str) -> None:
    assert answer(said, "by offset id") == "[body 19 [order19 客户 Tag1]]"
    assert answer(said, "by unique id") == "[body 7 [order7 客户 Tag1]]"
    assert answer(said, "by key") == "[body 7 [order7 客户 Tag1]]"
    shared = answer(said, "by shared key")
    assert [f"body {n} [order{n} 客户 Tag{n % 2}]" in shared for n in range(20)] == [True] * 20
    three = answer(said, "by shared key, three")
    assert re.findall(r"body (\d+)", three) == ["17", "18", "19"]


def test_official_producer_is_told_that_there_is_no_such_message(said: str) -> None:
    no_message = "code 208"  # ResponseCode.NO_MESSAGE
    assert answer(said, "by unknown key") == no_message
    assert answer(said, "by key, long ago") == no_message


def test_mqadmin_finds_messages_by_key_and_by_either_id(
    said: str, namesrv: str, tmp_path: Path
) -> None:
    found = re.search(r"^ids (\w+) (\w+)$", said, re.MULTILINE)
    assert found
    unique_id, offset_id = found.groups()
    with Mqadmin(tmp_path) as mqadmin:
        by_key = mqadmin("queryMsgByKey", "-n", namesrv, "-t", "Queried", "-k", "order19")
        by_id = mqadmin("queryMsgById", "-n", namesrv, "-t", "Queried", "-i", offset_id)
        by_unique = mqadmin("queryMsgByUniqueKey", "-n", namesrv, "-t", "Queried", "-i", unique_id)
    assert re.search(rf"^{unique_id} +\d+ +\d+", by_key, re.MULTILINE), by_key
    for text in (by_id, by_unique):
        assert re.search(r"^Topic: +Queried", text, re.MULTILINE), text
        assert re.search(r"^Tags: +\[Tag1\]", text, re.MULTILINE)
        assert re.search(r"^Keys: +\[order19 ", text, re.MULTILINE)
        assert "Store Host" in text
