"""What servers a case wants: how many, and with which properties of broker.conf."""

from __future__ import annotations

from dataclasses import dataclass, field

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
    relies_on: tuple[str, ...] = field(default=(), compare=False)
    """Settings of COMMON without which a case cannot pass: a server of somebody else may lack
    them."""

    def settings(self) -> dict[str, str]:
        return {**dict(COMMON), **dict(self.properties)}

    def demanded(self) -> list[tuple[str, str]]:
        """Settings that a broker must have for the case to make sense."""
        return [*self.properties, *((name, dict(COMMON)[name]) for name in self.relies_on)]

    def words(self) -> str:
        """For the catalogue; empty for the shared server."""
        parts = [f"{self.brokers} brokers"] if self.brokers > 1 else []
        parts += [f"{self.namesrvs} name servers"] if self.namesrvs > 1 else []
        return ", ".join(parts + [f"{name}={value}" for name, value in self.properties])


PLAIN = Setup()


def with_properties(**properties: object) -> Setup:
    return Setup(properties=tuple((name, str(value)) for name, value in properties.items()))


def relying_on(*names: str) -> Setup:
    """The shared servers, because of these of their settings."""
    return Setup(relies_on=names)
