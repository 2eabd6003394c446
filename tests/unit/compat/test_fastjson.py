import pytest

from pyritemq.compat.fastjson import (
    DEPTH_MAX,
    FastjsonError,
    ObjectKey,
    dumps,
    dumps_standard,
    loads,
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{0:"10.0.0.1:10911",1:"b"}', {0: "10.0.0.1:10911", 1: "b"}),
        ('{"0":"quoted"}', {"0": "quoted"}),
        ("{'a':'it\\'s'}", {"a": "it's"}),
        ("{a:1,b_2:true,c:null,d:undefined}", {"a": 1, "b_2": True, "c": None, "d": None}),
        ("[1,,2,]", [1, 2]),
        ("{a:1,}", {"a": 1}),
        ("/* x */ {a:1 // y\n}", {"a": 1}),
        ("{a:12L,b:-1.5e2,c:.5,d:1.}", {"a": 12, "b": -150.0, "c": 0.5, "d": 1.0}),
        ("{a:'\\u00e9\\ud83d\\ude00\\x41\\n'}", {"a": "é😀A\n"}),
        ("{-1:{}, 9223372036854775807:[]}", {-1: {}, 9223372036854775807: []}),
    ],
)
def test_spellings_of_fastjson_are_read(text, expected):
    assert loads(text) == expected
    assert loads(text.encode()) == expected


def test_object_keys_are_hashable_mappings():
    table = loads(b'{{"brokerName":"a","queueId":0,"topic":"T"}:{"offset":5}}')
    key = ObjectKey({"topic": "T", "queueId": 0, "brokerName": "a"})
    assert table[key] == {"offset": 5}
    assert next(iter(table))["topic"] == "T"


def test_lone_surrogate_becomes_a_question_mark_as_in_java():
    assert loads(b'"a\\ud800b"') == "a?b"


def test_invalid_utf8_is_replaced_as_in_java():
    assert loads(b'{"a":"\xff"}') == {"a": "\ufffd"}


@pytest.mark.parametrize(
    "text",
    ["", "{", "[1", '{"a"}', '{"a":}', "nonsense", '"open', '"\\u12"', '"\\', "{} {}", "/* open"],
)
def test_text_that_is_not_json_is_one_clean_error(text):
    with pytest.raises(FastjsonError):
        loads(text)


def test_deep_nesting_is_refused_without_exhausting_the_stack():
    with pytest.raises(FastjsonError, match="too deeply"):
        loads("[" * 100_000)
    assert loads("[" * (DEPTH_MAX - 1) + "'x'" + "]" * (DEPTH_MAX - 1))


def test_endless_number_is_refused():
    with pytest.raises(FastjsonError):
        loads("{a:" + "1" * 100_000 + "}")


def test_default_spelling_is_the_one_of_fastjson():
    value = {"b": {0: "x", 10: None}, "a": None, "c": [], "d": {}, "e": {ObjectKey({"t": 1}): 2}}
    assert dumps(value) == b'{"b":{0:"x"},"c":[],"d":{},"e":{{"t":1}:2}}'


def test_standard_spelling_quotes_integer_keys():
    assert dumps_standard({"b": {0: "x"}}) == b'{"b":{"0":"x"}}'
