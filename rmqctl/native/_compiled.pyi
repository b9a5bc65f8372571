"""The functions of the C files in this folder; see rmqctl/native/__init__.py."""

from typing import Any

def encoded_rows(
    columns: tuple[tuple[bytes, int, int, tuple[Any, ...]], ...],
    rows: int,
    style: int,
    end: bytes,
    chosen: Any,
    /,
) -> tuple[bytearray, bytearray, list[int]]:
    """See rmqctl.output.encoded_rows."""

def given_rows(
    records: list[bytes],
    columns: tuple[tuple[bytes, int], ...],
    reserved: tuple[bytes, ...],
    is_csv: bool,
    has_places: bool,
    /,
) -> tuple[list[Any], ...]:
    """See rmqctl.produce.given_rows."""

def json_tests(
    paths: tuple[tuple[bytes | int, ...], ...],
    nodes: tuple[tuple[int, int, int, int, tuple[Any, ...]], ...],
    noting: int,
    ends: Any,
    text: Any,
    rows: bytearray,
    /,
) -> tuple[int, int, int, int, int, int]:
    """See rmqctl.parse.json_plan."""

def merged_rows(
    parts: tuple[tuple[Any, Any, Any, int, Any], ...], /
) -> tuple[bytearray, bytearray, bytearray, bytearray | None]:
    """See rmqctl.output.row_block."""
