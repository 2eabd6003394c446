"""The configuration of a running broker, as tools read and change it (Java: Configuration).

Called on the admin lane; `_lock` orders the updates and is held across the write of the file, which
nothing else waits for.  A change is checked as a whole, saved, and only then assigned, so a value
that cannot be used changes nothing and a file that cannot be written changes nothing either.

Java saves every property that it knows.  Here only the changed ones go into the file, and the rest
of it stays as its owner wrote it, comments included.
"""

from __future__ import annotations

import difflib
import re
import threading
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from pyritemq.compat.broker_conf import BROKER_CONFIG_SECTIONS
from pyritemq.compat.conf.settings import ConfigError
from pyritemq.compat.properties_file import (
    format_properties,
    parse_properties,
    print_properties,
)
from pyritemq.compat.register_body import DataVersion
from pyritemq.server.broker.state.topics import next_version
from pyritemq.storage.tables import JsonTable

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pyritemq.compat.broker_conf import BrokerConfig
    from pyritemq.compat.conf.settings import Change

FIXED_KEYS = frozenset(
    {
        "bindAddress",
        "brokerClusterName",
        "brokerId",
        "brokerName",
        "brokerRole",
        "enableControllerMode",
        "haListenPort",
        "mappedFileSizeCommitLog",
        "mappedFileSizeConsumeQueue",
        "namesrvAddr",
        "readOnlyCommitLogStorePaths",
        "reviveQueueNum",
        "storePathCommitLog",
        "storePathRootDir",
    }
)
"""What the open store, the sockets and the name servers' tables rest on while the broker runs."""

NEXT_START_KEYS = frozenset(
    {
        "ackThreadPoolQueueCapacity",
        "adminBrokerThreadPoolQueueCapacity",
        "appendTopicForTimerDeleteKey",
        "brokerTopicEnable",
        "channelExpiredTimeout",
        "checkCRCOnRecover",
        "clientManagerThreadPoolQueueCapacity",
        "clusterTopicEnable",
        "consumerManagerThreadPoolQueueCapacity",
        "defaultTopicQueueNums",
        "delayOffsetUpdateVersionStep",
        "enableConsumeQueueExt",
        "endTransactionPoolQueueCapacity",
        "expectConsumerNumUseFilter",
        "filterDataCleanTimeSpan",
        "mappedFileSizeConsumeQueueExt",
        "mappedFileSizeTimerLog",
        "maxErrorRateOfBloomFilter",
        "maxHashSlotNum",
        "maxIndexNum",
        "maxPopPollingSize",
        "messageDelayLevel",
        "metricsExporterType",
        "metricsPromExporterHost",
        "metricsPromExporterPort",
        "msgTraceTopicName",
        "popPollingSize",
        "processReplyMessageThreadPoolNums",
        "pullThreadPoolQueueCapacity",
        "queryThreadPoolQueueCapacity",
        "replyThreadPoolQueueCapacity",
        "sendThreadPoolQueueCapacity",
        "serverChannelMaxIdleTimeSeconds",
        "serverSocketBacklog",
        "timerPrecisionMs",
        "timerRollWindowSlot",
        "timerWheelEnable",
        "traceTopicEnable",
        "useServerSideResetOffset",
    }
)
"""Taken and saved, as by Java, which reads these at its start as well."""

USABLE_FORMS: Mapping[str, tuple[re.Pattern[str], str]] = MappingProxyType(
    {
        "deleteWhen": (
            re.compile(r"(?:[01]?\d|2[0-3])(?:;(?:[01]?\d|2[0-3]))*"),
            "hours from 00 to 23, with ; between them",
        ),
        "diskMaxUsedSpaceRatio": (re.compile(r"[1-9]?\d|100"), "a whole number from 0 to 100"),
        "listenPort": (re.compile(r"0*[1-9]\d*"), "a port that clients can connect to"),
        "maxTransferCountOnMessageInMemory": (re.compile(r"0*[1-9]\d*"), "1 or more"),
        "messageDelayLevel": (
            re.compile(r"\d{1,9}[smhd](?: +\d{1,9}[smhd])*"),
            "times such as 1s 5m 2h 1d, with spaces between them",
        ),
        "timerMaxDelaySec": (re.compile(r"0*[1-9]\d*"), "1 or more"),
    }
)
"""Values that a file may have, since Java starts with them, but that make no sense to ask for."""

_LINE = re.compile(r"[^\n]*\n|[^\n]+")

ALWAYS_BLACK_LISTED = frozenset({"brokerConfigPath", "rocketmqHome", "configBlackList"})
"""AdminBrokerProcessor.initConfigBlackList of 5.5.0."""


class LiveConfig:
    """A broker's configuration with its version and its file."""

    def __init__(self, config: BrokerConfig, *, now_ms: Callable[[], int]) -> None:
        self._config = config
        self._now_ms = now_ms
        self._lock = threading.Lock()
        path = config.broker_config_path
        folder = Path(config.store_path_root_dir) / "config"
        # Java's place without -c is the store's config folder as well; neither reads it at start.
        self._file = JsonTable(Path(path) if path else folder / "broker.properties")
        self.version = DataVersion(timestamp=now_ms())

    def show(self) -> str:
        """Every property as `key=value` lines, sorted."""
        return print_properties(self._config.to_properties(BROKER_CONFIG_SECTIONS))

    def is_black_listed(self, name: str) -> bool:
        """Whether this property may never be set from outside."""
        return name in ALWAYS_BLACK_LISTED or name in self._config.config_black_list.split(";")

    def update(self, properties: Mapping[str, str]) -> list[Change]:
        """Change, save and return what changed.

        Raises ConfigError or StorageError, and then nothing has changed.
        """
        with self._lock:
            self._check(properties)
            self._save(properties)
            changes = self._config.update(properties, source="updateBrokerConfig")
            self.version = next_version(self.version, self._now_ms())
            return changes

    def _check(self, properties: Mapping[str, str]) -> None:
        shown = self._config.to_properties(BROKER_CONFIG_SECTIONS)
        known = {declared.file_key for declared in type(self._config).KEYS.values()}
        for name, text in properties.items():
            if name not in known:
                nearest = difflib.get_close_matches(name, known, n=1, cutoff=0.6)
                hint = f"; did you mean {nearest[0]}?" if nearest else ""
                raise ConfigError(
                    f"updateBrokerConfig: {name[:100]} is not a property of a broker{hint}"
                )
            if name in FIXED_KEYS and shown.get(name) != text.strip():
                raise ConfigError(
                    f"updateBrokerConfig: {name} cannot change while the broker runs: set it in "
                    "the configuration file and start the broker again"
                )
            form, words = USABLE_FORMS.get(name, (None, ""))
            if form is not None and not form.fullmatch(text.strip()):
                raise ConfigError(f"updateBrokerConfig: {name}={text.strip()} must be {words}")
        # On a copy: what `update` refuses must not leave its mark on the file.
        type(self._config)().update(properties, source="updateBrokerConfig")

    def _save(self, properties: Mapping[str, str]) -> None:
        versions = self._file.versions() if self._file.path.exists() else []
        text = versions[0].decode("utf-8", "surrogateescape") if versions else ""
        edited = edit_properties(text, properties)
        self._file.save(edited.encode("utf-8", "surrogateescape"))


def edit_properties(text: str, changes: Mapping[str, str]) -> str:
    """Properties text with these keys set: in their place where they are there, else at the end."""
    left = dict(changes)
    lines: list[str] = []
    for logical in _logical_lines(text):
        key = next(iter(parse_properties(logical)), None)
        if key is None or key not in changes:
            lines.append(logical)
        elif key in left:
            lines.append(format_properties({key: left.pop(key)}))
    return "".join(lines) + format_properties(left)


def _logical_lines(text: str) -> list[str]:
    """The text cut where a property or a comment ends, each piece with its line breaks."""
    pieces: list[str] = []
    open_piece = ""
    for line in _LINE.findall(text):
        open_piece += line
        body = line.rstrip("\r\n")
        is_comment = not open_piece.strip() or open_piece.lstrip()[0] in "#!"
        if is_comment or (len(body) - len(body.rstrip("\\"))) % 2 == 0:
            pieces.append(open_piece)
            open_piece = ""
    if open_piece:
        pieces.append(open_piece)
    if pieces and not pieces[-1].endswith("\n"):
        pieces[-1] += "\n"
    return pieces
