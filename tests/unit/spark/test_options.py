"""Options mistyped or contradictory: one clear sentence each."""

import pytest

from pyritemq.spark.errors import OptionError
from pyritemq.spark.options import EARLIEST, LATEST, parse_source_options

GOOD = {"path": "/store", "subscribe": "A, B"}

WRONG = [
    ({"path": "/s"}, "one of the options 'subscribe'"),
    ({"subscribe": "A"}, "one of the options 'path'"),
    ({**GOOD, "namesrv": "a:1"}, "'path' and 'namesrv' exclude each other"),
    ({**GOOD, "subscribePattern": "A"}, "'subscribe' and 'subscribePattern' exclude"),
    ({**GOOD, "startingOfsets": "earliest"}, "did you mean 'startingOffsets'"),
    ({**GOOD, "minPartitions": "many"}, "'minPartitions' must be a whole number, not 'many'"),
    ({**GOOD, "minPartitions": "0"}, "'minPartitions' must be at least 1"),
    ({**GOOD, "failOnDataLoss": "yes"}, "'failOnDataLoss' must be true or false"),
    ({**GOOD, "columns": "value, vaule"}, "'columns' names 'vaule'"),
    ({**GOOD, "columns": "value, value"}, "names 'value' twice"),
    ({**GOOD, "startingOffsets": "first"}, "must be earliest, latest or JSON, not 'first'"),
    ({**GOOD, "startingOffsets": "{"}, "is no JSON"),
    ({**GOOD, "startingOffsets": '{"A": 3}'}, "must give 'A' an object of queues"),
    ({**GOOD, "startingOffsets": '{"A": {"x": 3}}'}, "must name queues as 3 or broker:3"),
    ({**GOOD, "startingOffsets": '{"A": {"0": -3}}'}, "A/0 must be an offset"),
    ({**GOOD, "startingOffsets": '{"A": {"0": true}}'}, "A/0 must be an offset"),
    ({**GOOD, "startingOffsets": "earliest", "startingTimestamp": "1"}, "exclude each other"),
    ({**GOOD, "startingOffsets": "latest"}, "cannot be latest in a batch query"),
    ({**GOOD, "endingOffsets": "earliest"}, "cannot be earliest in a batch query"),
    ({**GOOD, "endingTimestamp": "-5"}, "at least 0"),
    ({**GOOD, "maxOffsetsPerTrigger": "5"}, "for streaming queries only"),
    ({**GOOD, "groupId": "g"}, "for streaming queries only"),
    ({"path": "/s", "assign": '{"A": 0}'}, "must list queue ids of 'A'"),
    ({"path": "/s", "assign": "[1]"}, "must look like"),
    ({"path": "/s", "subscribePattern": "("}, "is no regular expression"),
    ({"path": "/s", "subscribe": "A,,B"}, "has an empty topic name"),
    ({"path": " ", "subscribe": "A"}, "'path' is empty"),
    ({"namesrv": "localhost", "subscribe": "A"}, "must be host:port"),
    ({"namesrv": "a:1", "subscribe": "A", "brokerName": "b"}, "brokers tell theirs"),
]


@pytest.mark.parametrize(("given", "sentence"), WRONG, ids=lambda item: str(item)[:40])
def test_a_mistake_gets_one_clear_sentence(given, sentence):
    with pytest.raises(OptionError) as caught:
        parse_source_options(given, streaming=False)
    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)


def test_names_are_read_in_any_case_and_defaults_are_kafkas():
    options = parse_source_options({"PATH": "/s", "subscribe": "A"}, streaming=False)
    assert options.path == "/s"
    assert options.starting.everywhere == EARLIEST
    assert options.ending.everywhere == LATEST
    assert options.fail_on_data_loss


def test_a_stream_starts_at_the_end_and_has_no_ending():
    assert parse_source_options(GOOD, streaming=True).starting.everywhere == LATEST
    with pytest.raises(OptionError, match="'endingOffsets' is for batch queries only"):
        parse_source_options({**GOOD, "endingOffsets": "latest"}, streaming=True)


def test_offsets_may_name_the_broker():
    given = {**GOOD, "startingOffsets": '{"A": {"0": -2, "broker-a:1": 7}}'}
    options = parse_source_options(given, streaming=False)
    assert options.starting.by_queue == {"A": {(None, 0): -2, ("broker-a", 1): 7}}


def test_less_at_least_than_at_most():
    given = {**GOOD, "minOffsetsPerTrigger": "9", "maxOffsetsPerTrigger": "8"}
    with pytest.raises(OptionError, match="is larger than"):
        parse_source_options(given, streaming=True)
