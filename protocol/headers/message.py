"""Headers that name one stored message."""

from pyritemq.protocol.fields import Header, Long, header


@header
class ViewMessageHeader(Header):
    topic: str | None = None
    offset: Long
