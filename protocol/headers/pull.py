"""Headers of PULL_MESSAGE and LITE_PULL_MESSAGE, and their quick reading.

``PullMessageHeader`` is the declaration. The pull lane reads requests with ``decode_pull``, which
gives the same values as a tuple, ``PullFields``; a property test holds the two equal for every
input, hostile ones too.
"""

import re
from operator import attrgetter
from typing import Final, NamedTuple

from pyritemq.protocol.command import Command
from pyritemq.protocol.fields import Header, Int, Long, header
from pyritemq.protocol.headers.rpc import TopicHeader
from pyritemq.protocol.sections import section_reader


@header
class PullMessageHeader(TopicHeader):
    consumer_group: str
    topic: str
    lite_topic: str | None = None
    queue_id: Int
    queue_offset: Long
    max_msg_nums: Int
    sys_flag: Int
    commit_offset: Long
    suspend_timeout_millis: Long
    subscription: str | None = None
    sub_version: Long
    expression_type: str | None = None
    max_msg_bytes: Int | None = None
    request_source: Int | None = None
    proxy_froward_client_id: str | None = None


@header
class PullMessageReplyHeader(Header):
    suggest_which_broker_id: Long
    next_begin_offset: Long
    min_offset: Long
    max_offset: Long
    offset_delta: Long | None = None
    topic_sys_flag: Int | None = None
    group_sys_flag: Int | None = None
    forbidden_type: Int | None = None


@header
class PullForbiddenHeader(Header):
    """All that Java sets of the reply's header when it turns a reader away."""

    forbidden_type: Int


class PullFields(NamedTuple):
    """The fields of a PullMessageHeader, under the same names, in the order of the wire."""

    consumer_group: str
    topic: str
    queue_id: int
    queue_offset: int
    max_msg_nums: int
    sys_flag: int
    commit_offset: int
    suspend_timeout_millis: int
    subscription: str | None
    sub_version: int
    expression_type: str | None
    max_msg_bytes: int | None
    request_source: int | None
    proxy_froward_client_id: str | None
    lite_topic: str | None
    broker_name: str | None


def decode_pull(command: Command) -> PullFields:
    """The fields of a pull request. Raises HeaderSyntaxError, MissingField or InvalidField."""
    raw = command.ext_raw
    if raw:
        fields = _match_entries(raw)
        if fields is not None:
            return fields
    return PullFields._make(_all_of(PullMessageHeader.decode(command.ext_fields)))


# The parts of PullFields; all but the two offsets stay the same from pull to pull of a queue.
_QUEUE: Final = ("consumer_group", "topic", "queue_id")
_OFFSETS: Final = ("queue_offset", "commit_offset")
_LIMITS: Final = ("max_msg_nums", "sys_flag")
_REST: Final = PullFields._fields[7:]
_NOT_IN_REST: Final = (*_QUEUE, *_OFFSETS, *_LIMITS)
_queue_in = section_reader(PullMessageHeader, _QUEUE, elsewhere=(*_OFFSETS, *_LIMITS, *_REST))
_limits_in = section_reader(PullMessageHeader, _LIMITS, elsewhere=(*_OFFSETS, *_QUEUE, *_REST))
_rest_in = section_reader(PullMessageHeader, _REST, elsewhere=_NOT_IN_REST)
_all_of = attrgetter(*PullFields._fields)

# The ext entries as Java's client writes them (PullMessageRequestHeader.encode), nulls left out.
# Groups: the queue's entries; the length and digits of queueOffset; two more entries; the length
# and digits of commitOffset; all the rest. Every length is checked, here or below, so that a match
# means what decode_ext would read.
_ENTRIES: Final = re.compile(
    rb"(\0\x0dconsumerGroup\0\0\0.[^\0]{1,255}\0\x05topic\0\0\0.[^\0]{1,255}"
    rb"\0\x07queueId\0\0\0.[0-9]{1,9})"
    rb"\0\x0bqueueOffset\0\0\0(.)([0-9]{1,18})"
    rb"(\0\x0amaxMsgNums\0\0\0.[0-9]{1,9}\0\x07sysFlag\0\0\0.[0-9]{1,9})"
    rb"\0\x0ccommitOffset\0\0\0(.)([0-9]{1,18})"
    rb"(\0\x14suspendTimeoutMillis.{0,1024})",
    re.DOTALL,
)
_match_all = _ENTRIES.fullmatch


def _match_entries(raw: bytes) -> PullFields | None:
    """Read entries in Java's order at 1.8 µs where decode_ext with the declaration takes 15 µs
    (2026-11-18, CPython 3.11); None for any others."""
    match = _match_all(raw)
    if match is None:
        return None
    head, offset_length, offset, middle, commit_length, commit_offset, tail = match.groups()
    queue = _queue_in(head)
    limits = _limits_in(middle)
    rest = _rest_in(tail)
    if queue is None or limits is None or rest is None:
        return None
    if offset_length[0] != len(offset) or commit_length[0] != len(commit_offset):
        return None
    return tuple.__new__(PullFields, (*queue, int(offset), *limits, int(commit_offset), *rest))
