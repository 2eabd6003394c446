import pytest

from pyritemq.compat import versions


@pytest.mark.parametrize(
    ("name", "ordinal"),
    [  # from 5.5.0's MQVersion
        ("V3_0_0_SNAPSHOT", 0),
        ("V3_0_0_FINAL", 15),
        ("V3_0_11", 37),
        ("V3_1_0_SNAPSHOT", 46),
        ("V4_9_4", 401),
        ("V5_0_0", 413),
        ("V5_5_0", 513),
        ("HIGHER_VERSION", 612),
    ],
)
def test_ordinals_are_those_of_java(name, ordinal):
    assert versions.version_ordinal(name) == ordinal
    assert versions.version_name(ordinal) == name


def test_version_of_a_later_release_reads_as_higher():
    assert versions.version_name(100_000) == "HIGHER_VERSION"
    assert versions.version_name(-1) == "V3_0_0_SNAPSHOT"
