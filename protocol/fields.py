"""The declaration kit: a request or reply header is written once, as a dataclass.

    @header
    class QueryConsumerOffsetHeader(TopicHeader):
        consumer_group: str                          # required; on the wire: consumerGroup
        queue_id: Int                                # Java's Integer: 32 bits
        set_zero_if_not_found: bool | None = None    # optional
        namespace: str | None = wire("ns", default=None)

``decode`` and ``encode`` work on ext fields, so both header serialisations share them; the walk
over the declaration happens once, when the class is made. Fields are encoded in declaration order,
a class's own before those of its bases: the order in which Java's hand-written encoders write.

Java 5.5.0 logs a missing or unreadable field, leaves it null and usually fails later with a
NullPointerException in the remark. Here the request is refused at once: MissingField carries the
text that Java logs.
"""

import dataclasses
import inspect
import types
import typing
from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Annotated, Any, ClassVar, Final, NamedTuple, Self, TypeVar, dataclass_transform

from pyritemq.protocol.errors import InvalidField, MissingField

T = TypeVar("T", bound="Header")

_MISSING: Final = dataclasses.MISSING
_WIRE: Final = "wire"
_SHORT: Final = "short"


class Bits(NamedTuple):
    """The width of a Java integer type."""

    width: int


Int = Annotated[int, Bits(32)]  # Java's int and Integer
Long = Annotated[int, Bits(64)]  # Java's long and Long, and what a plain ``int`` means


def wire(
    name: str | None = None,
    *,
    default: Any = _MISSING,  # noqa: ANN401 - a field specifier, as dataclasses.field
    short: str | None = None,
) -> Any:  # noqa: ANN401
    """Declare a field whose wire name is not the camelCase of its Python name, or one that has a
    one-letter name in the short (V2) form as well."""
    metadata = {_WIRE: name, _SHORT: short}
    return dataclasses.field(default=default, metadata=metadata, kw_only=True)


class WireField(NamedTuple):
    """How one field crosses the wire."""

    python_name: str
    wire_name: str
    parse: Callable[[str], Any]
    print: Callable[[Any], str]
    default: Any
    store: Callable[[Any, Any], None]  # the slot's own setter: the dataclass is frozen
    empty_is_absent: bool  # binary headers cannot tell "" from null; only text may be empty

    @property
    def is_required(self) -> bool:
        return self.default is _MISSING


class Header:
    """Base of all declared headers."""

    __slots__ = ()

    wire_fields: ClassVar[tuple[WireField, ...]] = ()
    short_fields: ClassVar[tuple[WireField, ...]] = ()  # by their letters, in that order
    _long_only_fields: ClassVar[tuple[WireField, ...]] = ()

    @classmethod
    def decode(cls, ext: Mapping[str, str]) -> Self:
        """Read the declared fields, ignore others. Raises MissingField or InvalidField."""
        return decode_fields(cls, cls.wire_fields, ext)

    def encode(self) -> dict[str, str]:
        """The ext fields in declaration order; fields that are None are left out."""
        return _encode(self, self.wire_fields)


@dataclass_transform(kw_only_default=True, frozen_default=True, field_specifiers=(wire,))
def header(cls: type[T]) -> type[T]:
    """Make a declaration a frozen, slotted, keyword-only dataclass with its codec."""
    made = dataclasses.dataclass(frozen=True, slots=True, kw_only=True)(cls)
    plan = _plan(made)
    made.wire_fields = tuple(field for field, _ in plan)
    short = sorted((letter, field) for field, letter in plan if letter is not None)
    made.short_fields = tuple(field._replace(wire_name=letter) for letter, field in short)
    made._long_only_fields = tuple(field for field, letter in plan if letter is None)
    return made


def decode_short(cls: type[T], ext: Mapping[str, str]) -> T:
    """As ``decode``, by the one-letter names; fields without one get their defaults."""
    made = decode_fields(cls, cls.short_fields, ext)
    for field in cls._long_only_fields:
        field.store(made, field.default)
    return made


def encode_short(declared: Header) -> dict[str, str]:
    """As ``encode``, by the one-letter names and in their order."""
    return _encode(declared, declared.short_fields)


def decode_fields(cls: type[T], fields: tuple[WireField, ...], ext: Mapping[str, str]) -> T:
    """A header with these of its fields set. Raises MissingField or InvalidField."""
    made = object.__new__(cls)
    get = ext.get
    for _, wire_name, parse, _, default, store, empty_is_absent in fields:
        text = get(wire_name)
        if text is None or (empty_is_absent and not text):
            if default is _MISSING:
                raise MissingField(wire_name)
            store(made, default)
            continue
        try:
            value = parse(text)
        except ValueError:
            raise InvalidField(wire_name, text) from None
        store(made, value)
    return made


def _encode(declared: Header, fields: tuple[WireField, ...]) -> dict[str, str]:
    ext: dict[str, str] = {}
    for field in fields:
        value = getattr(declared, field.python_name)
        if value is not None:
            ext[field.wire_name] = field.print(value)
    return ext


def _plan(cls: type[Header]) -> list[tuple[WireField, str | None]]:
    hints = typing.get_type_hints(cls, include_extras=True)
    declared = {field.name: field for field in dataclasses.fields(cls)}  # type: ignore[arg-type]
    return [
        (_field(cls, declared[name], hints[name]), declared[name].metadata.get(_SHORT))
        for name in _names_own_first(cls)
    ]


def _names_own_first(cls: type[Header]) -> list[str]:
    names: dict[str, None] = {}
    for base in cls.__mro__:
        names.update(dict.fromkeys(inspect.get_annotations(base)))
    declared = {field.name for field in dataclasses.fields(cls)}  # type: ignore[arg-type]
    return [name for name in names if name in declared]


def _field(cls: type[Header], field: "dataclasses.Field[Any]", hint: Any) -> WireField:  # noqa: ANN401
    wire_name = field.metadata.get(_WIRE) or _camel_case(field.name)
    parse, to_text = _codec(_without_none(hint))
    store = getattr(cls, field.name).__set__
    return WireField(
        field.name, wire_name, parse, to_text, field.default, store, parse is not _parse_text
    )


def _camel_case(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word[:1].upper() + word[1:] for word in rest)


def _without_none(hint: Any) -> Any:  # noqa: ANN401
    if typing.get_origin(hint) not in (typing.Union, types.UnionType):
        return hint
    (only,) = (arg for arg in typing.get_args(hint) if arg is not types.NoneType)
    return only


def _codec(hint: Any) -> tuple[Callable[[str], Any], Callable[[Any], str]]:  # noqa: ANN401
    if hint is str:
        return _parse_text, str
    if hint is bool:
        return _parse_bool, _print_bool
    if hint is int or hint == Long:
        return parse_long, str
    if hint == Int:
        return parse_int, str
    if isinstance(hint, type) and issubclass(hint, StrEnum):
        return hint, str
    raise TypeError(f"no wire form for {hint!r}")


def _parse_text(text: str) -> str:
    return text


def _parse_bool(text: str) -> bool:
    return text.lower() == "true"  # Boolean.parseBoolean


def _print_bool(value: bool) -> str:
    return "true" if value else "false"


def parse_int(text: str) -> int:
    """Integer.parseInt. Raises ValueError."""
    value = parse_long(text)
    if -0x80000000 <= value <= 0x7FFFFFFF:
        return value
    raise ValueError(text)


def parse_long(text: str) -> int:
    """Long.parseLong: a sign and digits, none of what else int() takes. Raises ValueError."""
    value = int(text)
    if "_" in text or text != text.strip():
        raise ValueError(text)
    if -0x8000000000000000 <= value <= 0x7FFFFFFFFFFFFFFF:
        return value
    raise ValueError(text)
