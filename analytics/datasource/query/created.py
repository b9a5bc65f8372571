"""Tables of ``CREATE TABLE ... USING rocketmq OPTIONS (...)``.

Spark gives their options when the table is made, and none to the reader of a query. It keeps the
schema, so the options are kept there: in the metadata of the columns.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from .errors import OptionError

_KEY: Final = "rocketmq.options"
_TYPES: Final[dict[str, DataType]] = {
    "string": StringType(),
    "boolean": BooleanType(),
    "int": IntegerType(),
    "bigint": LongType(),
    "timestamp": TimestampType(),
    "binary": BinaryType(),
    "array<string>": ArrayType(StringType()),
    "map<string,string>": MapType(StringType(), StringType()),
}


def columns(table: Mapping[str, str], metadata: dict[str, str] | None = None) -> StructType:
    """The columns of a table as Spark's type."""
    return StructType(
        [StructField(name, _TYPES[kind], metadata=metadata) for name, kind in table.items()]
    )


def with_options(table: Mapping[str, str], options: Mapping[str, str]) -> StructType:
    """The columns of a table, with options in them."""
    return columns(table, {_KEY: json.dumps(options)})


def options_in(schema: StructType) -> dict[str, str]:
    """The options that a schema keeps. Raises OptionError if it keeps none."""
    for field in schema:
        kept = (field.metadata or {}).get(_KEY)
        if isinstance(kept, str):
            found: dict[str, str] = json.loads(kept)
            return found
    raise OptionError(
        "no store is named: Spark gives a reader none of the options of CREATE TABLE. Make the "
        "table without a list of columns (they come from the option 'table'), or use CREATE "
        "TEMPORARY VIEW ... USING rocketmq OPTIONS (...)"
    )
