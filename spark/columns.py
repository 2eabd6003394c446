"""The columns of the source: names, Arrow types, and what each needs of a record.

Spark's schema is made from the same list (schema.py); this module needs no Spark, so that decoding
can be tested without it.
"""

from typing import Final

import pyarrow as pa

from pyritemq.spark.errors import OptionError

TIMESTAMP: Final = pa.timestamp("us", tz="UTC")
PROPERTIES: Final = pa.map_(
    pa.field("key", pa.string(), nullable=False), pa.field("value", pa.string(), nullable=True)
)

COLUMN_TYPES: Final[dict[str, pa.DataType]] = {
    "key": pa.string(),
    "value": pa.binary(),
    "topic": pa.string(),
    "brokerName": pa.string(),
    "queueId": pa.int32(),
    "queueOffset": pa.int64(),
    "commitLogOffset": pa.int64(),
    "messageId": pa.string(),
    "tags": pa.string(),
    "bornTimestamp": TIMESTAMP,
    "storeTimestamp": TIMESTAMP,
    "bornHost": pa.string(),
    "storeHost": pa.string(),
    "sysFlag": pa.int32(),
    "flag": pa.int32(),
    "reconsumeTimes": pa.int32(),
    "preparedTransactionOffset": pa.int64(),
    "properties": PROPERTIES,
    "bodyCrc": pa.int32(),
}
ALL_COLUMNS: Final = tuple(COLUMN_TYPES)

FROM_PROPERTIES: Final = frozenset({"key", "tags", "messageId", "properties"})
"""Columns for which the properties must be split, which is the dearest part of decoding."""


def parse_columns(text: str) -> tuple[str, ...]:
    """The option `columns`: names separated by commas, in any case, in the order that is given."""
    by_lower = {name.lower(): name for name in ALL_COLUMNS}
    chosen: list[str] = []
    for word in (part.strip() for part in text.split(",")):
        name = by_lower.get(word.lower())
        if name is None:
            raise OptionError(
                f"option 'columns' names '{word}', which is none of {', '.join(ALL_COLUMNS)}"
            )
        if name in chosen:
            raise OptionError(f"option 'columns' names '{name}' twice")
        chosen.append(name)
    return tuple(chosen)


def arrow_schema(columns: tuple[str, ...]) -> pa.Schema:
    return pa.schema([pa.field(name, COLUMN_TYPES[name]) for name in columns])
