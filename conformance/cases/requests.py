"""Request and reply: a producer waits for the answer of a consumer."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from pyritemq.conformance import wire as wires
from pyritemq.conformance.catalogue import WIRE, case, family
from pyritemq.conformance.trial import bodies
from pyritemq.protocol.codes import RequestCode

if TYPE_CHECKING:
    from pyritemq.conformance.actors import Consumer, Json, Producer
    from pyritemq.conformance.trial import Trial

family("RPC", "Request and reply")
SOURCE = "client: DefaultMQProducer.request"
PUSH = "protocol: PUSH_REPLY_MESSAGE_TO_CLIENT"
REPLY_TOPIC = "DefaultCluster_REPLY_TOPIC"


def _responder(t: Trial, topic: str) -> Consumer:
    answers = t.producer()
    consumer = t.consumer(topic, replyWith=answers.name)
    t.eventually("the responder's queues", lambda: len(consumer.queues()) > 0, True)
    return consumer


def _ask(
    producer: Producer, topic: str, body: str, *, timeout_ms: int = 20_000, mode: str = "sync"
) -> Json:
    message = {"topic": topic, "body": body}
    answer: Json = producer.call("request", message=message, timeoutMs=timeout_ms, mode=mode)
    return answer


@case("RPC-001", "A request gets its answer", source=SOURCE, features="request", core=True)
def answered(t: Trial) -> None:
    """The consumer's reply is what the waiting request returns."""
    topic = t.topic(queues=1)
    _responder(t, topic)
    t.equal("answer", _ask(t.producer(), topic, "ping")["body"], "re: ping")


@case("RPC-002", "A request may call back", source=SOURCE, features="request")
def called_back(t: Trial) -> None:
    """The asynchronous request gets the same answer. (The client may call back with nothing before
    the answer: that is its own, and is left out of account.)"""
    topic = t.topic(queues=1)
    _responder(t, topic)
    t.equal("answer", _ask(t.producer(), topic, "ping", mode="async")["body"], "re: ping")


@case("RPC-003", "Nobody answers", source=SOURCE, features="request")
def unanswered(t: Trial) -> None:
    """Without a consumer the request ends with RequestTimeoutException, and the message is in the
    topic all the same."""
    topic = t.topic(queues=1)
    t.refused(
        "request",
        lambda: _ask(t.producer(), topic, "anyone?", timeout_ms=2000),
        kind="RequestTimeoutException",
    )
    t.equal("stored", bodies(t.consumer(topic).received(1)), ["anyone?"])


@case("RPC-004", "Each gets its own answer", source=SOURCE, features="request")
def own_answers(t: Trial) -> None:
    """Two producers with ten requests each at the same time all get the answers to their own."""
    topic = t.topic(queues=4)
    _responder(t, topic)
    producers = [t.producer(), t.producer()]
    questions = [(producers[number % 2], f"q{number}") for number in range(20)]
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda one: _ask(one[0], topic, one[1])["body"], questions))
    t.equal("answers", answers, [f"re: {body}" for _, body in questions])


@case("RPC-005", "The answer names its question", source=PUSH, features="request")
def names_its_question(t: Trial) -> None:
    """It has the correlation id of the request, the reply type, and PUSH_REPLY_TIME, which only the
    broker can have put there."""
    topic = t.topic(queues=1)
    responder = _responder(t, topic)
    answer = _ask(t.producer(), topic, "ping")["properties"]
    asked = responder.received(1)[0]["properties"]
    t.equal("correlation id", answer["CORRELATION_ID"], asked["CORRELATION_ID"])
    t.equal("type", answer.get("MSG_TYPE"), "reply")
    t.true("time", answer.get("PUSH_REPLY_TIME", "").isdigit(), answer)


@case("RPC-006", "The request names who asks", source=SOURCE, features="request")
def names_who_asks(t: Trial) -> None:
    """The consumer sees CORRELATION_ID, REPLY_TO_CLIENT and TTL."""
    topic = t.topic(queues=1)
    responder = _responder(t, topic)
    _ask(t.producer(), topic, "ping", timeout_ms=15_000)
    asked = responder.received(1)[0]["properties"]
    missing = [name for name in ("CORRELATION_ID", "REPLY_TO_CLIENT") if name not in asked]
    t.equal("missing", missing, [])
    t.equal("TTL", asked.get("TTL"), "15000")


def _reply_fields(client: str) -> dict[str, object]:
    properties = "CLUSTER\x01DefaultCluster\x02MSG_TYPE\x01reply\x02CORRELATION_ID\x01c1\x02"
    if client:
        properties += f"REPLY_TO_CLIENT\x01{client}\x02"
    return wires.send_fields(REPLY_TOPIC, properties=properties)


@case("RPC-007", "Who asked may be gone", source=PUSH, run_with=WIRE)
def requester_gone(t: Trial) -> None:
    """SEND_REPLY_MESSAGE_V2 to a client that is not connected is SYSTEM_ERROR, with a remark that
    names it."""
    reply = t.wire().call(RequestCode.SEND_REPLY_MESSAGE_V2, _reply_fields("nobody@1"), b"late")
    wanted = "push reply message fail, channel of <nobody@1> not found."
    t.equal("answer", (reply.code, reply.remark), (1, wanted))


@case("RPC-008", "An answer must say to whom", source=PUSH, run_with=WIRE)
def to_nobody(t: Trial) -> None:
    """Without REPLY_TO_CLIENT it is SYSTEM_ERROR."""
    reply = t.wire().call(RequestCode.SEND_REPLY_MESSAGE_V2, _reply_fields(""), b"to whom")
    wanted = "reply message properties[REPLY_TO_CLIENT] is null"
    t.equal("answer", (reply.code, reply.remark), (1, wanted))
