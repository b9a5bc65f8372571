"""``rmqctl store dump``: decodes a file of a store, or one position of its log."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from rmqctl.cli.context import Cli, context_of, prints
from rmqctl.cli.global_options import ROW_OPTIONS
from rmqctl.cli.opening import open_for_reading
from rmqctl.errors import UsageProblem
from rmqctl.exit_codes import DAMAGED, DONE
from rmqctl.output.values import as_json, bytes_for_terminal
from rmqctl.output.view import Format
from storage.files.bounded import read_bounded

from .files import DumpFile, FileKind, config_of, find_file, map_file
from .rows import (
    CheckpointDump,
    ExtUnitDump,
    HexDump,
    IndexEntryDump,
    IndexHeaderDump,
    PageDump,
    PageQueueDump,
    RecordDump,
    UnitDump,
)

if TYPE_CHECKING:
    from storage.files.read_files import ReadMap

_OBJECTS = (Format.JSON, Format.YAML)
_MOST_IN_ONE_OBJECT = 100_000
_DOCUMENT = (Format.JSON, Format.JSONL, Format.YAML)
"""The formats of files of JSON. A file of text is printed as it is, whatever the format."""


@prints(
    RecordDump,
    HexDump,
    UnitDump,
    ExtUnitDump,
    IndexHeaderDump,
    IndexEntryDump,
    CheckpointDump,
    PageDump,
    PageQueueDump,
)
def dump(
    ctx: typer.Context,
    what: Annotated[str, typer.Argument(metavar="FILE|POS", help="A file, or a log position")],
    form: Annotated[
        str, typer.Option("--as", metavar="FORM", help="fields, or hex: bytes with field names")
    ] = "fields",
) -> int:
    """Decode a file of a store, or the record at a log position.

    Decodes commit log, consume queue, index and checkpoint files, settings, and rmqctl's own files,
    and shows damage. A file name may be relative to the working folder or to the store.

    All records of a file:             rmqctl store dump commitlog/00000000000000000000
    Damage in a file:                  rmqctl store dump FILE --where 'problem != null'
    One record:                        rmqctl store dump 165
    Its bytes, field by field:         rmqctl store dump 165 --as hex
    A queue's units:                   rmqctl store dump consumequeue/orders/0/0000...
    """
    from pathlib import Path

    cli = context_of(ctx)
    if form not in ("fields", "hex"):
        raise UsageProblem(f"--as: {form!r} is neither fields nor hex")
    if what.isascii() and what.isdigit() and not Path(what).exists():
        return _dump_position(cli, int(what), form)
    file = find_file(cli, what)
    if form == "hex":
        _dump_bytes(cli, file)
    else:
        _dump_file(cli, file)
    return DONE


def _dump_bytes(cli: Cli, file: DumpFile) -> None:
    from .hex import hex_rows

    mapped = map_file(file.path)
    if mapped is None:
        cli.say(f"{file.path} is empty")
    else:
        cli.rows(HexDump, hex_rows(file, mapped))


def _dump_position(cli: Cli, position: int, form: str) -> int:
    from .position import bytes_at, piece_at

    with open_for_reading(cli) as broker:
        piece = piece_at(broker.view, position)
        if form == "hex":
            cli.rows(HexDump, bytes_at(broker.view, piece))
            return DAMAGED if piece.problem else DONE
    if not cli.view.columns:  # then tables show all fields
        cli.view = cli.view._replace(columns=_known_fields(cli, piece))
    cli.one(piece)
    return DAMAGED if piece.problem else DONE


def _known_fields(cli: Cli, piece: RecordDump) -> tuple[str, ...]:
    """All fields of a record; in tables without those that are omitted if null."""
    from rmqctl.output.fields import fields_of

    programs = cli.view.format.for_programs
    return tuple(
        field.name
        for field, value in zip(fields_of(RecordDump), piece, strict=True)
        if programs or value is not None or not field.omit_null
    )


def _dump_file(cli: Cli, file: DumpFile) -> None:
    from . import small_files

    _check_form(cli, file)
    match file.kind:
        case FileKind.CHECKPOINT:
            cli.one(small_files.checkpoint(file.path))
        case FileKind.JSON:
            _print_document(cli, small_files.document(file.path))
        case FileKind.LINES:
            entries = small_files.journal_lines(file.path)
            if "output" in cli.given and cli.view.format in _OBJECTS:
                _print_document(cli, list(entries))
            else:
                for entry in entries:
                    cli.out.write(as_json(entry) + "\n")
        case FileKind.TEXT:
            data = read_bounded(file.path)
            cli.out.write_bytes(bytes_for_terminal(data) if cli.view.terminal else data)
        case FileKind.PAGE:
            _print_page(cli, file)
        case _:
            mapped = map_file(file.path)
            if mapped is None:
                cli.say(f"{file.path} is empty")
            else:
                _dump_mapped(cli, file, mapped)


def _check_form(cli: Cli, file: DumpFile) -> None:
    """Refuse what a file without rows cannot be given in; a format of the settings is ignored."""
    if file.kind not in (FileKind.JSON, FileKind.LINES, FileKind.TEXT):
        return
    why = f"is for rows, and {file.path} has none ({file.kind})"
    cli.check_not_given(ROW_OPTIONS, why)
    is_text = file.kind is FileKind.TEXT
    if "output" in cli.given and not is_text and cli.view.format not in _DOCUMENT:
        raise UsageProblem(f"--output {cli.view.format} {why}: take {', '.join(_DOCUMENT)}")


def _dump_mapped(cli: Cli, file: DumpFile, mapped: "ReadMap") -> None:
    match file.kind:
        case FileKind.LOG:
            from .log import record_rows

            cli.rows(RecordDump, record_rows(mapped, file.path))
        case FileKind.QUEUE:
            from .queue import unit_rows

            cli.rows(UnitDump, unit_rows(mapped, file.path))
        case FileKind.EXT:
            from .queue import ext_unit_rows

            cli.rows(ExtUnitDump, ext_unit_rows(mapped))
        case FileKind.INDEX:
            _print_index(cli, file, mapped)


def _print_index(cli: Cli, file: DumpFile, mapped: "ReadMap") -> None:
    from itertools import islice

    from .index import IndexDump

    index = IndexDump(mapped, file.path, config_of(file))
    if cli.view.format in _OBJECTS:
        entries = list(islice(index.entries(), _MOST_IN_ONE_OBJECT + 1))
        if len(entries) > _MOST_IN_ONE_OBJECT:
            entries.pop()
            cli.warn(f"only {_MOST_IN_ONE_OBJECT} entries are shown; -o jsonl prints all")
        cli.one(index.header._replace(entries=entries))
        return
    _print_head(cli, index.header)
    cli.rows(IndexEntryDump, index.entries())


def _print_page(cli: Cli, file: DumpFile) -> None:
    from .small_files import shared_state

    page = shared_state(file.path.parent.parent)
    if cli.view.format in _OBJECTS:
        cli.one(page)
        return
    _print_head(cli, page._replace(queues=[]))
    cli.rows(PageQueueDump, page.queues)


def _print_head(cli: Cli, head: Any) -> None:
    """The head before a list, in tables only; line formats have the list alone."""
    if cli.view.format.for_programs:
        return
    from rmqctl.output.render import render_one

    shape = cli.view._replace(columns=(), sort=(), where=None, limit=None)
    render_one(type(head), head, shape, cli.out)
    cli.out.write("\n")


def _print_document(cli: Cli, value: Any) -> None:
    """A settings file, as JSON or YAML; one line per entry in line formats."""
    match cli.view.format:
        case Format.YAML:
            from rmqctl.output.encoders import as_yaml

            cli.out.write(as_yaml(value))
        case Format.JSONL:
            cli.out.write(as_json(value) + "\n")
        case _:
            cli.out.write(as_json(value, indent=2) + "\n")
