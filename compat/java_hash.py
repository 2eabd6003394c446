"""Java's String.hashCode, the number that tag filters and ConsumeQueue units carry.

Pure functions, called from any lane. The ConsumeQueue stores the hash of a message's tag as a
signed 64-bit integer, so a value must come out exactly as a JVM computes it.
"""

from functools import lru_cache

from pyritemq.compat.utf16 import utf16_units

# A producer has few distinct tags; the bound only protects against one that puts a new tag on every
# message.
TAG_CACHE_MAX = 4096


def java_string_hash(text: str) -> int:
    """Hash of `text` as a signed 32-bit integer, over its UTF-16 code units."""
    value = 0
    for unit in utf16_units(text):
        value = (31 * value + unit) & 0xFFFFFFFF
    return value - 0x1_0000_0000 if value & 0x8000_0000 else value


@lru_cache(maxsize=TAG_CACHE_MAX)
def tags_code(tags: str) -> int:
    """The ConsumeQueue's tag hash: 0 for no tag (MessageExtBrokerInner.tagsString2tagsCode)."""
    return java_string_hash(tags) if tags else 0
