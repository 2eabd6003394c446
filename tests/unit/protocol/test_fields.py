import dataclasses

import pytest

from pyritemq.protocol.command import Command
from pyritemq.protocol.errors import InvalidField, MissingField, ProtocolError
from pyritemq.protocol.fields import Header, Int, Long, header, parse_int, parse_long, wire
from pyritemq.protocol.headers.offset import (
    BoundaryType,
    QueryConsumerOffsetHeader,
    SearchOffsetHeader,
)
from pyritemq.protocol.headers.pull import PullMessageHeader, decode_pull
from pyritemq.protocol.headers.send import SendMessageHeader, decode_send

QUERY = {"consumerGroup": "g", "topic": "t", "queueId": "3"}
SEND_V2 = {
    "a": "group", "b": "topic", "c": "TBW102", "d": "4", "e": "0", "f": "0", "g": "1795003387558",
    "h": "0", "i": "KEYS\x01k\x02",
}  # fmt: skip
PULL = {
    "consumerGroup": "g", "topic": "t", "queueId": "0", "queueOffset": "5", "maxMsgNums": "32",
    "sysFlag": "3", "commitOffset": "4", "suspendTimeoutMillis": "15000", "subVersion": "1",
}  # fmt: skip


@header
class Sample(Header):
    some_name: str
    number: Int = 7
    wide: Long | None = None
    switch: bool | None = None
    odd: int = wire("ODDName", default=0)


def test_wire_names_are_camel_case_unless_declared() -> None:
    assert Sample(some_name="x", odd=3).encode() == {"someName": "x", "number": "7", "ODDName": "3"}


def test_none_is_left_out_and_booleans_are_written_as_java_does() -> None:
    assert Sample(some_name="x", switch=True).encode()["switch"] == "true"
    assert Sample(some_name="x", switch=False).encode()["switch"] == "false"
    assert "switch" not in Sample(some_name="x").encode()


def test_defaults_fill_what_is_absent_and_unknown_fields_are_ignored() -> None:
    assert Sample.decode({"someName": "x", "unknown": "y"}) == Sample(some_name="x")


@pytest.mark.parametrize("name", list(QUERY))
def test_missing_required_field_says_so_in_javas_words(name: str) -> None:
    ext = {key: value for key, value in QUERY.items() if key != name}
    with pytest.raises(MissingField) as caught:
        QueryConsumerOffsetHeader.decode(ext)
    assert caught.value.remark == f"the custom field <{name}> is null"
    assert caught.value.wire_name == name
    assert isinstance(caught.value, ProtocolError)


@pytest.mark.parametrize(
    "text",
    ["x", "1.0", "1_000", " 1", "1 ", "0x10", "--1", "2147483648", "-2147483649", "9" * 5000],
)
def test_text_that_java_would_not_parse_as_an_integer_is_invalid(text: str) -> None:
    with pytest.raises(InvalidField) as caught:
        QueryConsumerOffsetHeader.decode(QUERY | {"queueId": text})
    assert "<queueId>" in caught.value.remark
    assert len(caught.value.remark) < 200


def test_empty_number_counts_as_absent_as_in_a_binary_header() -> None:
    assert Sample.decode({"someName": "", "number": ""}) == Sample(some_name="", number=7)
    with pytest.raises(MissingField):
        QueryConsumerOffsetHeader.decode(QUERY | {"queueId": ""})


@pytest.mark.parametrize(
    ("text", "value"),
    [("+5", 5), ("-5", -5), ("007", 7), ("2147483647", 2**31 - 1), ("-2147483648", -(2**31))],
)
def test_integers_are_parsed_as_java_parses_them(text: str, value: int) -> None:
    assert parse_int(text) == value
    assert parse_long(text) == value


def test_long_takes_64_bits_and_no_more() -> None:
    assert parse_long("9223372036854775807") == 2**63 - 1
    assert parse_long("-9223372036854775808") == -(2**63)
    for text in ("9223372036854775808", "-9223372036854775809"):
        with pytest.raises(ValueError, match=text):
            parse_long(text)


@pytest.mark.parametrize(
    ("text", "value"), [("true", True), ("TRUE", True), ("false", False), ("1", False)]
)
def test_booleans_are_parsed_as_java_parses_them(text: str, value: bool) -> None:
    decoded = QueryConsumerOffsetHeader.decode(QUERY | {"setZeroIfNotFound": text})
    assert decoded.set_zero_if_not_found is value


@pytest.mark.parametrize(
    ("text", "value"),
    [("UPPER", BoundaryType.UPPER), ("upper", BoundaryType.UPPER), ("no", BoundaryType.LOWER)],
)
def test_boundary_is_lower_unless_it_says_upper(text: str, value: BoundaryType) -> None:
    ext = {"topic": "t", "queueId": "0", "timestamp": "1"}
    assert SearchOffsetHeader.decode(ext).boundary_type is BoundaryType.LOWER
    assert SearchOffsetHeader.decode(ext | {"boundaryType": text}).boundary_type is value


def test_boundary_is_written_by_its_java_name() -> None:
    declared = SearchOffsetHeader(
        topic="t", queue_id=0, timestamp=1, boundary_type=BoundaryType.UPPER
    )
    assert declared.encode()["boundaryType"] == "UPPER"


def test_headers_are_immutable_and_compare_by_value() -> None:
    declared = QueryConsumerOffsetHeader.decode(QUERY)
    assert declared == QueryConsumerOffsetHeader(consumer_group="g", topic="t", queue_id=3)
    assert hash(declared) == hash(QueryConsumerOffsetHeader.decode(QUERY))
    with pytest.raises(dataclasses.FrozenInstanceError):
        declared.topic = "other"  # type: ignore[misc]


def test_type_without_wire_form_is_a_mistake_in_the_declaration() -> None:
    with pytest.raises(TypeError, match="no wire form"):

        @header
        class Wrong(Header):
            items: list[str]


def test_pull_header_is_written_in_the_order_of_javas_encoder() -> None:
    everything = PULL | {
        "liteTopic": "l", "subscription": "*", "expressionType": "TAG", "maxMsgBytes": "1",
        "requestSource": "0", "proxyFrowardClientId": "p", "lo": "true", "ns": "n", "nsd": "true",
        "bname": "b", "oway": "false",
    }  # fmt: skip
    assert list(PullMessageHeader.decode(everything).encode()) == [
        "consumerGroup", "topic", "liteTopic", "queueId", "queueOffset", "maxMsgNums", "sysFlag",
        "commitOffset", "suspendTimeoutMillis", "subscription", "subVersion", "expressionType",
        "maxMsgBytes", "requestSource", "proxyFrowardClientId", "lo", "ns", "nsd", "bname", "oway",
    ]  # fmt: skip


def test_v2_letters_and_v1_names_mean_the_same() -> None:
    letters = SEND_V2 | {"j": "2", "k": "true", "l": "16", "m": "true", "n": "broker-a"}
    declared = SendMessageHeader.decode_v2(letters)
    assert declared.encode_v2() == letters
    assert list(declared.encode_v2()) == list("abcdefghijklmn")
    assert SendMessageHeader.decode(declared.encode()) == declared
    assert declared.encode()["maxReconsumeTimes"] == "16"
    assert (declared.batch, declared.broker_name, declared.reconsume_times) == (True, "broker-a", 2)


@pytest.mark.parametrize("serialize_type", [0, 1])
@pytest.mark.parametrize("letter", list("abcdefgh"))
def test_send_without_a_required_letter_is_refused(letter: str, serialize_type: int) -> None:
    ext = {key: value for key, value in SEND_V2.items() if key != letter}
    with pytest.raises(MissingField) as caught:
        decode_send(Command(310, ext_fields=ext, serialize_type=serialize_type))
    assert caught.value.remark == f"the custom field <{letter}> is null"


def test_send_of_the_first_version_is_read_by_its_long_names() -> None:
    fields = decode_send(Command(10, ext_fields=SendMessageHeader.decode_v2(SEND_V2).encode()))
    assert fields == decode_send(Command(310, ext_fields=SEND_V2))
    with pytest.raises(MissingField):
        decode_send(Command(10, ext_fields=SEND_V2))


@pytest.mark.parametrize("name", list(PULL))
def test_pull_without_a_required_field_is_refused(name: str) -> None:
    ext = {key: value for key, value in PULL.items() if key != name}
    with pytest.raises(MissingField) as caught:
        decode_pull(Command(11, ext_fields=ext))
    assert caught.value.wire_name == name
