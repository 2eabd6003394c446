"""Filters of groups: what heartbeats make of them, and the file that Java's broker reads too."""

import json
from pathlib import Path

import pytest

from pyritemq.compat.broker_conf import BrokerConfig
from pyritemq.server.broker.filters.table import ConsumerFilterTable
from pyritemq.server.broker.state.subscriptions import Subscription
from pyritemq.storage.tables import JsonTable

JAVA_FILE = Path(__file__).parent / "java" / "consumerFilter.json"
DAY_MS = 24 * 3600 * 1000


@pytest.fixture
def file(tmp_path):
    return JsonTable(tmp_path / "consumerFilter.json")


@pytest.fixture
def open_table(file, clock):
    def open_(**properties):
        settings = {"expectConsumerNumUseFilter": "64"} | properties
        config, _ = BrokerConfig.from_properties(settings)
        table = ConsumerFilterTable(config, file, now_ms=clock.now_ms)
        table.load()
        return table

    return open_


@pytest.fixture
def table(open_table):
    return open_table()


def sql(text, topic="T", version=1):
    return Subscription(topic=topic, sub_string=text, expression_type="SQL92", sub_version=version)


def tags(topic="T"):
    return Subscription(topic=topic, sub_string="*")


def test_a_heartbeat_registers_its_expressions_and_not_its_tags(table, clock):
    table.register("g", [sql("a > 5"), tags("%RETRY%g")])
    data = table.get("T", "g")
    assert data.compiled.matches({"a": "6"})
    assert (data.born_time, data.is_dead, data.client_version) == (clock.ms, False, 1)
    assert table.get("%RETRY%g", "g") is None
    assert table.get("T", "other") is None


def test_an_expression_that_does_not_compile_is_not_registered(table):
    table.register("g", [sql("a >")])
    assert table.get("T", "g") is None


def test_a_newer_expression_replaces_the_older(table):
    table.register("g", [sql("a > 5", version=1)])
    table.register("g", [sql("a > 7", version=2)])
    assert (table.get("T", "g").expression, table.get("T", "g").client_version) == ("a > 7", 2)


@pytest.mark.parametrize("version", [1, 2])
def test_an_expression_that_is_not_newer_is_ignored(table, version):
    table.register("g", [sql("a > 5", version=2)])
    table.register("g", [sql("a > 7", version=version)])
    assert table.get("T", "g").expression == "a > 5"


def test_a_newer_version_of_the_same_expression_keeps_its_birth(table, clock):
    table.register("g", [sql("a > 5", version=1)])
    born = clock.ms
    clock.advance(10)
    table.register("g", [sql("a > 5", version=2)])
    data = table.get("T", "g")
    assert (data.born_time, data.client_version) == (born, 2)


def test_a_newer_expression_that_does_not_compile_removes_the_older(table):
    table.register("g", [sql("a > 5", version=1)])
    table.register("g", [sql("a >", version=2)])
    assert table.get("T", "g") is None


def test_filters_die_with_the_group_and_with_the_subscription_and_come_back(table, clock):
    table.register("g", [sql("a > 5"), sql("b > 5", topic="U")])
    clock.advance(1)
    table.register("g", [sql("a > 5")])
    assert (table.get("T", "g").is_dead, table.get("U", "g").is_dead) == (False, True)
    table.unregister("g")
    assert table.get("T", "g").is_dead
    table.register("g", [sql("a > 5"), sql("b > 5", topic="U", version=2)])
    assert (table.get("T", "g").is_dead, table.get("U", "g").is_dead) == (False, False)


def test_a_filter_is_forgotten_a_day_after_its_death(table, clock):
    table.register("g", [sql("a > 5")])
    clock.advance(1)
    table.unregister("g")
    clock.ms += DAY_MS - 1
    table.persist()
    assert table.get("T", "g") is not None
    clock.ms += 1
    table.persist()
    assert table.get("T", "g") is None


def test_the_file_is_what_java_writes(table, clock, file):
    java = json.loads(JAVA_FILE.read_text())["filterDataByTopic"]
    in_order = [java["topicA"]["groupFilterData"][group] for group in ("groupB", "groupA")]
    in_order.append(java["topicB"]["groupFilterData"]["groupA"])
    registered = {}
    for item in in_order:
        clock.ms = item["bornTime"]
        group = item["consumerGroup"]
        new = sql(item["expression"], item["topic"], item["clientVersion"])
        registered.setdefault(group, []).append(new)
        table.register(group, registered[group])
    clock.ms = java["topicA"]["groupFilterData"]["groupB"]["deadTime"]
    table.unregister("groupB")
    table.persist()
    assert file.load() == JAVA_FILE.read_bytes()


def test_javas_file_is_read_and_its_consumers_are_taken_for_dead(open_table, clock, file):
    file.save(JAVA_FILE.read_bytes())
    clock.ms = 1_795_100_000_000
    table = open_table()
    data = table.get("topicA", "groupA")
    assert (data.expression, data.client_version) == ("a > 5", 1_795_000_000_001)
    assert data.compiled.matches({"a": "6"})
    assert data.dead_time == clock.ms - 30_000
    java = json.loads(JAVA_FILE.read_text())["filterDataByTopic"]["topicA"]["groupFilterData"]
    assert table.get("topicA", "groupB").dead_time == java["groupB"]["deadTime"]


def test_a_file_of_another_bloom_filter_is_passed_over(open_table, file):
    file.save(JAVA_FILE.read_bytes())
    assert open_table(expectConsumerNumUseFilter="32").get("topicA", "groupA") is None


def test_a_saved_expression_that_does_not_compile_lets_everything_through(open_table, file):
    """As in Java: the entry stays, without a compiled expression."""
    file.save(JAVA_FILE.read_bytes().replace(b"a > 5", b"a >"))
    assert open_table().get("topicA", "groupA").compiled is None


def test_what_is_saved_is_found_again(open_table, clock):
    first = open_table()
    first.register("g", [sql("a > 5")])
    first.persist()
    again = open_table()
    assert again.get("T", "g").expression == "a > 5"
    again.register("g", [sql("a > 5", version=2)])
    assert not again.get("T", "g").is_dead


@pytest.mark.parametrize(
    ("name", "value"),
    [("maxErrorRateOfBloomFilter", "0"), ("expectConsumerNumUseFilter", "0")],
)
def test_a_setting_without_sense_is_named(open_table, name, value):
    with pytest.raises(ValueError, match=name):
        open_table(**{name: value})
