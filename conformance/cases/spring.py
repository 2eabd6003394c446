"""A user's application on the Spring Boot starter, with a sample of ours."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pyritemq.conformance.catalogue import TOOLS, case
from pyritemq.conformance.clients import wait_until

if TYPE_CHECKING:
    from pyritemq.conformance.trial import Trial

SECONDS = 180.0  # it waits for a delay level and for a retry

SPRING_SENT = (
    *("plain", "unwanted", "failing", "order", "batch", "delayed"),
    *("transaction COMMIT_MESSAGE", "transaction ROLLBACK_MESSAGE"),
)

SPRING_RECEIVED = {
    *("plain 0", "failing 0", "failing 1", "tea x 3", "delayed 0", "committed 0"),
    *(f"batch-{number} 0" for number in range(3)),
    *(f"ordered-{number}" for number in range(5)),
}


@case(
    "EXAMPLE-023",
    "A Spring Boot application",
    source="tool: org.apache.rocketmq:rocketmq-spring-boot-starter 2.3.5",
    run_with=TOOLS,
    alone=True,
)
def spring_boot(t: Trial) -> None:
    """A sample on the starter: plain, batch, delayed, ordered and transactional sends by its
    template, and listeners by annotation with a tag, a class of its own, a failure that is tried
    again, and an order. What is not wanted and what was rolled back is not received."""
    for topic in ("spring-plain", "spring-order", "spring-ordered"):
        t.create_topic(t.servers.broker.address, topic, 4)
    sample = t.spring_sample()

    def received(text: str) -> list[str]:
        return re.findall(r"^sample: received (.+)$", text, re.MULTILINE)

    wait_until(sample, lambda text: set(received(text)) >= SPRING_RECEIVED, timeout=SECONDS)
    output = sample.output()
    sent = [word.removesuffix(" SEND_OK") for word in re.findall(r"sample: sent (.+)", output)]
    t.equal("sent", sent, list(SPRING_SENT))
    t.equal("received", set(received(output)), SPRING_RECEIVED)
    ordered = [word for word in received(output) if word.startswith("ordered-")]
    t.equal("ordered", ordered, sorted(ordered))
