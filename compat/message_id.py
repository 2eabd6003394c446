"""The offset message id: where a message lies, as the hex text that VIEW_MESSAGE_BY_ID takes.

It is the store host (IPv4 or IPv6 address and a 4-byte port) followed by the 8-byte CommitLog
offset, in upper-case hex: 32 characters for IPv4 and 56 for IPv6. Pure functions, called from any
lane.
"""

import struct
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import NamedTuple

_TAIL = struct.Struct(">iq")
_TEXT_LENGTHS = {32: 4, 56: 16}  # text length -> address bytes


class MessageId(NamedTuple):
    """A parsed offset message id."""

    ip: IPv4Address | IPv6Address
    port: int
    phy_offset: int


def make_message_id(store_host: bytes, phy_offset: int) -> str:
    """`store_host` is what the message record holds: 4 or 16 address bytes and a 4-byte port."""
    return (store_host + phy_offset.to_bytes(8, "big", signed=True)).hex().upper()


def parse_message_id(text: str) -> MessageId:
    """Read an id in either case; ValueError says what is wrong with it."""
    address_length = _TEXT_LENGTHS.get(len(text))
    if address_length is None:
        raise ValueError(f"a message id has 32 or 56 characters, this one has {len(text)}")
    raw = bytes.fromhex(text)
    if len(raw) * 2 != len(text):  # fromhex skips white space
        raise ValueError("a message id holds hex digits only")
    port, phy_offset = _TAIL.unpack_from(raw, address_length)
    return MessageId(ip_address(raw[:address_length]), port, phy_offset)
