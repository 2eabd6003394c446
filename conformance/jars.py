"""Where the official RocketMQ jars lie, and the class paths made of them.

scripts/fetch-jars brings them; this module only looks. Used by the java tests, the golden capture
and bench/.
"""

from __future__ import annotations

import os
from pathlib import Path

ROCKETMQ_VERSION = "5.5.0"
"""The real server that every claim is measured against."""

CLIENT_VERSIONS = ("5.5.0", "4.9.8")
"""Client lines that are run unmodified: the newest, and the last of 4.x."""


class JarsMissingError(Exception):
    """The jars of a set were never fetched; the message says how to fetch them."""


def jar_folder(client_version: str = ROCKETMQ_VERSION) -> Path:
    """The folder of one set of jars. Raises JarsMissingError when nobody fetched it."""
    cache = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    root = os.environ.get("PYRITEMQ_JARS") or str(Path(cache) / "pyritemq" / "jars")
    folder = Path(root) / f"client-{client_version}"
    if not folder.is_dir():
        raise JarsMissingError(f"no jars in {folder}; fetch them with: sh scripts/fetch-jars")
    return folder


def class_path(client_version: str = ROCKETMQ_VERSION) -> str:
    return f"{jar_folder(client_version)}/*"
