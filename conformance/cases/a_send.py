"""Sending: how each kind of send is answered, stored, and read back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyritemq.conformance.catalogue import case, family
from pyritemq.conformance.trial import bodies

if TYPE_CHECKING:
    from pyritemq.conformance.trial import Trial

family("SEND", "Send")
PRODUCER = "client: DefaultMQProducer.send"


@case("SEND-001", "A synchronous send is stored", source=PRODUCER, core=True)
def sync_send(t: Trial) -> None:
    """The result is SEND_OK with offset 0 in an empty queue, and a consumer receives the body."""
    topic = t.topic(queues=1)
    sent = t.producer().send(topic, "hello")
    t.equal("status", sent["status"], "SEND_OK")
    t.equal("queue offset", sent["queueOffset"], 0)
    t.equal("received", bodies(t.consumer(topic).received(1)), ["hello"])


@case("SEND-002", "An asynchronous send calls back", source=PRODUCER, features="async", core=True)
def async_send(t: Trial) -> None:
    """The callback has SEND_OK, and a consumer receives the body."""
    topic = t.topic()
    sent = t.producer().send(topic, "later", how={"mode": "async"})
    t.equal("status", sent["status"], "SEND_OK")
    t.equal("received", bodies(t.consumer(topic).received(1)), ["later"])
