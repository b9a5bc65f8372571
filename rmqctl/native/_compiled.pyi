"""The functions of the C files in this folder; see rmqctl/native/__init__.py."""

from typing import Any

def encoded_rows(
    columns: tuple[tuple[bytes, int, int, tuple[Any, ...]], ...],
    rows: int,
    style: int,
    end: bytes,
    /,
) -> list[bytes | None]:
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
