"""Finding the settings file of a change, and replacing it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from rmqctl.cli.given_file import read_given
from rmqctl.cli.log_format import LOG_FORMATS
from rmqctl.cli.settings import KEYS, did_you_mean, parse_settings
from rmqctl.errors import CliError, UsageProblem
from rmqctl.exit_codes import NOT_WRITABLE
from rmqctl.output.view import Format
from storage.files.creating import make_folders, replacing
from storage.parse.durations import parse_duration
from storage.parse.times import parse_zone

from .settings_text import CONTEXTS

if TYPE_CHECKING:
    from rmqctl.cli.context import Cli

_CHOICES: Final = {
    "output": tuple(form for form in Format if form is not Format.HELP),
    "color": ("auto", "always", "never"),
    "progress": ("auto", "plain", "none"),
    "log_format": LOG_FORMATS,
}
_TRUE: Final = frozenset({"true", "yes", "on", "1"})
_FALSE: Final = frozenset({"false", "no", "off", "0"})


def known_setting(name: str) -> str:
    """The setting with this name, with ``-`` or ``_``. UsageProblem if there is none."""
    known = name.replace("-", "_")
    if known not in KEYS:
        hint = did_you_mean(known) or "; 'rmqctl broker config' has the settings of a store"
        raise UsageProblem(f"there is no setting {name!r}{hint}")
    return known


def setting_value(name: str, text: str, folder: Path) -> str | bool:
    """The value of a setting from its text. UsageProblem says what is valid.

    A relative path is relative to the working folder; ``folder`` is the folder of the file.
    """
    if KEYS[name][0] is bool:
        if text.lower() not in _TRUE | _FALSE:
            raise UsageProblem(f"{name} must be true or false, not {text!r}")
        return text.lower() in _TRUE
    if name in _CHOICES and text not in _CHOICES[name]:
        raise UsageProblem(f"{name}: {text!r} is not one of {', '.join(_CHOICES[name])}")
    try:
        if name == "timeout":
            parse_duration(text)
        elif name == "tz":
            parse_zone(text)
    except ValueError as error:
        raise UsageProblem(f"{name}: {error}") from None
    if name != "store" or text.startswith("~"):
        return text
    path = Path(text)
    is_beside = not path.is_absolute() and folder.absolute() == Path.cwd()
    return text if is_beside else str(path.absolute())


def chosen_file(cli: Cli, layer: str | None, context: str | None = None) -> Path:
    """The file of a change.

    The file of ``--config``, else of the named layer, else the one that has the context, else the
    user's own.
    """
    places = cli.settings.places()
    if layer is None and places[0].layer == "option":
        return places[0].path
    if layer is None and context is not None:
        for found in cli.settings.layers():
            if context in found.contexts:
                return Path(found.origin)
    if places[0].layer == "option":
        raise UsageProblem(f"--{layer} and --config {places[0].path} exclude each other")
    for place in places:
        if place.layer == (layer or "user"):
            return place.path
    if layer == "project":
        Path.cwd()  # raises: it was removed
    raise UsageProblem("there is no folder for settings of the system: XDG_CONFIG_DIRS names none")


def read_text(path: Path) -> str:
    """The text of a settings file, "" if there is none. UsageProblem for a malformed one."""
    try:
        text = read_given(path).decode()
        parse_settings(text, path.suffix)
    except FileNotFoundError:
        return ""
    except ValueError as error:
        reason = " ".join(str(error).split())
        raise UsageProblem(f"settings file {path} is malformed: {reason}") from error
    return text


def said(path: Path, text: str, context: str | None) -> dict[str, Any]:
    """The settings in a file's text, or those of one of its contexts, spelled with ``_``."""
    values = parse_settings(text, path.suffix)
    if context is not None:
        values = (values.get(CONTEXTS) or {}).get(context) or {}
    return {str(name).replace("-", "_"): value for name, value in values.items()}


def replace_texts(cli: Cli, texts: Mapping[Path, str]) -> dict[Path, CliError]:
    """Replace settings files, each as :func:`replace_text`; none in a dry run, which says so.

    Returns the errors of those that cannot be written; raises the first if none can.
    """
    failed: dict[Path, CliError] = {}
    if cli.flag("dry_run"):
        cli.say("dry run: nothing was changed")
        return failed
    for path, text in texts.items():
        try:
            replace_text(path, text)
        except CliError as error:
            failed[path] = error
    if failed and len(failed) == len(texts):
        raise next(iter(failed.values()))
    return failed


def replace_text(path: Path, text: str) -> None:
    """Replace a settings file atomically; it is on the device when this returns.

    A link stays a link, permissions stay. CliError (5) if it cannot be written.
    """
    target = path.resolve()
    try:
        make_folders(target.parent, follow_folder=True)
        with replacing(target, follow_folder=True) as file:
            file.write(text.encode())
    except OSError as error:
        raise CliError(
            f"settings file {path} cannot be written: {error.strerror}", NOT_WRITABLE
        ) from error


def shown(value: Any) -> str | None:
    """A setting's value as text."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return None if value is None else str(value)


def chosen_layer(*, project: bool, user: bool, system: bool) -> str | None:
    """The layer that the options name; None for none. UsageProblem for several."""
    flags = {"project": project, "user": user, "system": system}
    named = [layer for layer, given in flags.items() if given]
    if len(named) > 1:
        raise UsageProblem(f"--{named[0]} and --{named[1]} exclude each other")
    return named[0] if named else None
