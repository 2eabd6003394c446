"""What servers a case wants: how many, and with which properties of broker.conf."""

from __future__ import annotations

from dataclasses import dataclass

COMMON = (
    ("enablePropertyFilter", "true"),
    ("traceTopicEnable", "true"),
    ("waitTimeMillsInSendQueue", "5000"),
    ("transactionCheckInterval", "2000"),
    ("transactionTimeOut", "1000"),
    ("transactionOpBatchInterval", "100"),
)
"""What servers are told: features that are off by default, shorter waits, and not to refuse sends
that a loaded machine kept waiting."""


@dataclass(frozen=True)
class Setup:
    """A topology. Cases with the same one share servers, unless a case is alone."""

    brokers: int = 1
    namesrvs: int = 1
    properties: tuple[tuple[str, str], ...] = ()

    def settings(self) -> dict[str, str]:
        return {**dict(COMMON), **dict(self.properties)}

    def words(self) -> str:
        """For the catalogue; empty for the shared server."""
        parts = [f"{self.brokers} brokers"] if self.brokers > 1 else []
        parts += [f"{self.namesrvs} name servers"] if self.namesrvs > 1 else []
        return ", ".join(parts + [f"{name}={value}" for name, value in self.properties])


PLAIN = Setup()


def with_properties(**properties: object) -> Setup:
    return Setup(properties=tuple((name, str(value)) for name, value in properties.items()))
