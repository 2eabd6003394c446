"""Request-reply on the wire: the requester gets the reply, and the replier hears how it went."""

import json

import pytest
import trio

from integration.wire import pull, send_fields
from pyritemq.protocol.codes import RequestCode, ResponseCode
from pyritemq.protocol.command import Command
from pyritemq.protocol.headers.send import SendMessageHeader
from pyritemq.protocol.record import decode_properties, decode_record
from pyritemq.server.broker.processors import reply as reply_processor

REPLY_TOPIC = "DefaultCluster_REPLY_TOPIC"
COMMON = {"MSG_REGION": "DefaultRegion", "TRACE_ON": "true"}


def properties(client_id="requester", **more):
    pairs = {"MSG_TYPE": "reply", "CORRELATION_ID": "c-1", "REPLY_TO_CLIENT": client_id} | more
    return "".join(f"{name}\x01{value}\x02" for name, value in pairs.items() if value is not None)


def reply_fields(client_id="requester", **more):
    return send_fields(REPLY_TOPIC, properties=properties(client_id, **more), group="repliers")


async def requester(server, client_id="requester"):
    wire = await server.connect()
    body = {"clientID": client_id, "producerDataSet": [{"groupName": "requesters"}]}
    await wire.call(RequestCode.HEART_BEAT, {}, json.dumps(body | {"consumerDataSet": []}).encode())
    return wire


async def respond(wire, push, code=ResponseCode.SUCCESS):
    answer = Command(int(code), opaque=push.opaque, flag=1, remark="as told")
    await wire.stream.send_all(answer.encode())


async def stored(server):
    """The records of the reply topic."""
    reader = await server.connect()
    found = await pull(reader, REPLY_TOPIC)
    return [decode_record(found.body)] if found.code == ResponseCode.SUCCESS else []


async def test_a_reply_is_pushed_to_the_requester_and_stored(server):
    asker, replier = await requester(server), await server.connect()
    opaque = await replier.ask(RequestCode.SEND_REPLY_MESSAGE_V2, reply_fields(), b"the answer")
    push = await asker.push()
    assert push.code == RequestCode.PUSH_REPLY_MESSAGE_TO_CLIENT
    assert bytes(push.body) == b"the answer"
    fields = push.ext_fields
    pushed = decode_properties(fields.pop("properties").encode())
    assert int(pushed.pop("PUSH_REPLY_TIME")) == int(fields.pop("storeTimestamp"))
    assert pushed == decode_properties(properties().encode())
    host, port = replier.stream.socket.getsockname()
    assert fields == {
        "producerGroup": "repliers",
        "topic": REPLY_TOPIC,
        "defaultTopic": "TBW102",
        "defaultTopicQueueNums": "4",
        "queueId": "0",
        "sysFlag": "0",
        "bornTimestamp": "1700000000000",
        "flag": "0",
        "reconsumeTimes": "0",
        "unitMode": "false",
        "bornHost": f"{host}:{port}",
        "storeHost": server.broker_address,
    }
    await respond(asker, push)
    answer = await replier.reply(opaque)
    assert (answer.code, answer.remark) == (ResponseCode.SUCCESS, None)
    assert answer.ext_fields.items() >= COMMON.items()
    assert answer.ext_fields["queueOffset"] == "0"
    assert len(answer.ext_fields["msgId"]) == 32
    [record] = await stored(server)
    assert record.body == b"the answer"
    assert record.properties == properties().encode()


async def test_the_long_names_of_the_first_version_are_read_too(server):
    asker, replier = await requester(server), await server.connect()
    fields = SendMessageHeader.decode_v2({k: str(v) for k, v in reply_fields().items()}).encode()
    opaque = await replier.ask(RequestCode.SEND_REPLY_MESSAGE, fields, b"old")
    push = await asker.push()
    assert bytes(push.body) == b"old"
    await respond(asker, push)
    assert (await replier.reply(opaque)).code == ResponseCode.SUCCESS


async def test_without_the_store_a_pushed_reply_has_id_zero(start_server, stop_server):
    server = await start_server(storeReplyMessageEnable="false")
    asker, replier = await requester(server), await server.connect()
    opaque = await replier.ask(RequestCode.SEND_REPLY_MESSAGE_V2, reply_fields(), b"x")
    await respond(asker, await asker.push())
    answer = await replier.reply(opaque)
    assert answer.code == ResponseCode.SUCCESS
    assert answer.ext_fields == COMMON | {"msgId": "0", "queueId": "0", "queueOffset": "0"}
    assert await stored(server) == []
    await stop_server(server)


@pytest.mark.parametrize(
    ("client_id", "remark"),
    [
        ("nobody", "push reply message fail, channel of <nobody> not found."),
        (None, "reply message properties[REPLY_TO_CLIENT] is null"),
    ],
)
async def test_a_reply_that_finds_no_requester_is_stored_and_refused(server, client_id, remark):
    replier = await server.connect()
    answer = await replier.call(
        RequestCode.SEND_REPLY_MESSAGE_V2, reply_fields(client_id), b"too late"
    )
    assert (answer.code, answer.remark) == (ResponseCode.SYSTEM_ERROR, remark)
    assert answer.ext_fields.items() >= COMMON.items()
    assert answer.ext_fields["queueOffset"] == "0"
    assert [record.body for record in await stored(server)] == [b"too late"]


async def test_a_requester_that_refuses_or_goes_is_told_to_the_replier(server):
    asker, replier = await requester(server), await server.connect()
    opaque = await replier.ask(RequestCode.SEND_REPLY_MESSAGE_V2, reply_fields(), b"x")
    await respond(asker, await asker.push(), ResponseCode.SYSTEM_ERROR)
    refused = await replier.reply(opaque)
    opaque = await replier.ask(RequestCode.SEND_REPLY_MESSAGE_V2, reply_fields(), b"y")
    await asker.push()
    await asker.aclose()
    gone = await replier.reply(opaque)
    expected = (ResponseCode.SYSTEM_ERROR, "push reply message to requesterfail.")
    assert (refused.code, refused.remark) == expected
    assert (gone.code, gone.remark) == expected


async def test_a_requester_that_never_answers_delays_no_other_reply(server, monkeypatch):
    monkeypatch.setattr(reply_processor, "PUSH_TIMEOUT_SECONDS", 2.0)
    silent, quick = await requester(server, "silent"), await requester(server, "quick")
    replier = await server.connect()
    code = RequestCode.SEND_REPLY_MESSAGE_V2
    slow_opaque = await replier.ask(code, reply_fields("silent"), b"1")
    quick_opaque = await replier.ask(code, reply_fields("quick"), b"2")
    await respond(quick, await quick.push())
    assert (await replier.reply(quick_opaque)).code == ResponseCode.SUCCESS
    await silent.push()
    assert slow_opaque not in replier._replies
    slow = await replier.reply(slow_opaque)
    assert slow.remark == "push reply message to silentfail."


async def test_a_reply_to_an_unknown_topic_is_refused_before_any_push(server):
    asker, replier = await requester(server), await server.connect()
    fields = reply_fields() | {"b": "Nowhere", "c": "no-default"}
    answer = await replier.call(RequestCode.SEND_REPLY_MESSAGE_V2, fields, b"x")
    assert answer.code == ResponseCode.TOPIC_NOT_EXIST
    assert answer.remark.startswith("topic[Nowhere] not exist, apply first please!")
    assert answer.ext_fields == COMMON
    with trio.move_on_after(0.05):
        await asker.push()
    assert asker.pushed == []


async def test_a_one_way_reply_reaches_the_requester(server):
    asker, replier = await requester(server), await server.connect()
    await replier.ask(RequestCode.SEND_REPLY_MESSAGE_V2, reply_fields(), b"x", flag=2)
    await respond(asker, await asker.push())
    answer = await replier.call(RequestCode.SEND_REPLY_MESSAGE_V2, reply_fields("nobody"), b"y")
    assert answer.remark == "push reply message fail, channel of <nobody> not found."
    assert replier._replies == {}
