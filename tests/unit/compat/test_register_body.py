"""Bodies of REGISTER_BROKER; those named JAVA_… were written by RegisterBrokerBody of 5.5.0."""

import struct
import zlib

import pytest

from pyritemq.compat.register_body import (
    DataVersion,
    RegisterBodyError,
    RegisterBrokerBody,
    TopicConfig,
)
from pyritemq.compat.versions import V5_0_0, version_ordinal

JAVA_PLAIN = (
    b'{"filterServerList":["f1"],"topicConfigSerializeWrapper":{"dataVersion":{"counter":7,'
    b'"stateVersion":3,"timestamp":1700000000000},"mappingDataVersion":{"counter":0,'
    b'"stateVersion":0,"timestamp":1},"topicConfigTable":{"TopicB":{"attributes":{"other":"v",'
    b'"message.type":"FIFO"},"order":true,"perm":6,"readQueueNums":1,"topicFilterType":'
    b'"SINGLE_TAG","topicName":"TopicB","topicSysFlag":1,"writeQueueNums":1},"TopicA":'
    b'{"attributes":{},"order":false,"perm":6,"readQueueNums":8,"topicFilterType":"SINGLE_TAG",'
    b'"topicName":"TopicA","topicSysFlag":0,"writeQueueNums":4}},"topicQueueMappingDetailMap":'
    b'{"T":{"bname":"broker-a","currIdMap":{},"dirty":false,"epoch":12345,"hostedQueues":{},'
    b'"scope":"__global__","topic":"T","totalQueues":4}},"topicQueueMappingInfoMap":{"T":'
    b'{"bname":"broker-a","currIdMap":{0:1,1:0},"dirty":false,"epoch":12345,"scope":"__global__",'
    b'"topic":"T","totalQueues":4}}}}'
)
JAVA_COMPRESSED = bytes.fromhex(
    "78da5d8f4f6bc3300cc5bd1df62176323a7b2359b3b678a70ed612d81fcac22e6518c755dbb0240eb6b35142befb"
    "e45c0693108827de8f27c6d8720063fb36a003b910e0830ef881ce57b605391310aa06496c3a90e922f9ab91317649"
    "f350d8ae328f3ca59ef3f7fc75f3fca48ad5860f60c32952e11b0410c4eb23de86738724adf3f51b44c4f5645ff1"
    "25cffed9e3f56a0787143e69bba0f919a06c7513fda5b35fe86e34914def5cbe7fd1147048642a52998c02f6950b"
    "6790075d7b14809d35277ae06e96ddd38fc64e21943ad6b6d4b5528409310789c5b4075d6f7becd183ccc65f79d4"
    "5312"
)
MAPPING = {
    "bname": "broker-a",
    "currIdMap": {0: 1, 1: 0},
    "dirty": False,
    "epoch": 12345,
    "scope": "__global__",
    "topic": "T",
    "totalQueues": 4,
}
TOPIC_A = TopicConfig("TopicA", 8, 4, 6)
TOPIC_B = TopicConfig(
    "TopicB", 1, 1, 6, "SINGLE_TAG", 1, True, {"other": "v", "message.type": "FIFO"}
)
DECODED = RegisterBrokerBody(
    topics={"TopicB": TOPIC_B, "TopicA": TOPIC_A},
    data_version=DataVersion(timestamp=1700000000000, counter=7, state_version=3),
    filter_servers=["f1"],
    queue_mappings={"T": MAPPING},
    mapping_data_version=DataVersion(timestamp=1),
)


def test_plain_body_of_a_java_broker_is_read():
    assert RegisterBrokerBody.decode(JAVA_PLAIN, compressed=False) == DECODED


def test_compressed_body_of_a_java_broker_is_read_without_what_its_lines_cannot_say():
    decoded = RegisterBrokerBody.decode(JAVA_COMPRESSED, compressed=True)
    assert decoded.topics["TopicA"] == TOPIC_A
    assert decoded.topics["TopicB"].attributes == TOPIC_B.attributes
    assert decoded.topics["TopicB"].topic_sys_flag == 0
    assert decoded.data_version == DECODED.data_version
    assert decoded.filter_servers == ["f1"]
    assert decoded.queue_mappings == {"T": MAPPING}


def test_our_plain_body_differs_from_java_only_in_quoted_keys_and_mapping_details():
    ours = DECODED.encode(compressed=False)
    details = b'"topicQueueMappingDetailMap":{"T":{"bname":"broker-a","currIdMap":{},"dirty":false,'
    details += b'"epoch":12345,"hostedQueues":{},"scope":"__global__","topic":"T","totalQueues":4}}'
    java = JAVA_PLAIN.replace(details, b'"topicQueueMappingDetailMap":{}')
    assert ours == java.replace(b"{0:1,1:0}", b'{"0":1,"1":0}')


def test_our_compressed_body_inflates_to_the_bytes_of_java():
    body = RegisterBrokerBody.decode(JAVA_COMPRESSED, compressed=True)
    assert zlib.decompress(body.encode(compressed=True)) == zlib.decompress(JAVA_COMPRESSED)


def test_compressed_body_of_a_4x_broker_ends_before_the_mappings():
    plain = zlib.decompress(DECODED.encode(compressed=True))
    cut = plain[: plain.index(b'["f1"]') + len(b'["f1"]')]
    version = version_ordinal("V4_9_8")
    decoded = RegisterBrokerBody.decode(zlib.compress(cut), compressed=True, version=version)
    assert decoded.queue_mappings == {}
    with pytest.raises(RegisterBodyError, match="ends early"):
        RegisterBrokerBody.decode(zlib.compress(cut), compressed=True, version=V5_0_0)


def test_body_of_brokers_before_3_0_11_is_the_topic_wrapper_alone():
    body = b'{"dataVersion":{"counter":2,"timestamp":5},"topicConfigTable":{"T":{"topicName":"T"}}}'
    decoded = RegisterBrokerBody.decode_topics_only(body)
    assert decoded.topics == {"T": TopicConfig("T")}
    assert decoded.data_version == DataVersion(timestamp=5, counter=2)
    assert decoded.filter_servers is None


def test_attribute_with_a_blank_is_dropped_from_a_line_as_in_java():
    assert TopicConfig.from_line('T 8 8 6 SINGLE_TAG {"a":"b c"}').attributes == {}


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"garbage",
        b'{"topicConfigSerializeWrapper":[]}',
        b'{"topicConfigSerializeWrapper":{"topicConfigTable":{"T":1}}}',
        b'{"topicConfigSerializeWrapper":{"topicConfigTable":{"T":{"topicName":1}}}}',
        b'{"topicConfigSerializeWrapper":{"topicConfigTable":{"T":{"topicName":"T","perm":"x"}}}}',
        b'{"topicConfigSerializeWrapper":{"dataVersion":{"counter":1e30}}}',
        b'{"topicConfigSerializeWrapper":{"topicQueueMappingInfoMap":{"T":{"topic":"T"}}}}',
        b'{"filterServerList":"f"}',
    ],
)
def test_bad_plain_body_is_one_clean_error(body):
    with pytest.raises(RegisterBodyError):
        RegisterBrokerBody.decode(body, compressed=False)


@pytest.mark.parametrize(
    "inflated",
    [
        b"",
        b"\x00",
        struct.pack(">i", -1),
        struct.pack(">i", 1 << 30) + b"{}",
        struct.pack(">i", 2) + b"{}" + struct.pack(">i", 1 << 30),
        struct.pack(">i", 2) + b"{}" + struct.pack(">ii", 1, 3) + b"T 8",
        struct.pack(">i", 2) + b"{}" + struct.pack(">ii", 1, 10) + b"T 8 x 6 S " + b"\0" * 20,
    ],
)
def test_bad_compressed_body_is_one_clean_error(inflated):
    with pytest.raises(RegisterBodyError):
        RegisterBrokerBody.decode(zlib.compress(inflated), compressed=True)


def test_body_that_is_not_compressed_is_refused():
    with pytest.raises(RegisterBodyError, match="zlib"):
        RegisterBrokerBody.decode(JAVA_PLAIN, compressed=True)


def test_body_that_inflates_without_end_is_refused(monkeypatch):
    monkeypatch.setattr("pyritemq.compat.register_body.INFLATED_SIZE_MAX", 1000)
    with pytest.raises(RegisterBodyError, match="inflates past"):
        RegisterBrokerBody.decode(zlib.compress(b"\0" * 2000), compressed=True)


def test_compressed_body_cut_short_is_refused():
    with pytest.raises(RegisterBodyError):
        RegisterBrokerBody.decode(JAVA_COMPRESSED[:-60], compressed=True)
