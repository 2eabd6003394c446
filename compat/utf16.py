"""Java's strings are UTF-16 units; ours are characters. What crosses that border is mended here."""

import re

_SURROGATE = re.compile("[\ud800-\udfff]")


def join_surrogates(text: str) -> str:
    """Join surrogate pairs; a lone one becomes `?`, as Java's UTF-8 encoder writes it."""
    if _SURROGATE.search(text) is None:
        return text
    paired = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
    return _SURROGATE.sub("?", paired)


def utf16_units(text: str) -> list[int]:
    """The 16-bit units that Java holds for `text`."""
    data = text.encode("utf-16-be", "surrogatepass")
    return [high << 8 | low for high, low in zip(data[::2], data[1::2], strict=True)]
