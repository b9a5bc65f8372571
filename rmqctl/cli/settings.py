"""Settings and their origins.

Option > context of ``--context`` > file of ``--config`` > environment variable > context >
project file > user file > system file > built-in. A context is a named table of settings
(``[contexts.NAME]``) in any of the files. Paths in a file are relative to that file. Files:
``rmqctl.toml`` or ``.rmqctl.yaml`` in the working folder or above, ``rmqctl/config.toml`` (or
``.yaml``) in the XDG config folders; ``--config`` names one instead of the project's and the
user's.

The command line comes before the environment: a variable that was exported earlier must not
redirect a command that names its target.
"""

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from rmqctl.cli.paths import base_folder, expanded, working_folder
from rmqctl.errors import UsageProblem

KEYS: Final[Mapping[str, tuple[type, str]]] = {
    "store": (str, "folder of the store"),
    "context": (str, "named set of settings in use"),
    "output": (str, "output format"),
    "tz": (str, "time zone for reading and printing times"),
    "raw": (bool, "print raw milliseconds, bytes and ids"),
    "color": (str, "use color: auto, always or never"),
    "progress": (str, "progress on stderr: auto, plain or none"),
    "quiet": (bool, "print less on stderr"),
    "verbose": (bool, "print more on stderr"),
    "log_format": (str, "form of messages on stderr: text or json"),
    "otel": (bool, "make spans of OpenTelemetry"),
    "no_input": (bool, "never prompt"),
    "no_headers": (bool, "print no header line"),
    "timeout": (str, "time limit of a command"),
    "reason": (str, "reason to record in the journal with each change"),
    "console_write": (str, "changes in the console: ask (after :write), or never"),
    "console_copy": (str, "copying in the console: auto, terminal (OSC 52) or file"),
}
"""Every setting of a settings file: its type and meaning."""

VARIABLES: Final[Mapping[str, tuple[type, str]]] = {
    "config": (str, "settings file in place of the project's and the user's"),
    "debug": (bool, "show a traceback on errors"),
    "dry_run": (bool, "change nothing, as --dry-run; a change without a dry run is refused"),
}
"""Settings of variables only, such as RMQCTL_DRY_RUN, not of files: type and meaning."""
COLORS: Final[Mapping[str, str]] = {"NO_COLOR": "never", "FORCE_COLOR": "always"}
"""Variables of other programs, too, and the ``color`` that each means if it has a value."""
_LARGEST: Final = 64 << 20
"""Most bytes of a settings file."""
_PATHS: Final = frozenset({"store"})
PROJECT_FILES: Final = ("rmqctl.toml", ".rmqctl.yaml", ".rmqctl.yml")
HOME_FILES: Final = ("config.toml", "config.yaml", "config.yml")


class Value(NamedTuple):
    """A setting's value and its origin, as ``config show --origin`` prints it."""

    value: Any
    origin: str


class Place(NamedTuple):
    """A settings file that is read if it exists."""

    layer: str
    """``option``, ``project``, ``user`` or ``system``."""
    path: Path
    exists: bool


class Layer(NamedTuple):
    """The settings of one file."""

    origin: str
    values: dict[str, Any]
    contexts: dict[str, dict[str, Any]]


class Settings:
    """Looks settings up, layer by layer; files are read on first use."""

    def __init__(
        self,
        options: Mapping[str, Any],
        environ: Mapping[str, str] = os.environ,
        folder: Path | None = None,
        warn: Callable[[str], None] = lambda sentence: None,
    ) -> None:
        self._options = options
        self._environ = environ
        self._working_folder = folder or working_folder()
        self._warn = warn
        self._layers: list[Layer] | None = None
        self._late: list[str] = []
        """Warnings about files: given when all files are read, as a file says in which form."""
        self._warned = False
        self.corrects = False
        """Whether this call corrects settings: an unknown context is then only a warning."""

    def get(self, name: str) -> Value | None:
        """The setting's value and origin; None if nothing sets it (then the default applies)."""
        typed = self._typed(name)
        if typed is not None:
            return typed
        if name == "context":
            return self._context()
        layers = self._by_strength()
        for layer in layers[0]:
            if name in layer.values:
                return Value(layer.values[name], layer.origin)
        found = self._variable(name)
        if found is not None:
            return found
        for layer in layers[1]:
            if name in layer.values:
                return Value(layer.values[name], layer.origin)
        return None

    def _by_strength(self) -> tuple[list[Layer], list[Layer]]:
        """The layers above the environment, and those below it."""
        contexts, files = self.context_layers(), self.layers()
        if self._typed("config") is not None:
            if self._context_is_typed(files[0]):
                return [*contexts, *files[:1]], files[1:]
            return files[:1], [*contexts, *files[1:]]
        if self._typed("context") is not None:
            return contexts, files
        return [], [*contexts, *files]

    def _context_is_typed(self, typed_file: Layer) -> bool:
        """Whether an option names the context in use, or the file that names it."""
        return self._typed("context") is not None or "context" in typed_file.values

    def _typed(self, name: str) -> Value | None:
        """The value of the option."""
        value = self._options.get(name)
        return None if value is None else Value(value, f"option --{name.replace('_', '-')}")

    def _variable(self, name: str) -> Value | None:
        """The value of the variable, or of a standard one such as NO_COLOR."""
        variable = f"RMQCTL_{name.upper()}"
        known = KEYS.get(name) or VARIABLES.get(name)
        text = self._environ.get(variable) if known else None
        if known and text:
            return Value(_as_kind(known[0], text, variable), f"variable {variable}")
        if name == "color":
            for variable, choice in COLORS.items():
                if self._environ.get(variable):
                    return Value(choice, f"variable {variable}")
        return None

    def _given(self, name: str) -> Value | None:
        """The value of the option or the variable."""
        typed = self._typed(name)
        return self._variable(name) if typed is None else typed

    def _context(self) -> Value | None:
        """The name of the context in use, and its origin."""
        typed = self._typed("context")
        if typed is not None:
            return typed
        layers = self.layers()
        if self._typed("config") is not None and "context" in layers[0].values:
            return Value(layers[0].values["context"], layers[0].origin)
        found = self._variable("context")
        if found is not None:
            return found
        for layer in layers:
            if "context" in layer.values:
                return Value(layer.values["context"], layer.origin)
        return None

    def context_name(self) -> str | None:
        """The context in use: by option, ``--config`` file, variable or another file."""
        found = self._context()
        return None if found is None else str(found.value)

    def context_layers(self) -> list[Layer]:
        """The settings of the context in use, file by file. UsageProblem if no file has it."""
        name = self.context_name()
        if name is None:
            return []
        found = [
            Layer(f"context {name} in {layer.origin}", layer.contexts[name], {})
            for layer in self.layers()
            if name in layer.contexts
        ]
        if not found:
            known = sorted({context for layer in self.layers() for context in layer.contexts})
            hint = f"known: {', '.join(known)}" if known else "no settings file defines any"
            sentence = f"no context {name!r} ({hint})"
            elsewhere = self._typed("config") is not None and not self._context_is_typed(
                self.layers()[0]
            )
            if not elsewhere and (not self.corrects or self._given("context") is not None):
                raise UsageProblem(sentence)
            if not self._warned:
                self._warned = True
                self._warn(sentence)
        return found

    def layers(self) -> list[Layer]:
        """The settings files that exist, the strongest first."""
        if self._layers is None:
            self._layers = [self._read(place.path) for place in self.places() if place.exists]
            while self._late:
                self._warn(self._late.pop(0))
        return self._layers

    def places(self) -> list[Place]:
        """The settings files of this call, the strongest first, including missing ones."""
        named = self._given("config")
        if named is not None:
            path = expanded(str(named.value)).absolute()
            if not path.is_file():
                raise UsageProblem(f"no settings file {path} ({named.origin})")
            return [Place("option", path, True), *self._system_places()]
        return [
            *self._project_place(),
            _home_place("user", user_config_folder(self._environ)),
            *self._system_places(),
        ]

    def _project_place(self) -> list[Place]:
        folder = self._working_folder
        if folder is None:
            return []
        above = (_first_file(place, PROJECT_FILES) for place in (folder, *folder.parents))
        project = next((path for path in above if path), None)
        return [Place("project", project or folder / PROJECT_FILES[0], project is not None)]

    def _system_places(self) -> list[Place]:
        folders = (self._environ.get("XDG_CONFIG_DIRS") or "/etc/xdg").split(":")
        return [_home_place("system", Path(folder) / "rmqctl") for folder in folders if folder]

    def _read(self, path: Path) -> Layer:
        values = _load(path)
        tables = values.pop("contexts", None) or {}
        if not isinstance(tables, dict) or not all(isinstance(t, dict) for t in tables.values()):
            raise UsageProblem(f"{path}: contexts must hold tables, such as [contexts.NAME]")
        contexts = {str(name): self._checked(table, path) for name, table in tables.items()}
        return Layer(str(path), self._checked(values, path), contexts)

    def _checked(self, values: dict[str, Any], path: Path) -> dict[str, Any]:
        """The known settings of a file, with absolute paths; warns of unknown ones."""
        checked: dict[str, Any] = {}
        for key, value in values.items():
            name = str(key).replace("-", "_")
            if name not in KEYS:
                self._late.append(f"unknown setting {key!r} in {path}{did_you_mean(name)}")
                continue
            if value is None:  # YAML has names without a value
                continue
            kind = KEYS[name][0]
            if kind is bool and not isinstance(value, bool):
                raise UsageProblem(f"{path}: {name} must be true or false, not {value!r}")
            if kind is str and isinstance(value, (dict, list, bool)):
                raise UsageProblem(f"{path}: {name} must be a text, not {value!r}")
            if name in _PATHS:
                value = str(path.parent / expanded(str(value)))
            checked[name] = value if kind is bool else str(value)
        return checked


def did_you_mean(name: str) -> str:
    """The end of a sentence about an unknown setting: a similar known one, if there is one."""
    from rmqctl.parse.near_names import did_you_mean as sentence

    return sentence(name, (*KEYS, "contexts"))


def user_config_folder(environ: Mapping[str, str]) -> Path:
    """The folder of the user's settings file: ``$XDG_CONFIG_HOME/rmqctl``."""
    return base_folder(environ, "XDG_CONFIG_HOME", ".config") / "rmqctl"


def user_data_folder(environ: Mapping[str, str]) -> Path:
    """The folder of the default store: ``$XDG_DATA_HOME/rmqctl``."""
    return base_folder(environ, "XDG_DATA_HOME", ".local/share") / "rmqctl"


def _home_place(layer: str, folder: Path) -> Place:
    path = _first_file(folder, HOME_FILES)
    return Place(layer, path or folder / HOME_FILES[0], path is not None)


def _first_file(folder: Path, names: tuple[str, ...]) -> Path | None:
    for name in names:
        path = folder / name
        try:
            if path.is_file():
                return path
        except OSError:
            return None
    return None


def _load(path: Path) -> dict[str, Any]:
    try:
        with path.open("rb") as file:
            data = file.read(_LARGEST + 1)
        if len(data) > _LARGEST:
            raise ValueError(f"it has more than {_LARGEST} bytes")
        return parse_settings(data.decode(), path.suffix)
    except OSError as error:
        raise UsageProblem(f"settings file {path} cannot be read: {error.strerror}") from error
    except ValueError as error:
        sentence = " ".join(str(error).split())
        raise UsageProblem(f"settings file {path} is malformed: {sentence}") from error


def parse_settings(text: str, suffix: str) -> dict[str, Any]:
    """The settings in a text, TOML or YAML by the file's ending; ValueError for a malformed one."""
    if suffix == ".toml":
        import tomllib

        try:
            return tomllib.loads(text)
        except RecursionError:
            raise ValueError("it is nested too deep") from None
    from rmqctl.parse.yaml_texts import parse_yaml

    values = parse_yaml(text)
    if values is None:
        return {}
    if not isinstance(values, dict):
        raise ValueError("it must be a table of settings")
    return values


def _as_kind(kind: type, text: str, origin: str) -> Any:
    if kind is not bool:
        return text
    lowered = text.strip().lower()
    if lowered in {"1", "true", "yes", "on"}:
        return True
    if lowered in {"0", "false", "no", "off"}:
        return False
    raise UsageProblem(f"{origin} must be true or false, not {text!r}")
