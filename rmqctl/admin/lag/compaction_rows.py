"""The rows of ``lag compact``."""

from typing import Annotated, NamedTuple

from rmqctl.output.fields import Rank

Table = Annotated[str, "the table: stores, groups, queues, tags, ...", Rank.KEY]
Month = Annotated[str, "the month of the reports, in UTC", Rank.KEY]
Files = Annotated[int, "files that are joined", Rank.KEY]
Into = Annotated[int, "files that they become", Rank.KEY]
Bytes = Annotated[int, "bytes of the files that are joined", Rank.MAIN]


class CompactPlanRow(NamedTuple):
    """The files of a table and month that are to be joined."""

    table: Table
    month: Month
    files: Files
    joined_files: Into
    size_bytes: Bytes


class CompactedRow(NamedTuple):
    """The files of a table and month that were joined."""

    table: Table
    month: Month
    files: Files
    joined_files: Into
    size_bytes: Bytes
    joined_bytes: Annotated[int, "bytes of the files that they became", Rank.MAIN]
    rows: Annotated[int, "rows in these", Rank.MAIN]
    applied: Annotated[bool, "false: some files could not be read, and stay", Rank.KEY]
