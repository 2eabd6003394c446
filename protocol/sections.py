"""Cached reading of a section of binary ext entries that hardly changes from request to request.

In the requests of one producer or consumer all but a few ext entries are the same bytes. The quick
readers in headers/send.py and headers/pull.py cut a header into sections and look the constant ones
up here instead of decoding them again. Pure in effect: the caches (functools.lru_cache, safe from
any thread) only remember results.
"""

from collections.abc import Callable, Iterable
from functools import lru_cache
from operator import attrgetter
from typing import Any, Final

from pyritemq.protocol.errors import ProtocolError
from pyritemq.protocol.fields import Header, decode_fields
from pyritemq.protocol.rocketmq_header import decode_ext

# Sections are at most about 1 KB (the readers' patterns say so): 2 MB for a full cache of the
# longest. A consumer needs an entry for each of its queues, a producer one for each topic.
SECTIONS_MAX: Final = 2048


def section_reader(
    cls: type[Header],
    values: tuple[str, ...],
    *,
    elsewhere: Iterable[str],
    short: bool = False,
) -> Callable[[bytes], tuple[Any, ...] | None]:
    """A function from the bytes of a section to the ``values`` of its fields.

    It gives None where only the whole header can tell what is meant: for entries that are not whole
    or not valid, for a required field missing, and for a field whose place is ``elsewhere``.
    """
    fields = cls.short_fields if short else cls.wire_fields
    others = frozenset(elsewhere)
    foreign = frozenset(field.wire_name for field in fields if field.python_name in others)
    placeholders = {
        field.wire_name: "0" for field in fields if field.wire_name in foreign and field.is_required
    }
    values_of = attrgetter(*values)

    @lru_cache(SECTIONS_MAX)
    def read(entries: bytes) -> tuple[Any, ...] | None:
        try:
            ext = decode_ext(entries)
            if not foreign.isdisjoint(ext):
                return None
            found: tuple[Any, ...] = values_of(decode_fields(cls, fields, placeholders | ext))
        except ProtocolError:
            return None
        return found

    return read
