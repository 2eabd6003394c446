"""Values computed by a JVM (OpenJDK 17)."""

import pytest

from pyritemq.compat.java_hash import java_string_hash, tags_code


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", 0),
        ("a", 97),
        ("TagA", 2598919),
        ("polygenelubricants", -2147483648),
        ("标签", 857175),
        ("😀", 1772899),
        ("aaaaaaaaaaaaaaaaaaaa", 1542361408),
    ],
)
def test_hash_is_the_one_a_jvm_computes(text, expected):
    assert java_string_hash(text) == expected
    assert tags_code(text) == expected
