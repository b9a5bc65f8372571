"""How rows are to be shown: the format and the shaping options of one command call."""

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
        """Whether only results are printed, never a plan before them, and all fields of a row."""
        return self in _FOR_PROGRAMS

    @property
    def shows_wide_fields(self) -> bool:
        """Whether fields marked as wide are shown unless ``--columns`` says otherwise."""
        return self in _WIDE


_FOR_PROGRAMS = frozenset({Format.JSON, Format.JSONL, Format.YAML, Format.CSV, Format.TSV})
_WIDE = _FOR_PROGRAMS | {Format.WIDE}


class View(NamedTuple):
    """What the options say about printing rows."""

    format: Format
    columns: tuple[str, ...] = ()
    sort: tuple[str, ...] = ()
    where: str | None = None
    limit: int | None = None
    headers: bool = True
    zone: tzinfo | None = None
    raw: bool = False
    terminal: bool = False
    """Whether stdout is a terminal: only then tables are cut to its width."""
    color: bool = False
    now_ms: int = 0
    """What relative times in ``where`` count from."""

    @property
    def picks(self) -> bool:
        """Whether rows are chosen after they were made: ``limit`` counts those only."""
        return bool(self.where or self.sort)
