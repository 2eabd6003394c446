"""Frames recorded from the real 4.9.8 and 5.5.0 clients, broker and name server (tests/golden)."""

import json
from pathlib import Path
from typing import Any

import pytest

from pyritemq.protocol.codes import RequestCode, ResponseCode
from pyritemq.protocol.command import Command, decode_frame
from pyritemq.protocol.fields import Header
from pyritemq.protocol.frames import FrameDecoder
from pyritemq.protocol.headers import client, kv, offset, pull, registration, route, send, topic
from pyritemq.protocol.headers.pull import PullMessageHeader, decode_pull
from pyritemq.protocol.headers.send import SendMessageHeader, decode_send
from pyritemq.protocol.record import decode_batch, decode_properties, decode_records
from pyritemq.protocol.send_reply import encode_send_reply

GOLDEN = Path(__file__).parents[2] / "golden"

HEADER_OF: dict[RequestCode, type[Header]] = {
    RequestCode.PULL_MESSAGE: PullMessageHeader,
    RequestCode.LITE_PULL_MESSAGE: PullMessageHeader,
    RequestCode.QUERY_CONSUMER_OFFSET: offset.QueryConsumerOffsetHeader,
    RequestCode.UPDATE_CONSUMER_OFFSET: offset.UpdateConsumerOffsetHeader,
    RequestCode.GET_MAX_OFFSET: offset.GetMaxOffsetHeader,
    RequestCode.GET_MIN_OFFSET: offset.GetMinOffsetHeader,
    RequestCode.SEARCH_OFFSET_BY_TIMESTAMP: offset.SearchOffsetHeader,
    RequestCode.HEART_BEAT: client.HeartbeatHeader,
    RequestCode.UNREGISTER_CLIENT: client.UnregisterClientHeader,
    RequestCode.GET_CONSUMER_LIST_BY_GROUP: client.GetConsumerListByGroupHeader,
    RequestCode.NOTIFY_CONSUMER_IDS_CHANGED: client.NotifyConsumerIdsChangedHeader,
    RequestCode.UPDATE_AND_CREATE_TOPIC: topic.CreateTopicHeader,
    RequestCode.DELETE_TOPIC_IN_BROKER: topic.DeleteTopicHeader,
    RequestCode.GET_TOPIC_CONFIG: topic.GetTopicConfigHeader,
    RequestCode.GET_ROUTEINFO_BY_TOPIC: route.GetRouteInfoHeader,
    RequestCode.DELETE_TOPIC_IN_NAMESRV: route.DeleteTopicFromNamesrvHeader,
    RequestCode.PUT_KV_CONFIG: kv.PutKVConfigHeader,
    RequestCode.GET_KV_CONFIG: kv.GetKVConfigHeader,
    RequestCode.DELETE_KV_CONFIG: kv.DeleteKVConfigHeader,
    RequestCode.REGISTER_BROKER: registration.RegisterBrokerHeader,
    RequestCode.UNREGISTER_BROKER: registration.UnRegisterBrokerHeader,
    RequestCode.QUERY_DATA_VERSION: registration.QueryDataVersionHeader,
    RequestCode.WIPE_WRITE_PERM_OF_BROKER: registration.WipeWritePermOfBrokerHeader,
    RequestCode.ADD_WRITE_PERM_OF_BROKER: registration.AddWritePermOfBrokerHeader,
}
REPLY_HEADER_OF: dict[RequestCode, type[Header]] = {
    RequestCode.PULL_MESSAGE: pull.PullMessageReplyHeader,
    RequestCode.LITE_PULL_MESSAGE: pull.PullMessageReplyHeader,
    RequestCode.QUERY_CONSUMER_OFFSET: offset.QueryConsumerOffsetReplyHeader,
    RequestCode.GET_MAX_OFFSET: offset.GetMaxOffsetReplyHeader,
    RequestCode.GET_MIN_OFFSET: offset.GetMinOffsetReplyHeader,
    RequestCode.SEND_MESSAGE_V2: send.SendMessageReplyHeader,
    RequestCode.SEND_BATCH_MESSAGE: send.SendMessageReplyHeader,
    RequestCode.GET_KV_CONFIG: kv.GetKVConfigReplyHeader,
    RequestCode.REGISTER_BROKER: registration.RegisterBrokerReplyHeader,
    RequestCode.QUERY_DATA_VERSION: registration.QueryDataVersionReplyHeader,
    RequestCode.WIPE_WRITE_PERM_OF_BROKER: registration.WipeWritePermOfBrokerReplyHeader,
    RequestCode.ADD_WRITE_PERM_OF_BROKER: registration.AddWritePermOfBrokerReplyHeader,
}
# Fields that travel beside the declared ones: the client's namespace hint, the broker's region.
BESIDE_THE_HEADER = {"ReqT", "MSG_REGION", "TRACE_ON"}
SENDS = (RequestCode.SEND_MESSAGE_V2, RequestCode.SEND_BATCH_MESSAGE)
PULLS = (RequestCode.PULL_MESSAGE, RequestCode.LITE_PULL_MESSAGE)


def load() -> list[dict[str, Any]]:
    return [
        vector for path in sorted(GOLDEN.glob("*.json")) for vector in json.loads(path.read_text())
    ]


VECTORS = load()


def pick(direction: str, *codes: RequestCode, **members: object) -> list[Any]:
    """The vectors of a direction, of these request codes if any, with these members."""
    return [
        pytest.param(vector, id=f"{vector['source']} {vector['name']}")
        for vector in VECTORS
        if vector["direction"] == direction
        and (not codes or vector["request_code"] in codes)
        and members.items() <= vector.items()
    ]


def frame_of(vector: dict[str, Any]) -> bytes:
    return bytes.fromhex(vector["frame_hex"])


def command_of(vector: dict[str, Any]) -> Command:
    return decode_frame(frame_of(vector)[4:])


def rebuilt(command: Command, *, has_ext_member: bool) -> Command:
    """The same command made from its meaning, so that nothing received can be echoed."""
    ext = dict(command.ext_fields)
    return Command(
        command.code,
        language=command.language,
        version=command.version,
        opaque=command.opaque,
        flag=command.flag,
        remark=command.remark,
        ext_fields=ext if has_ext_member else None,
        body=bytes(command.body),
        serialize_type=command.serialize_type,
    )


def test_there_are_vectors_of_both_clients_and_of_both_servers() -> None:
    sources = {vector["source"] for vector in VECTORS}
    assert {"client 4.9.8", "client 5.5.0", "broker 5.5.0", "namesrv 5.5.0"} <= sources
    assert {vector["serialisation"] for vector in VECTORS} == {"json", "rocketmq"}


@pytest.mark.parametrize("vector", pick("request") + pick("reply"))
def test_frame_decodes_and_encodes_back_byte_for_byte(vector: dict[str, Any]) -> None:
    frame = frame_of(vector)
    command = command_of(vector)
    assert command.code == vector["code"]
    assert command.is_response == (vector["direction"] == "reply")
    assert command.encode() == frame
    has_ext_member = b'"extFields"' in frame or command.serialize_type == 1
    assert rebuilt(command, has_ext_member=has_ext_member).encode() == frame


@pytest.mark.parametrize("vector", pick("request") + pick("reply"))
def test_frame_decodes_alike_whole_byte_by_byte_and_with_bytes_behind_it(
    vector: dict[str, Any],
) -> None:
    frame = frame_of(vector)
    expected = command_of(vector)
    assert FrameDecoder().feed(frame) == [expected]

    byte_by_byte = FrameDecoder()
    assert [c for byte in frame[:-1] for c in byte_by_byte.feed(bytes((byte,)))] == []
    assert byte_by_byte.pending_bytes == len(frame) - 1
    assert byte_by_byte.feed(frame[-1:]) == [expected]
    assert byte_by_byte.pending_bytes == 0

    trailed = FrameDecoder()
    assert trailed.feed(frame + frame[:7]) == [expected]
    assert trailed.pending_bytes == 7
    assert trailed.feed(frame[7:]) == [expected]


@pytest.mark.parametrize("vector", pick("request"))
def test_request_code_has_the_name_that_java_gives_it(vector: dict[str, Any]) -> None:
    assert RequestCode(vector["request_code"]).name == vector["name"].split(" ")[0]


@pytest.mark.parametrize("vector", pick("request", *HEADER_OF))
def test_declared_header_loses_no_field_of_a_real_request(vector: dict[str, Any]) -> None:
    ext = command_of(vector).ext_fields
    encoded = HEADER_OF[RequestCode(vector["request_code"])].decode(ext).encode()
    for name, text in ext.items():
        assert name in BESIDE_THE_HEADER or encoded[name] == text


@pytest.mark.parametrize("vector", pick("reply", *REPLY_HEADER_OF, code=0))
def test_declared_header_loses_no_field_of_a_real_reply(vector: dict[str, Any]) -> None:
    command = command_of(vector)
    encoded = REPLY_HEADER_OF[RequestCode(vector["request_code"])].decode(command.ext_fields)
    for name, text in command.ext_fields.items():
        assert name in BESIDE_THE_HEADER or encoded.encode()[name] == text


@pytest.mark.parametrize("vector", pick("request", *SENDS))
def test_quick_reading_of_a_real_send_gives_what_the_declaration_gives(
    vector: dict[str, Any],
) -> None:
    fields = decode_send(command_of(vector))
    declared = SendMessageHeader.decode_v2(command_of(vector).ext_fields)
    assert declared.encode_v2() == command_of(vector).ext_fields
    for name in fields._fields:
        if name != "properties_utf8":
            assert getattr(fields, name) == getattr(declared, name)
    assert fields.properties == declared.properties
    assert "WAIT" in decode_properties(fields.properties_utf8) or fields.batch


@pytest.mark.parametrize("vector", pick("request", *SENDS, *PULLS, serialisation="rocketmq"))
def test_entries_of_a_real_binary_client_take_the_quick_way(vector: dict[str, Any]) -> None:
    command = command_of(vector)
    decode = decode_send if vector["request_code"] in SENDS else decode_pull
    assert decode(command).topic
    assert command.ext_raw is not None, "the generic decoder was asked"


@pytest.mark.parametrize("vector", pick("request", *PULLS))
def test_quick_reading_of_a_real_pull_gives_what_the_declaration_gives(
    vector: dict[str, Any],
) -> None:
    fields = decode_pull(command_of(vector))
    declared = PullMessageHeader.decode(command_of(vector).ext_fields)
    assert fields == tuple(getattr(declared, name) for name in fields._fields)


@pytest.mark.parametrize("vector", pick("request", RequestCode.SEND_BATCH_MESSAGE))
def test_batch_body_of_a_real_client_holds_its_messages(vector: dict[str, Any]) -> None:
    entries = decode_batch(command_of(vector).body)
    assert len(entries) > 1
    assert all(
        entry.body and "UNIQ_KEY" in decode_properties(entry.properties) for entry in entries
    )


@pytest.mark.parametrize("vector", pick("reply", *PULLS))
def test_body_of_a_real_pull_reply_holds_records(vector: dict[str, Any]) -> None:
    command = command_of(vector)
    records = decode_records(command.body)
    assert bool(records) == (command.code == ResponseCode.SUCCESS)
    offsets = [record.queue_offset for record in records]
    assert offsets == sorted(offsets)
    assert all("UNIQ_KEY" in decode_properties(record.properties) for record in records)


@pytest.mark.parametrize("vector", pick("reply", *SENDS))
def test_our_send_reply_is_the_real_brokers_byte_for_byte(vector: dict[str, Any]) -> None:
    theirs = command_of(vector)
    ext = theirs.ext_fields
    request = Command(310, opaque=theirs.opaque, serialize_type=theirs.serialize_type)
    ours = encode_send_reply(
        request,
        theirs.code,
        msg_id=ext["msgId"],
        queue_id=int(ext["queueId"]),
        queue_offset=int(ext["queueOffset"]),
        transaction_id=ext.get("transactionId"),
        region_id=ext["MSG_REGION"],
        trace_on=ext["TRACE_ON"] == "true",
        batch_uniq_id=ext.get("batchUniqId"),
    )
    assert ours == frame_of(vector)
