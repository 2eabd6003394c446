"""The declaration kit for Java's configuration classes: a property is one line of a table.

A table is a class that derives from Settings; each attribute is a property, its name the snake_case
of Java's, its annotation Java's type, its value Java's default. `key()` adds what a plain default
cannot say. The tables are data: reading, checking, changing at run time and printing are done here,
once. Nothing here opens a file or asks the machine: what Java asks its machine for (host name,
address, processors, home) comes in as a HostFacts.

A settings object is read from every lane. `update` checks all values first and then assigns them
one by one, so a reader sees each property whole; the caller keeps two updates from overlapping.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from inspect import get_annotations
from typing import Annotated, Any, ClassVar, NamedTuple, Self, TypeVar, cast, get_args

JavaType = str
Int = Annotated[int, "int"]
Long = Annotated[int, "long"]
Double = Annotated[float, "double"]
Bool = Annotated[bool, "boolean"]
Str = Annotated[str, "String"]
NullableStr = Annotated[str | None, "String"]
Value = int | float | bool | str | None

_INTEGER_BITS = {"int": 32, "long": 64}
T = TypeVar("T")


class ConfigError(Exception):
    """A value that cannot be used; the message is one sentence that names file, key and value."""


@dataclass(frozen=True, slots=True)
class HostFacts:
    """What Java's defaults take from the machine and its environment."""

    host_name: str = "DEFAULT_BROKER"  # what Java falls back to when it finds no host name
    address: str = "127.0.0.1"
    processors: int = 1
    home: str = "."
    rocketmq_home: str | None = None
    namesrv_addr: str | None = None


@dataclass(frozen=True, slots=True)
class Key:
    """One property of a table."""

    name: str  # the Java field: what is printed
    attribute: str
    section: str  # the Java class
    java_type: JavaType
    nullable: bool
    default: Value | Callable[[HostFacts], Value]
    used: bool = False  # has an effect here
    important: bool = False  # Java's @ImportantField
    at_least: int | None = None
    at_most: int | None = None
    choices: tuple[str, ...] = ()
    numbered: bool = False  # a choice may also be given by its position
    set_as: str | None = None  # the key in a file, where it differs from the field; "" for none

    def default_for(self, host: HostFacts) -> Value:
        return self.default(host) if callable(self.default) else self.default

    @property
    def file_key(self) -> str:
        return self.name if self.set_as is None else self.set_as


class Change(NamedTuple):
    """A property that an update gave another value."""

    name: str
    old: Value
    new: Value


@dataclass(frozen=True, slots=True)
class _Declaration:
    default: Any
    options: dict[str, Any]


def key(default: T, **options: Any) -> T:  # noqa: ANN401  (checked by Key's own signature)
    """Declare a property with more than a default: used, important, at_least, choices, name, …"""
    return cast("T", _Declaration(default, options))


def from_host(make: Callable[[HostFacts], T], **options: Any) -> T:  # noqa: ANN401  (as above)
    """Declare a property whose default Java takes from the machine."""
    return cast("T", _Declaration(make, options))


class Settings:
    """The base of tables. Subclasses of several tables hold the properties of all of them."""

    SECTION: ClassVar[str] = ""
    KEYS: ClassVar[Mapping[str, Key]] = {}  # by attribute, in Java's order

    _by_file_key: ClassVar[Mapping[str, Key]] = {}

    def __init_subclass__(cls) -> None:
        """Join the tables of the bases in their order; a key that two of them share is one key."""
        merged: dict[str, Key] = {}
        for base in cls.__bases__:
            if issubclass(base, Settings):
                merged.update({k: v for k, v in base.KEYS.items() if k not in merged})
        cls.KEYS = {**merged, **_declared_keys(cls)}
        cls._by_file_key = {k.file_key: k for k in cls.KEYS.values() if k.file_key}

    def __init__(self, host: HostFacts | None = None) -> None:
        host = host or HostFacts()
        self.extra: dict[str, str] = {}  # unknown keys of the file, shown again as Java does
        for name, declared in self.KEYS.items():
            setattr(self, name, declared.default_for(host))

    @classmethod
    def from_properties(
        cls,
        properties: Mapping[str, str],
        *,
        host: HostFacts | None = None,
        source: str = "configuration",
    ) -> tuple[Self, list[str]]:
        """Defaults overlaid with `properties`, and a warning for each key that is not known.

        `source` is the file's name for messages; a value that cannot be used raises ConfigError.
        """
        settings = cls(host)
        settings.update(properties, source=source)
        settings.extra = {k: v for k, v in properties.items() if k not in cls._by_file_key}
        return settings, [cls._describe_unknown(name, source) for name in settings.extra]

    @classmethod
    def _describe_unknown(cls, name: str, source: str) -> str:
        nearest = get_close_matches(name, cls._by_file_key, n=1, cutoff=0.6)
        hint = f"; did you mean {nearest[0]}?" if nearest else ""
        return f"{source}: unknown key {name} is ignored{hint}"

    def update(self, properties: Mapping[str, str], *, source: str = "update") -> list[Change]:
        """Assign the known keys, all or none, and return those whose value changed."""
        known = self._by_file_key
        parsed = [
            (known[name], _parse(known[name], text, source))
            for name, text in properties.items()
            if name in known
        ]
        changes = []
        for declared, value in parsed:
            old = getattr(self, declared.attribute)
            if old != value:
                setattr(self, declared.attribute, value)
                changes.append(Change(declared.name, old, value))
        return changes

    def to_properties(self, sections: Iterable[str]) -> dict[str, str]:
        """The set values of these Java classes by Java's field name, and the file's unknown keys.

        What GET_…_CONFIG shows and a changed configuration is saved as (remoting.Configuration).
        """
        wanted = frozenset(sections)
        printed = {
            declared.name: print_value(value)
            for attribute, declared in self.KEYS.items()
            if declared.section in wanted and (value := getattr(self, attribute)) is not None
        }
        return self.extra | printed

    def describe(self, *, important: bool = False) -> list[str]:
        """The `key=value` lines of the flags -p and, for important properties only, -m."""
        return [
            f"{declared.name}={print_value(getattr(self, attribute))}"
            for attribute, declared in self.KEYS.items()
            if declared.important or not important
        ]


def _declared_keys(table: type[Settings]) -> dict[str, Key]:
    keys = {}
    for attribute, annotation in get_annotations(table).items():
        metadata = getattr(annotation, "__metadata__", None)
        if metadata is not None:
            keys[attribute] = _declared_key(table, attribute, annotation, metadata[0])
    return keys


def _declared_key(
    table: type[Settings],
    attribute: str,
    annotation: Any,  # noqa: ANN401  (an annotation is any object)
    java_type: JavaType,
) -> Key:
    declared = table.__dict__[attribute]
    options: dict[str, Any] = {"name": _camel_case(attribute)}
    default = declared
    if isinstance(declared, _Declaration):
        default = declared.default
        options |= declared.options
    nullable = type(None) in get_args(get_args(annotation)[0])
    return Key(
        attribute=attribute,
        section=options.pop("section", table.SECTION),
        java_type=java_type,
        nullable=nullable,
        default=default,
        **options,
    )


def _camel_case(attribute: str) -> str:
    head, *rest = attribute.split("_")
    return head + "".join(part[:1].upper() + part[1:] for part in rest)


def _parse(declared: Key, text: str, source: str) -> Value:
    """Read a value as Java does, but refuse what Java would silently ignore."""
    text = text.strip()
    if declared.choices:
        return _parse_choice(declared, text, source)
    if declared.java_type == "String":
        return text
    if declared.java_type == "boolean":
        if text.lower() not in ("true", "false"):
            raise _refusal(declared, text, source, "true or false")
        return text.lower() == "true"
    if declared.java_type == "double":
        return _parse_double(declared, text, source)
    return _parse_integer(declared, text, source)


def _parse_choice(declared: Key, text: str, source: str) -> str:
    if declared.numbered and text in map(str, range(len(declared.choices))):
        return declared.choices[int(text)]
    if text not in declared.choices:
        raise _refusal(declared, text, source, f"one of {', '.join(declared.choices)}")
    return text


def _parse_double(declared: Key, text: str, source: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise _refusal(declared, text, source, "a number") from None


def _parse_integer(declared: Key, text: str, source: str) -> int:
    limit = 1 << (_INTEGER_BITS[declared.java_type] - 1)
    low = -limit if declared.at_least is None else declared.at_least
    high = limit - 1 if declared.at_most is None else declared.at_most
    try:
        value = int(text) if text.isascii() and "_" not in text and len(text) <= 20 else None
    except ValueError:
        value = None
    if value is None or not low <= value <= high:
        raise _refusal(declared, text, source, f"a whole number from {low} to {high}")
    return value


def _refusal(declared: Key, text: str, source: str, expected: str) -> ConfigError:
    shown = text if len(text) <= 80 else text[:80] + "…"
    return ConfigError(f"{source}: {declared.file_key}={shown} must be {expected}")


def print_value(value: Value) -> str:
    """A value as Java's toString writes it; a null is empty."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if value is None else str(value)
