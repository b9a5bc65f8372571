"""The view of a call: the format and the options that shape rows."""

from collections.abc import Callable
from datetime import tzinfo
from enum import StrEnum
from typing import NamedTuple


class Format(StrEnum):
    """The values of ``-o``; ``help`` prints the fields instead of running the command."""

    TABLE = "table"
    WIDE = "wide"
    PLAIN = "plain"
    JSON = "json"
    JSONL = "jsonl"
    YAML = "yaml"
    CSV = "csv"
    TSV = "tsv"
    MD = "md"
    HELP = "help"

    @property
    def for_programs(self) -> bool:
        """Whether it prints only results, never a plan before them, with all fields of a row."""
        return self in _FOR_PROGRAMS

    @property
    def has_values(self) -> bool:
        """Whether a cell may be any JSON value, so that ``--body json`` need not be a text."""
        return self in (Format.JSON, Format.JSONL, Format.YAML)

    @property
    def shows_wide_fields(self) -> bool:
        """Whether fields marked as wide are shown unless ``--columns`` says otherwise."""
        return self in _WIDE


_FOR_PROGRAMS = frozenset({Format.JSON, Format.JSONL, Format.YAML, Format.CSV, Format.TSV})
_WIDE = _FOR_PROGRAMS | {Format.WIDE}


class View(NamedTuple):
    """The options for printing rows."""

    format: Format
    columns: tuple[str, ...] = ()
    sort: tuple[str, ...] = ()
    where: str | None = None
    limit: int | None = None
    headers: bool = True
    zone: tzinfo | None = None
    raw: bool = False
    terminal: bool = False
    """Whether stdout is a terminal: only then tables are fitted to its width."""
    color: bool = False
    now_ms: int = 0
    """The time to which relative times in ``where`` refer."""
    remark: Callable[[str], None] | None = None
    """Prints a sentence about a table on stderr; None with ``--quiet``."""
    nothing: Callable[[bool], None] | None = None
    """Says on stderr that there are no rows; its argument: whether ``where`` excluded some."""

    @property
    def is_shaped(self) -> bool:
        """Whether an option says which rows or fields are shown, or in which order."""
        return bool(self.columns or self.sort or self.where) or self.limit is not None

    @property
    def picks(self) -> bool:
        """Whether rows are filtered after the command built them: ``limit`` counts those only."""
        return bool(self.where or self.sort)
