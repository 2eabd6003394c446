"""Ids made by MessageDecoder.createMessageId of 5.5.0."""

from ipaddress import ip_address

import pytest

from pyritemq.compat.message_id import make_message_id, parse_message_id

JAVA_IDS = [
    ("10.1.2.3", 10911, 123456789012, "0A01020300002A9F0000001CBE991A14"),
    ("2001:db8::1", 10911, 5, "20010DB800000000000000000000000100002A9F0000000000000005"),
]


@pytest.mark.parametrize(("ip", "port", "phy_offset", "text"), JAVA_IDS)
def test_ids_are_made_and_read_as_java_does(ip, port, phy_offset, text):
    store_host = ip_address(ip).packed + port.to_bytes(4, "big")
    assert make_message_id(store_host, phy_offset) == text
    assert parse_message_id(text) == (ip_address(ip), port, phy_offset)
    assert parse_message_id(text.lower()).phy_offset == phy_offset


@pytest.mark.parametrize("text", ["", "0A", "G" * 32, "0" * 40, "0A010203 0002A9F0000001CBE991A1 "])
def test_text_that_is_no_id_is_a_value_error(text):
    with pytest.raises(ValueError, match=r"message id|hex"):
        parse_message_id(text)
