"""RocketMQ's version numbers as commands carry them: ordinals in 5.5.0's MQVersion.Version.

Pure data, built by rule: 3.0.0's milestones, then `V<major>_<minor>_<patch>_SNAPSHOT` and the
release of each, up to 5.9.9, and HIGHER_VERSION for everything a later release may send.
"""

from collections.abc import Iterator

_MILESTONES_3_0_0 = (
    "V3_0_0_SNAPSHOT",
    "V3_0_0_ALPHA1",
    *(f"V3_0_0_BETA{n}" for n in range(1, 6)),
    *(f"V3_0_0_BETA{n}{suffix}" for n in range(6, 10) for suffix in ("_SNAPSHOT", "")),
    "V3_0_0_FINAL",
)


def _releases() -> Iterator[str]:
    """3.0 had fifteen patch releases, and 3.3 to 3.9 begin at patch 1."""
    for minor in range(10):
        patches = range(1, 16) if minor == 0 else range(1 if minor > 2 else 0, 10)
        yield from (f"V3_{minor}_{patch}" for patch in patches)
    for major in (4, 5):
        yield from (f"V{major}_{minor}_{patch}" for minor in range(10) for patch in range(10))


VERSION_NAMES: tuple[str, ...] = (
    *_MILESTONES_3_0_0,
    *(f"{release}{suffix}" for release in _releases() for suffix in ("_SNAPSHOT", "")),
    "HIGHER_VERSION",
)
_ORDINALS = {name: ordinal for ordinal, name in enumerate(VERSION_NAMES)}


def version_ordinal(name: str) -> int:
    """The number of a version by Java's name for it, such as V4_9_4; KeyError if there is none."""
    return _ORDINALS[name]


def version_name(ordinal: int) -> str:
    """Java's name for the number a command carries.

    What is past the end reads as HIGHER_VERSION.
    """
    return VERSION_NAMES[min(max(ordinal, 0), len(VERSION_NAMES) - 1)]


V3_0_11 = version_ordinal("V3_0_11")  # brokers since then send RegisterBrokerBody
V4_9_4 = version_ordinal("V4_9_4")  # clients since then read standard JSON only in routes
V5_0_0 = version_ordinal("V5_0_0")  # brokers since then append queue mappings to a compressed body
CURRENT_VERSION = version_ordinal("V5_5_0")
