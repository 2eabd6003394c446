"""Which queues are read, and from where to where."""

import pytest

from pyritemq.spark.errors import DataLossError, OptionError
from pyritemq.spark.options import parse_source_options
from pyritemq.spark.queues import QueueKey, QueueRange, offsets_from_json, offsets_to_json
from pyritemq.spark.selection import make_ranges, resolve, select_queues

A0, A1, B0 = QueueKey("A", "x", 0), QueueKey("A", "x", 1), QueueKey("B", "x", 0)
A0Y = QueueKey("A", "y", 0)
SYSTEM = QueueKey("RMQ_SYS_TRACE_TOPIC", "x", 0)


class Catalogue:
    def __init__(self, *keys, bounds=(10, 20)):
        self.keys = list(keys)
        self.each = bounds

    def queues(self, topics):
        return [key for key in self.keys if topics is None or key.topic in set(topics)]

    def bounds(self, keys):
        return dict.fromkeys(keys, self.each)

    def offset_by_time(self, key, timestamp):
        return timestamp // 1000


def options(**given):
    if not {"subscribe", "assign", "subscribePattern"} & given.keys():
        given["subscribePattern"] = ".*"
    return parse_source_options({"path": "/s", **given}, streaming=False)


def test_a_pattern_matches_whole_names_and_leaves_system_topics_out():
    catalogue = Catalogue(A0, B0, SYSTEM, QueueKey("AB", "x", 0))
    assert select_queues(options(subscribePattern="A|B"), catalogue) == [A0, B0]
    assert SYSTEM not in select_queues(options(), catalogue)
    assert SYSTEM in select_queues(options(includeSystemTopics="true"), catalogue)


def test_a_topic_or_queue_that_does_not_exist_is_named():
    with pytest.raises(OptionError, match="topic 'C' does not exist"):
        select_queues(options(subscribe="A,C"), Catalogue(A0))
    with pytest.raises(OptionError, match="topic 'A' has no queue 7"):
        select_queues(options(assign='{"A": [0, 7]}'), Catalogue(A0))


def test_assign_takes_a_queue_of_every_broker_or_of_the_named_one():
    catalogue = Catalogue(A0, A0Y, A1)
    assert select_queues(options(assign='{"A": [0]}'), catalogue) == [A0, A0Y]
    assert select_queues(options(assign='{"A": ["y:0"]}'), catalogue) == [A0Y]


def test_offsets_by_queue_must_cover_all_and_name_no_other():
    catalogue = Catalogue(A0, A1)
    chosen = options(startingOffsets='{"A": {"0": 12, "1": -2}}').starting
    assert resolve(chosen, [A0, A1], catalogue, option="starting") == {A0: 12, A1: 10}
    with pytest.raises(OptionError, match=r"lacks queue A/x/1"):
        resolve(
            options(startingOffsets='{"A": {"0": 1}}').starting,
            [A0, A1],
            catalogue,
            option="starting",
        )
    with pytest.raises(OptionError, match="is on several brokers"):
        resolve(
            options(startingOffsets='{"A": {"0": 1}}').starting,
            [A0, A0Y],
            catalogue,
            option="starting",
        )


def test_times_become_offsets():
    chosen = options(startingTimestamp="15000").starting
    assert resolve(chosen, [A0], Catalogue(A0), option="starting") == {A0: 15}


@pytest.mark.parametrize(
    ("start", "end", "kept", "sentence"),
    [
        (5, 15, (10, 15), "messages 5 to 9 of A/x/0 are gone"),
        (12, 25, (12, 20), "it ends at 20"),
        (30, 40, (10, 20), "it ends at 20"),
    ],
)
def test_what_is_not_there_fails_or_is_left_out(start, end, kept, sentence):
    bounds = {A0: (10, 20)}
    with pytest.raises(DataLossError, match=sentence):
        make_ranges({A0: start}, {A0: end}, bounds, fail_on_data_loss=True)
    ranges = make_ranges({A0: start}, {A0: end}, bounds, fail_on_data_loss=False)
    assert ranges == [QueueRange(A0, *kept)]


def test_offsets_survive_the_checkpoint():
    offsets = {A0: 3, A0Y: 4, B0: 0}
    tree = offsets_to_json(offsets)
    assert tree == {"A": {"x": {"0": 3}, "y": {"0": 4}}, "B": {"x": {"0": 0}}}
    assert offsets_from_json(tree) == offsets
