"""The application: one call from arguments to exit code.

Whatever ends a call early is raised as an exception. Only this module turns an exception into a
sentence on stderr and an exit code.
"""

import contextlib
import errno
import gc
import os
import sys
import time
from collections.abc import Sequence
from typing import Any, Final, NoReturn

import typer

from rmqctl.cli.context import Cli
from rmqctl.cli.log_format import JSON, first_log_format
from rmqctl.cli.logs import show_warnings
from rmqctl.cli.paths import working_folder
from rmqctl.first_answers import complete, is_completed, use_utf8
from rmqctl.output.last_line import LAST_LINE

from . import exit_codes
from .cli import lazy, signals
from .errors import CliError, UsageProblem

# Typer may carry its own copy of click or use the installed one; either way this is its
# UsageError.
_USAGE_ERROR = typer.BadParameter.__mro__[1]


def run() -> NoReturn:
    """Run the command line of this process; always raises SystemExit."""
    code = main(sys.argv[1:])
    signals.end_with(code)
    try:
        sys.stderr.flush()
    except OSError:  # the interpreter would try once more, and end with 120
        signals.silence(sys.stderr)
    # Everything is closed and flushed. Python would search all objects for cycles once more,
    # which takes a sixth of the time of a short command.
    gc.freeze()
    sys.exit(code)


def main(args: Sequence[str]) -> int:
    """Run one command line and return its exit code; stdout is flushed when this returns."""
    use_utf8()
    signals.install()
    try:
        return _main(args)
    except KeyboardInterrupt:  # while an error was reported, say
        return exit_codes.INTERRUPTED
    except signals.Terminated:
        return exit_codes.TERMINATED


def _main(args: Sequence[str]) -> int:
    if is_completed():
        return complete(args)
    is_json = first_log_format(args, os.environ) == JSON
    LAST_LINE.writes_json, LAST_LINE.fields = lambda: is_json, dict
    if not _clock_is_plausible():
        _tell(
            "the clock of this machine shows a time before 1970 or after 2262, "
            "which no store can hold; set the clock",
            exit_codes.FAILURE,
        )
        return exit_codes.FAILURE
    cli = Cli(args=args)
    LAST_LINE.writes_json, LAST_LINE.fields = cli.writes_json, cli.call_fields
    show_warnings(cli)
    try:
        try:
            code = _flushed(cli, _invoke(cli, [_as_utf8(arg) for arg in args]))
        finally:
            signals.end_time_limit()
    except BaseException as error:  # noqa: BLE001 - the one place where all of them end
        code = _end(cli, error)
    if cli.end_span is not None:
        try:
            cli.end_span(code)
        except BaseException as error:  # noqa: BLE001 - as above
            if isinstance(error, Exception):  # the command has done its work
                cli.warn(f"the trace of this call is not sent: {error}")
            else:
                code = _end(cli, error)
    return code


def _clock_is_plausible() -> bool:
    try:
        return time.time_ns() >= 0
    except OverflowError:  # Python's time ends in 2262
        return False


def _invoke(cli: Cli, args: list[str]) -> int:
    root = lazy.root()
    with root.make_context("rmqctl", args, obj=cli) as ctx:
        try:
            result: object = root.invoke(ctx)
        finally:
            with contextlib.suppress(OSError):  # standard error may be closed
                for call in cli.at_end:
                    call()
    code = result if isinstance(result, int) else exit_codes.DONE
    for view in cli.opened:
        sentence = view.lost_end()
        if sentence is not None:
            cli.tell_of_damage(sentence)
    if code == exit_codes.DONE and cli.incomplete:
        return exit_codes.PARTLY if cli.failure_code is None else cli.failure_code
    return code


def _end(cli: Cli, error: BaseException) -> int:
    """Print the error, if there is one to print; return the exit code."""
    match error:
        case SystemExit():
            return _flushed(cli, error.code if isinstance(error.code, int) else exit_codes.FAILURE)
        case typer.Exit():
            return _flushed(cli, error.exit_code)
        case BrokenPipeError():
            signals.silence_stdout()
            return exit_codes.BROKEN_PIPE
        case KeyboardInterrupt():
            code, sentence = exit_codes.INTERRUPTED, ""
        case signals.Terminated():
            code, sentence = exit_codes.TERMINATED, ""
        case signals.TimeLimit():
            code, sentence = exit_codes.TIMED_OUT, f"timed out after {cli.setting('timeout')}"
        case _:
            code, sentence = judge(error, cli.command_path)
            if code == exit_codes.NOT_FOUND:
                sentence += _meant(cli, sentence)
            elif code == exit_codes.USAGE:
                hint = _usage_meant(cli, error, sentence)
                sentence = (sentence.partition(" (Possible")[0] if hint else sentence) + hint
    trace = None
    if _shows_traces(cli) and not isinstance(error, KeyboardInterrupt):
        import traceback

        trace = "".join(traceback.format_exception(error)).rstrip()
    if sentence:
        hint = f"; see '{_help_of(cli, error)}'" if code == exit_codes.USAGE else ""
        code = code if cli.failure_code is None else cli.failure_code
        _tell(f"{_one_line(sentence)}{hint}", code, trace)
    elif trace:
        _tell("", code, trace)
    return _flushed(cli, code)


def _shows_traces(cli: Cli) -> bool:
    try:
        return cli.flag("debug")
    except (UsageProblem, OSError):  # settings may be what failed
        return bool(cli.given.get("debug"))


def _tell(sentence: str, code: int, trace: str | None = None) -> None:
    """Print an error and its traceback; as JSON they are one object. If standard error takes
    nothing more, only the exit code reports it."""
    if LAST_LINE.writes_json():
        fields = {"exit_code": code, "traceback": trace}
        LAST_LINE.print(sentence, level="error", fields=fields)
        return
    if trace:
        LAST_LINE.print(trace)
    if sentence:
        LAST_LINE.print(sentence, prefix="rmqctl: ")


def _meant(cli: Cli, sentence: str) -> str:
    """A similar topic or group that exists; never raises, as an error is being reported."""
    from rmqctl.completion.suggest import thing_meant

    with contextlib.suppress(Exception):
        return thing_meant(cli, sentence)
    return ""


def _usage_meant(cli: Cli, error: BaseException, sentence: str) -> str:
    """What was meant by a command, an option or an argument that is wrong."""
    ctx: Any = getattr(error, "ctx", None)
    from rmqctl.cli.global_options import SPECS
    from rmqctl.completion import suggest

    if ctx is None:
        return suggest.format_meant(sentence)
    group, command = ctx.command, ctx.command_path.partition(" ")[2]
    if isinstance(option := getattr(error, "option_name", None), str):
        known = {name for one in group.params for name in one.opts}
        hint = suggest.option_meant(option, known, command, getattr(group, "table", None))
        if hint or suggest.is_like_one(option, known):
            return hint
        everywhere = {name for spec in SPECS for name in spec.names}
        about = [(one.opts[0], getattr(one, "help", None) or "") for one in group.params]
        own = [one for one in about if one[0].startswith("-") and one[0] not in everywhere]
        return suggest.option_by_task(option, group.help or "", own)
    if isinstance(group, lazy.LazyGroup):
        if group.unknown is None:
            return ""
        return suggest.command_meant(group.unknown, group.table, group.after_unknown, cli)
    if "unexpected extra argument" in sentence:
        return suggest.extra_meant(command, cli.words)
    if sentence.startswith("missing argument"):
        return suggest.missing_meant(command)
    return suggest.invalid_meant(command, sentence)


def judge(error: BaseException, command: str = "rmqctl") -> tuple[int, str]:
    """The exit code and the sentence of an error that ended a command."""
    if isinstance(error, CliError):
        return error.exit_code, str(error)
    if isinstance(error, _USAGE_ERROR):
        message = getattr(error, "format_message", error.__str__)()
        options = getattr(error, "possibilities", None)
        if options:  # some versions of Typer print them as Python's tuple
            message = f"{error} (Possible options: {', '.join(sorted(options))})"
        return exit_codes.USAGE, message[:1].lower() + message[1:].rstrip(".")
    for library_error, code in _library_codes():
        if isinstance(error, library_error):
            return code, str(error)
    if isinstance(error, PermissionError):
        return exit_codes.NOT_WRITABLE, _of_the_system(error, command)
    if isinstance(error, OSError):
        return exit_codes.FAILURE, _of_the_system(error, command)
    if isinstance(error, MemoryError):
        return exit_codes.FAILURE, "out of memory"
    name = type(error).__name__
    return exit_codes.FAILURE, f"internal error: {name}: {error} (--debug shows where)"


def _library_codes() -> Sequence[tuple[type[Exception], int]]:
    """Errors of the libraries with an exit code of their own; the first match counts."""
    from analytics import errors as analytics
    from broker import errors as broker
    from storage import errors
    from storage.format.errors import BodyError

    return (
        (analytics.NoSuchStoreError, exit_codes.NOT_FOUND),
        (analytics.ManifestError, exit_codes.USAGE),
        (analytics.KeptError, exit_codes.NOT_FOUND),
        (analytics.JoinedError, exit_codes.REFUSED),
        (analytics.CompactionRunsError, exit_codes.NOT_WRITABLE),
        (analytics.AnalyticsError, exit_codes.FAILURE),
        (broker.InvalidNameError, exit_codes.USAGE),
        (broker.MessageIllegalError, exit_codes.USAGE),
        (broker.SubscriptionParseError, exit_codes.USAGE),
        (broker.OffsetChangedError, exit_codes.CHANGED),
        (broker.TopicNotExistError, exit_codes.NOT_FOUND),
        (broker.SubscriptionGroupNotExistError, exit_codes.NOT_FOUND),
        (broker.ServiceNotAvailableError, exit_codes.NOT_WRITABLE),
        (broker.NoPermissionError, exit_codes.REFUSED),
        (broker.ClientIdInUseError, exit_codes.REFUSED),
        (errors.StoreNotFoundError, exit_codes.NOT_FOUND),
        (errors.NotKnownError, exit_codes.NOT_FOUND),
        (errors.StoreInUseError, exit_codes.NOT_WRITABLE),
        (errors.StoreNotWritableError, exit_codes.NOT_WRITABLE),
        (errors.WriteLockTimeoutError, exit_codes.NOT_WRITABLE),
        (errors.StoreChangedError, exit_codes.CHANGED),
        (errors.CorruptFileError, exit_codes.DAMAGED),
        (BodyError, exit_codes.DAMAGED),
        (errors.StoreContradictionError, exit_codes.DAMAGED),
        (errors.InvalidMessageError, exit_codes.USAGE),
        (errors.RocketMQError, exit_codes.FAILURE),
    )


def _of_the_system(error: OSError, command: str) -> str:
    """An error of the operating system, with the file, and what was done to it if that is known."""
    reason = error.strerror or str(error) or type(error).__name__
    doing = ", ".join(getattr(error, "__notes__", ()))
    if doing:
        reason += f" ({doing})"
    # Of a file that is renamed, the new name is the known one.
    name = error.filename2 or error.filename
    if isinstance(name, (str, bytes, os.PathLike)):
        return f"{os.fsdecode(name)}: {reason}"
    if error.errno == errno.ENOENT and working_folder() is None:
        return "the working folder was removed; go to another one, or give absolute paths"
    return f"'{command}' failed: {reason}; the system names no file, --debug shows where"


def _help_of(cli: Cli, error: BaseException) -> str:
    ctx: Any = getattr(error, "ctx", None)
    return f"{ctx.command_path if ctx else cli.command_path} --help"


_LONGEST_WORD: Final = 500
"""Most characters of one word of an error. Paths and ids are shorter; a longer value is cut."""
_LONGEST_SENTENCE: Final = 3000


def _one_line(sentence: str) -> str:
    line = " ".join(
        word if len(word) <= _LONGEST_WORD else f"{word[:200]}...{word[-50:]}"
        for word in sentence.split()
    )
    return line if len(line) <= _LONGEST_SENTENCE else f"{line[:1000]} ... {line[-1000:]}"


def _flushed(cli: Cli, code: int) -> int:
    """Flush stdout. A closed pipe is silent; a full disk is reported."""
    try:
        cli.out.flush()
        sys.stdout.flush()
    except BrokenPipeError:
        signals.silence_stdout()
        return exit_codes.BROKEN_PIPE
    except (CliError, OSError) as error:
        signals.silence_stdout()
        if code == exit_codes.DONE:
            code = exit_codes.FAILURE if cli.failure_code is None else cli.failure_code
            _tell(str(error), code)
    return code


def _as_utf8(argument: str) -> str:
    """An argument as UTF-8; the interpreter may have decoded it in another encoding."""
    return os.fsencode(argument).decode("utf-8", "surrogateescape")
