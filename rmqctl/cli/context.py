"""The context of one call: options, settings, the clock and output.

Commands get it with :func:`context_of`. They do not read options, the environment, the clock or
``sys.stdout`` themselves.
"""

import os
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import tzinfo
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, TextIO, TypeVar

from rmqctl.cli.paths import expanded
from rmqctl.errors import Refused, UsageProblem
from rmqctl.output.last_line import LAST_LINE
from rmqctl.output.stdout import Stdout
from rmqctl.output.view import Format, View
from rmqctl.parse.lists import parse_names

from . import signals
from .log_format import JSON, LOG_FORMATS, TEXT, first_log_format, typed_log_format
from .marks import Changes
from .settings import Settings, user_data_folder

if TYPE_CHECKING:
    from rmqctl.output.render import RowStream
    from storage.readonly import StoreView

    from .progress import Progress

_SHAPING = frozenset({"output", "columns", "sort", "where", "limit", "tz", "color"})
"""The options of a view whose values can be invalid."""

_DECIDED = ("settings", "zone", "store", "view")
"""Values that depend on options, so they are unknown until all options are parsed."""

_OPPOSITES = {"quiet": "verbose", "verbose": "quiet"}

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])


class StoreChoice(NamedTuple):
    """The store of a command, and how it was found."""

    path: Path
    named: bool
    """Whether the user named it; the default store may be created on first use."""
    origin: str


class Cli:
    """One call of the program."""

    def __init__(self, environ: Mapping[str, str] | None = None, args: Sequence[str] = ()) -> None:
        """``args``: the command line, in which the form of messages is looked for at once."""
        self.environ = os.environ if environ is None else environ
        self.given: dict[str, Any] = {}
        self.command_path = "rmqctl"
        self.words: list[str] = []
        """What was typed after the name of the command."""
        self.failure_code: int | None = None
        """The exit code of every failure, for a command with exit codes of its own."""
        self.changes: Changes | None = Changes.ASKS
        """How the command changes something, as it is marked."""
        self.uses_store = True
        """Whether the command has anything to do with a store."""
        self.incomplete = False
        """The result is incomplete and the user was warned: exit code 8."""
        self.opened: list[StoreView] = []
        """The stores that the command reads."""
        self.at_end: list[Callable[[], None]] = []
        """Called when the command ends, also with an error or by a signal."""
        self.end_span: Callable[[int], None] | None = None
        """Ends the span of this call with the exit code; None without spans."""
        self.named: dict[str, Any] = {}
        """Topics and groups that the command names."""
        self._started = time.time_ns() // 1_000_000
        self._no_color = False
        self._typed_format = typed_log_format(args)
        self._first_format = first_log_format(args, self.environ)
        self._deciding = False
        self._begun = False

    # Options

    def remember(self, name: str, value: Any) -> None:
        """Store the value of a global option; called while the command line is parsed.

        Values that were derived from fewer options are discarded: the target, the zone and the view
        depend on all options, in any order.
        """
        for decided in _DECIDED:
            self.__dict__.pop(decided, None)
        self._check_one_target(name, value)
        if name == "no_color":
            if self.given.get("color", "never") != "never":
                raise UsageProblem(
                    f"--no-color and --color {self.given['color']} exclude each other"
                )
            name, value = "color", "never"
            self._no_color = True
        elif name == "color" and self._no_color and value != "never":
            raise UsageProblem(f"--no-color and --color {value} exclude each other")
        if name == "version":
            from rmqctl import __version__

            self.out.write(f"rmqctl {__version__}\n")
            raise SystemExit(0)
        if name == "store":
            before = self.given.get("store", [])
            value = [*before, *(folder for folder in value if folder not in before)]
        self.given[name] = value

    def _check_one_target(self, name: str, value: Any) -> None:
        """Refuse a second context or settings file; stores are compared once all are known."""
        before = self.given.get(name)
        if name in {"context", "config"} and before not in (None, value):
            raise UsageProblem(f"--{name} {before} and --{name} {value} name two targets; give one")

    def check_one_store(self) -> None:
        """Refuse two different stores; called once the whole command line is parsed."""
        folders = self.given.get("store", ())
        paths = {expanded(folder).resolve(): folder for folder in folders}
        if len(paths) > 1:
            named = " and ".join(f"--store {folder}" for folder in paths.values())
            raise UsageProblem(
                f"{named} name different stores; give one, or compare two with 'store diff A B'"
            )

    def explain_fields(self, ctx: Any) -> None:
        """Answer ``-o help`` and end the call."""
        row_types = printed_by(ctx)
        if self.given.get("output") != "help" or row_types is None:
            return
        if not row_types:
            raise UsageProblem("this command prints no rows, so -o help has no fields to list")
        from rmqctl.output.render import render_help

        render_help(row_types[0], self.view._replace(format=Format.TABLE), self.out)
        raise SystemExit(0)

    def begin(self, command_path: str, *, many_stores: bool = False) -> None:
        """Called once the command line is parsed, before the command runs."""
        self.command_path = command_path
        if not many_stores:
            self.check_one_store()
        self.settings.corrects = command_path.split()[1:2] in (["config"], ["context"])
        self._begun = True
        self._begin_messages()
        if self.end_span is None and not self.settings.corrects and self.flag("otel"):
            from .spans import begin_span

            self.end_span = begin_span(self)
        limit = self.formed("timeout", _duration, None)
        if limit is not None:
            signals.limit_time(limit)

    def check_view(self, *row_types: type) -> None:
        """Raise UsageProblem if rows of these types cannot be shown in this view.

        Called before a command runs, as a command prints after its work.
        """
        if self.settings.corrects and not _SHAPING & self.given.keys():
            return  # an invalid setting must not stop the command that corrects it
        self.progress_style()
        view = self.view
        if view.columns or view.sort or view.where is not None:
            from rmqctl.output.render import check_view

            check_view(row_types, view)

    def check_not_given(self, names: Iterable[str], why: str) -> None:
        """Raise UsageProblem for global options that this command does not support."""
        for name in names:
            if name in self.given:
                raise UsageProblem(f"--{name.replace('_', '-')} {why}")

    @cached_property
    def settings(self) -> Settings:
        """All settings with their origins."""
        return Settings(self.given, self.environ, warn=self.warn)

    def setting(self, name: str, built_in: Any = None) -> Any:
        """The value of a setting, or its built-in default."""
        value = self.settings.get(name)
        return built_in if value is None else value.value

    def formed(self, name: str, parse: Callable[[str], T], built_in: T) -> T:
        """The parsed value of a setting. UsageProblem names the origin of a malformed one.

        A command that corrects settings takes the built-in for one that is not its own option.
        """
        found = self.settings.get(name)
        if found is None:
            return built_in
        if self.settings.corrects and name not in self.given:
            try:
                return parse(str(found.value))
            except ValueError:
                return built_in
        origin = found.origin.removeprefix("option ")
        is_filed = not found.origin.startswith(("option ", "variable "))
        return self.parsed(f"{origin}: {name}" if is_filed else origin, parse, str(found.value))

    def flag(self, name: str) -> bool:
        """Whether a flag is set, by option or setting; an option overrides its opposite."""
        opposite = _OPPOSITES.get(name)
        if opposite is not None and opposite in self.given and name not in self.given:
            return False
        return bool(self.setting(name, built_in=False))

    def parsed(self, option: str, parse: Callable[[str], T], text: str) -> T:
        """Parse the text of an option. UsageProblem names the option if the text is malformed."""
        try:
            return parse(text)
        except ValueError as error:
            raise UsageProblem(f"{option}: {error}") from None

    # The form of messages

    def writes_json(self) -> bool:
        """Whether messages on stderr are JSON: by option, variable or settings file."""
        if self._typed_format is not None or self._deciding:
            return self._first_format == JSON
        self._deciding = True  # settings may have messages of their own
        try:
            return bool(self.setting("log_format") == JSON)
        except (UsageProblem, OSError):
            return self._first_format == JSON
        finally:
            self._deciding = False

    def call_fields(self) -> dict[str, Any]:
        """What is known of this call, for messages that are JSON."""
        fields = {"command": self.command_path.partition(" ")[2] or None, **self.named}
        if self._begun and self.uses_store:
            with suppress(UsageProblem, OSError):
                fields["store"] = str(self.store.path)
        return fields

    def _begin_messages(self) -> None:
        if self.formed("log_format", _one_of(*LOG_FORMATS), TEXT) == JSON:
            from .logs import take_stray_messages

            self.at_end.append(take_stray_messages())

    # The clock and the zone

    @property
    def now_ms(self) -> int:
        """Start of the call in epoch ms; relative times count from it."""
        return self._started

    @cached_property
    def zone(self) -> tzinfo | None:
        """The zone for reading and printing times; None is the local one."""
        return self.formed("tz", _zone, None)

    def time(self, option: str, text: str, *, changes: bool = False) -> int:
        """The time of an option, in epoch ms.

        ``changes``: the command changes something. It then prints how the time was read, which a
        query does with ``--verbose`` only, and refuses a local time that occurs twice or never,
        of which a query warns.
        """
        from storage.parse.times import read_time

        instant = self.parsed(option, lambda value: read_time(value, self.now_ms, self.zone), text)
        if (doubt := instant.doubt) is not None:
            if changes:
                raise UsageProblem(f"{option}: {doubt.problem}; {doubt.remedy}")
            self.warn(f"{option}: {doubt.problem}; {doubt.taken}")
        print_it = self.say if changes else self.detail
        print_it(f"{option} {text.strip()!r} is {instant.understood()}")
        return instant.timestamp

    def warn_of_future(self, option: str, timestamp: int, effect: str) -> None:
        """Warn of an option's time in the future; ``effect`` names the consequence."""
        if timestamp <= self.now_ms:
            return
        from storage.parse.durations import format_duration
        from storage.parse.times import format_time

        self.warn(
            f"{option}: {format_time(timestamp, self.zone, iso=True)} lies in the future "
            f"(in {format_duration(timestamp - self.now_ms)}): {effect}"
        )

    # The store

    @cached_property
    def store(self) -> StoreChoice:
        """The store: the named one, else ``./store`` if it is a store, else the user's own."""
        named = self.settings.get("store")
        if named is not None:
            value = named.value[-1] if isinstance(named.value, list) else named.value
            return StoreChoice(expanded(value).absolute(), True, named.origin)
        from rmqctl.admin.store_folder import looks_like_a_store

        here = Path("store").absolute()
        if looks_like_a_store(here):
            return StoreChoice(here, True, "the folder ./store")
        default = user_data_folder(self.environ) / "store"
        return StoreChoice(default.absolute(), False, "the user's data folder")

    # Printing

    @cached_property
    def out(self) -> Stdout:
        """Standard output, for data only."""
        return Stdout(sys.stdout)

    @cached_property
    def view(self) -> View:
        """The format and shape of the printed rows."""
        terminal = sys.stdout.isatty()
        built_in = Format.TABLE if terminal else Format.PLAIN
        limit = self.given.get("limit")
        return View(
            format=self.formed("output", self._format, built_in),
            columns=parse_names(self.given.get("columns", "")),
            sort=parse_names(self.given.get("sort", "")),
            where=self.given.get("where"),
            limit=None if limit is None else self.parsed("--limit", _count, limit),
            headers=not self.flag("no_headers"),
            zone=self.zone,
            raw=self.flag("raw"),
            terminal=terminal,
            color=self.colored(sys.stdout),
            now_ms=self.now_ms,
            remark=None if self.flag("quiet") else self.remark,
            nothing=self._say_nothing,
        )

    def _format(self, text: str) -> Format:
        """The format with a name; ``help`` is one of the option only, not of a setting."""
        known = [form for form in Format if form is not Format.HELP or "output" in self.given]
        if text not in known:
            raise ValueError(f"{text!r} is not a format (one of {', '.join(known)})")
        return Format(text)

    def remark(self, sentence: str) -> None:
        """Print a sentence about a table on stderr, dim on a terminal with colors."""
        if not self.flag("quiet"):
            LAST_LINE.print(sentence, dim=sys.stderr.isatty() and self.colored(sys.stderr))

    def _say_nothing(self, filtered: bool) -> None:
        """Say that there are no rows; ``filtered``: ``--where`` excluded some, or a filter may.

        Where the user was warned that the result is incomplete, there may be rows all the same.
        """
        if self.incomplete:
            return
        from rmqctl.output.nothing import nothing_sentence

        from .filter_options import FILTERS

        command = self.command_path.partition(" ")[2]
        names = {name.lstrip("-").replace("-", "_") for spec in FILTERS for name in spec.names}
        filtered = filtered or bool(names & self.given.keys())
        sentence = nothing_sentence(command, str(self.store.path), filtered=filtered)
        if sentence:
            self.say(sentence)

    def rows(self, row_type: type, rows: Iterable[Any]) -> int:
        """Print the rows of a list; returns the number of printed rows."""
        from rmqctl.output.render import render_rows

        return render_rows(row_type, rows, self.view, self.out)

    def wants(self, row_type: type, field: str) -> bool:
        """Whether a field of the rows is used; if not, the command need not look it up."""
        from rmqctl.output.render import is_wanted

        return is_wanted(row_type, self.view, field)

    def one(self, row: Any) -> None:
        """Print a single object."""
        from rmqctl.output.render import render_one

        render_one(type(row), row, self.view, self.out)

    def row_stream(self, row_type: type, *, limited: bool = True) -> "RowStream":
        """Print rows as they come; all of them, whatever ``--limit`` says, without ``limited``."""
        from rmqctl.output.render import RowStream

        view = self.view
        return RowStream(row_type, view if limited else view._replace(limit=None), self.out)

    def say(self, sentence: str) -> None:
        """Print a sentence on stderr, unless ``--quiet``."""
        if not self.flag("quiet"):
            LAST_LINE.print(sentence)

    def detail(self, sentence: str) -> None:
        """Print a sentence on stderr, only with ``--verbose``."""
        if self.flag("verbose") or self.flag("debug"):
            LAST_LINE.print(sentence, level="debug")

    def warn(self, sentence: str) -> None:
        """Print a warning on stderr, unless ``--quiet``."""
        if not self.given.get("quiet"):
            LAST_LINE.print(sentence, prefix="rmqctl: warning: ", level="warning")

    def tell_of_damage(self, sentence: str) -> None:
        """Warn of damage or gaps in a store. A command that reads many messages then has an
        incomplete result; commands that check a store judge the damage themselves, and
        ``message get`` has a complete result."""
        words = self.command_path.split()
        one = words[1:] == ["message", "get"]  # its result is complete
        if one or (words[1:2] == ["store"] and words[2:3] not in (["carve"], ["tail"])):
            self.warn(sentence)
        else:
            self.left_out(sentence)

    def left_out(self, sentence: str) -> None:
        """Warn that the result is incomplete, and set exit code 8."""
        self.incomplete = True
        self.warn(sentence)

    def progress(
        self, label: str, unit: str, total: int | None = None, *, lends_stdout: bool = False
    ) -> "Progress":
        """A progress display in the configured style.

        ``lends_stdout``: child programs print to stdout meanwhile, so a terminal shows no bar.
        """
        from .progress import Progress

        style = self.progress_style()
        if style == "auto":
            beside = lends_stdout and sys.stdout.isatty()
            has_bar = sys.stderr.isatty() and not beside and not self.flag("quiet")
            style = "bar" if has_bar else "none"
        return Progress(label, unit, style, total)

    def progress_style(self) -> str:
        """The progress style of the option or setting: auto, plain or none. Raises UsageProblem."""
        return self.formed("progress", _one_of("auto", "plain", "none"), "auto")

    def colored(self, stream: TextIO) -> bool:
        """Whether to write colors to a stream."""
        choice = self.formed("color", _one_of("auto", "always", "never"), "auto")
        if choice != "auto":
            return choice == "always"
        return stream.isatty() and self.environ.get("TERM") != "dumb"

    # Changing

    @property
    def reason(self) -> str | None:
        """The reason of a change, for the change journal."""
        reason = self.setting("reason")
        if not reason:
            return None
        # The journal is UTF-8; arguments may be other bytes.
        return str(reason).encode("utf-8", "surrogateescape").decode("utf-8", "replace")

    def target_of(self, question: str) -> str:
        """A question with the absolute path of its store, unless it has the path already."""
        if not self.uses_store:
            return question
        path = str(self.store.path)
        return question if path in question else f"{question} Store {path}."

    @property
    def has_questions(self) -> bool:
        """Whether a person can be asked: there is a terminal, and no ``--no-input``."""
        return not self.flag("no_input") and sys.stdin.isatty() and sys.stderr.isatty()

    def confirm(self, question: str) -> None:
        """Ask the user. Refused (7) if not confirmed, or without a terminal and ``--yes``."""
        if self.given.get("yes"):
            return
        if not self.has_questions:
            _refuse(
                "no terminal to ask for confirmation; add --yes to proceed, or --dry-run to preview"
            )
        LAST_LINE.ask(f"{self.target_of(question)} [y/N] ")
        if sys.stdin.readline().strip().lower() not in {"y", "yes"}:
            _refuse("not confirmed; nothing was changed")


def _refuse(sentence: str) -> NoReturn:
    raise Refused(sentence)


def _duration(text: str) -> int | None:
    from storage.parse.durations import parse_duration

    return parse_duration(text)


def _zone(text: str) -> tzinfo | None:
    from storage.parse.times import parse_zone

    return parse_zone(text)


def _one_of(*choices: str) -> Callable[[str], str]:
    """A parser that takes only these texts."""

    def parse(text: str) -> str:
        if text not in choices:
            raise ValueError(f"{text!r} is not one of {', '.join(choices)}")
        return text

    return parse


def _count(text: str) -> int:
    if not (text.isascii() and text.isdigit()):
        raise ValueError(f"{text!r} is not a number from 0 on")
    return int(text)


def context_of(ctx: Any) -> Cli:
    """The context of the running command."""
    cli = ctx.obj
    assert isinstance(cli, Cli)
    return cli


def fails_with(code: int) -> Callable[[F], F]:
    """Mark a command function that has one exit code for every failure."""

    def mark(function: F) -> F:
        function.failure_code = code  # type: ignore[attr-defined]
        return function

    return mark


_PRINTED = "rmqctl.printed"


def prints_instead(ctx: Any, row_type: type) -> None:
    """Set the row type of this call; ``-o help`` then explains it."""
    ctx.meta[_PRINTED] = (row_type,)


def printed_by(ctx: Any) -> tuple[type, ...] | None:
    """The row types of this call; None if its command has no such mark."""
    found: tuple[type, ...] | None = ctx.meta.get(_PRINTED, getattr(ctx.command, "row_types", None))
    return found


def prints(*row_types: type) -> Callable[[F], F]:
    """Mark a command function with its row type, which ``-o help`` explains.

    An option may select one of the other types instead, or in addition.
    """

    def mark(function: F) -> F:
        function.row_types = row_types  # type: ignore[attr-defined]
        return function

    return mark


def leaves_arguments(function: F) -> F:
    """Mark a command function whose arguments are not parsed after the first one."""
    function.leaves_arguments = True  # type: ignore[attr-defined]
    return function


def takes_many_stores(function: F) -> F:
    """Mark a command function that reads all stores given with ``--store``."""
    function.many_stores = True  # type: ignore[attr-defined]
    return function
