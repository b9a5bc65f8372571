"""Parquet with pyarrow, which the extra ``spark`` installs."""

from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from rmqctl.errors import CliError
from rmqctl.output.fields import Kind, fields_of
from rmqctl.output.message_rows import MessageRow, message_row
from rmqctl.produce.field_names import known_fields, object_of_map

from .formats import ByMessages

if TYPE_CHECKING:
    from rmqctl.produce.sources import ReadBytes
    from storage.format.message import MessageExt

_ROWS: Final = 4096
_BYTES: Final = 16 << 20
_INT64: Final = frozenset({"queue_offset", "commitlog_offset", "prepared_transaction_offset"})


def _arrow() -> Any:
    try:
        import_module("pyarrow.parquet")
        return import_module("pyarrow")
    except ImportError:
        raise CliError(
            "Parquet needs the Python package pyarrow; install rmqctl[spark], or use --as jsonl"
        ) from None


def _schema(arrow: Any) -> Any:
    """The fields of a message row; the body is bytes, so body_base64 is missing."""
    fields = []
    for field in fields_of(MessageRow):
        if field.name == "body_base64":
            continue
        kind: Any
        if field.name == "body":
            kind = arrow.binary()
        elif field.kind is Kind.ARRAY:
            kind = arrow.list_(arrow.string())
        elif field.kind is Kind.OBJECT:
            kind = arrow.map_(arrow.string(), arrow.string())
        elif field.kind is Kind.STRING:
            kind = arrow.string()
        elif field.kind is Kind.TIMESTAMP or field.name in _INT64:
            kind = arrow.int64()
        else:
            kind = arrow.int32()
        fields.append(arrow.field(field.name, kind))
    return arrow.schema(fields)


class ParquetMessages(ByMessages):
    """Writes messages in batches of some thousands."""

    def __init__(self, out: Any) -> None:
        self._arrow = _arrow()
        self._schema = _schema(self._arrow)
        # Bodies hardly repeat: a dictionary, or the least and the largest one, would be copies.
        names = [field.name for field in self._schema if field.name != "body"]
        self._writer = self._arrow.parquet.ParquetWriter(
            out, self._schema, use_dictionary=names, write_statistics=names
        )
        self._rows: list[dict[str, Any]] = []
        self._bytes = 0

    def write(self, message: "MessageExt") -> None:
        """Add a message."""
        row = message_row(message, "none")._asdict()
        del row["body_base64"]
        row["body"] = message.body
        row["properties"] = list(message.properties.items())
        self._rows.append(row)
        self.count += 1
        self._bytes += message.store_size + len(row["body"])
        if len(self._rows) == _ROWS or self._bytes > _BYTES:
            self._flush()

    def finish(self) -> None:
        """Write the rest, and the footer."""
        self._flush()
        self._writer.close()

    def _flush(self) -> None:
        rows, self._rows, self._bytes = self._rows, [], 0
        table = self._arrow.Table.from_pylist(rows, self._schema)
        del rows
        self._writer.write_table(table)


def read_parquet(path: str, read: "ReadBytes") -> Iterator[dict[str, Any]]:
    """The rows of a file, for :func:`row_fields`. ValueError for another file. ``read`` counts
    bytes as if all rows were equally long."""
    arrow = _arrow()
    try:
        file = arrow.parquet.ParquetFile(path)
        size, rows, passed = Path(path).stat().st_size, file.metadata.num_rows, 0
        for batch in file.iter_batches(_ROWS):
            passed += batch.num_rows
            read.count = size * passed // max(rows, 1)
            yield from batch.to_pylist()
    except arrow.ArrowException as error:
        raise ValueError(f"cannot be read as Parquet: {error}") from None


def row_fields(cells: dict[str, Any], *, ignore_unknown: bool) -> dict[str, Any]:
    """The cells of a row by field names; the body is bytes. ValueError for an unknown name.

    Properties are an object, whether the column is a map, a list of {key, value} or a struct.
    """
    row = known_fields(cells, ignore_unknown=ignore_unknown)
    if "properties" in row:
        properties = object_of_map(row["properties"])
        row["properties"] = {} if properties is None else properties
    if not isinstance(row.get("body"), bytes):
        raise ValueError("has no column body of bytes")
    return row
