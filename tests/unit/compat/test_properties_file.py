import pytest

from pyritemq.compat.properties_file import (
    PropertiesError,
    format_properties,
    parse_properties,
    print_properties,
)


def test_text_reads_as_java_util_properties_reads_it():
    """The expectation was printed by java.util.Properties of OpenJDK 17."""
    text = (
        "# comment\n! other\n\n  a = b \nc:d\ne f g\nh\\ i=j\\\n   k\\\\\n"
        "l=\\u00e9\\t\\q\nm\n=n\no\\=p=q\nlast=x\\"
    )
    assert parse_properties(text) == {
        "a": "b ",
        "c": "d",
        "e": "f g",
        "h i": "jk\\",
        "l": "é\tq",
        "m": "",
        "": "n",
        "o=p": "q",
        "last": "x",
    }


def test_broker_conf_of_the_distribution_is_read():
    text = b"""
# some licence
brokerClusterName = DefaultCluster
brokerName = broker-a
brokerId = 0
deleteWhen = 04\r
fileReservedTime = 48
flushDiskType=ASYNC_FLUSH
"""
    assert parse_properties(text) == {
        "brokerClusterName": "DefaultCluster",
        "brokerName": "broker-a",
        "brokerId": "0",
        "deleteWhen": "04",
        "fileReservedTime": "48",
        "flushDiskType": "ASYNC_FLUSH",
    }


def test_last_of_equal_keys_wins():
    assert parse_properties("a=1\na=2") == {"a": "2"}


def test_bytes_are_latin_1_as_in_java():
    assert parse_properties("a=é".encode("latin-1")) == {"a": "é"}


@pytest.mark.parametrize("text", ["a=\\u12", "a=\\uXYZW", "\\u=1"])
def test_malformed_unicode_escape_is_refused(text):
    with pytest.raises(PropertiesError):
        parse_properties(text)


def test_formatted_text_is_escaped_and_printed_text_is_not():
    properties = {"b": "C:\\x", "a b": " é=1"}
    assert format_properties(properties) == "b=C\\:\\\\x\na\\ b=\\ \\u00E9\\=1\n"
    assert print_properties(properties) == "a b= é=1\nb=C:\\x\n"
