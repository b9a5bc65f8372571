"""What scripts, other versions and other programs rely on, read off the program, as JSON.

Four files lie beside this module. A change of names, rooms or prose must not change any of them;
a change that is meant is written with ``python -m tests.contracts.contracts --write`` and shows in
the diff.

* ``commands.json``: each command with its arguments, options and the fields of its rows.
* ``store_bytes.json``: the files of a small store, written with a clock that is given, by sum.
* ``api.json``: names that ``import rmqctl`` and the plugin of pytest give to programs, with the
  parameters of functions and methods, fields, and members of enums.
* ``own_files.json``: numbers of the shared file, locks, and the members of rmqctl's JSON files.
"""

import hashlib
import inspect
import json
import sys
import tempfile
from collections.abc import Callable, Mapping
from enum import Enum
from importlib import import_module
from pathlib import Path
from typing import Any, Final

HERE: Final = Path(__file__).parent


# -- commands -----------------------------------------------------------------------------------


def commands() -> dict[str, Any]:
    """Arguments, options and fields of every command, and all exit codes."""
    from rmqctl import exit_codes
    from rmqctl.cli.global_options import SPECS
    from rmqctl.cli.tree import TREE

    found: dict[str, Any] = {}
    for name, entry in TREE.items():
        verbs = getattr(entry, "verbs", None)
        for verb, leaf in {"": entry}.items() if verbs is None else verbs.items():
            found[f"{name} {verb}".strip()] = _command(verb or name, leaf)
    codes = {name: value for name, value in vars(exit_codes).items() if name.isupper()}
    everywhere = sorted(f"{' '.join(spec.names)} {spec.metavar}".strip() for spec in SPECS)
    return {"commands": found, "exit_codes": codes, "options_of_all": everywhere}


def _command(name: str, leaf: Any) -> dict[str, list[str]]:
    from typer.core import TyperOption

    from rmqctl.cli import lazy
    from rmqctl.cli.global_options import is_everywhere
    from rmqctl.output.fields import fields_of

    command: Any = lazy.build(name, leaf)
    arguments, options = [], []
    for parameter in command.params:
        if is_everywhere(parameter):
            continue
        if isinstance(parameter, TyperOption):
            names = " ".join([*parameter.opts, *parameter.secondary_opts])
            options.append(f"{names}: {_value(parameter)}")
        else:
            arguments.append(f"{parameter.name}: {_value(parameter)}")
    rows = [
        ", ".join(
            f"{field.name}: {field.json_type}{f' {field.unit}' if field.unit else ''}"
            f"{'?' if field.nullable else ''}"
            for field in fields_of(row)
        )
        for row in command.row_types
    ]
    return {"arguments": arguments, "options": sorted(options), "rows": rows}


_KINDS = {"text": "str", "integer": "int", "integer range": "int range", "boolean": "bool"}
"""How Typer before 0.28 calls the kinds of values."""


def _value(parameter: Any) -> str:
    choices = getattr(parameter.type, "choices", None)
    kind = _KINDS.get(parameter.type.name, parameter.type.name)
    words = [kind if choices is None else "|".join(sorted(map(str, choices)))]
    if getattr(parameter, "is_flag", False):
        words = ["flag"]
    words += ["required"] * bool(parameter.required)
    words += ["many"] * bool(getattr(parameter, "multiple", False) or parameter.nargs != 1)
    return " ".join(words)


# -- names for programs -------------------------------------------------------------------------


def api() -> dict[str, Any]:
    """Every public name of ``rmqctl``, of ``rmqctl.admin``'s packages, and of the plugin."""
    import rmqctl
    from rmqctl.testing import plugin
    from rmqctl.testing.store import RocketMQStore

    names = set(rmqctl.__all__) - {"admin", "telemetry"}
    found = {name: _shape_of(getattr(rmqctl, name)) for name in sorted(names)}
    fixtures = sorted(name for name in vars(plugin) if name.startswith("rocketmq_"))
    admin = {name: sorted(import_module(f"rmqctl.admin.{name}").__all__) for name in ADMIN_PACKAGES}
    return {
        "rmqctl": found,
        "rmqctl.admin": admin,
        "rmqctl.telemetry": {
            name: _shape_of(getattr(rmqctl.telemetry, name)) for name in rmqctl.telemetry.__all__
        },
        "pytest fixtures": fixtures,
        "RocketMQStore": _shape_of(RocketMQStore),
    }


ADMIN_PACKAGES: Final = (
    *("topics", "groups", "lag", "offsets", "retries", "dead_letters", "store", "broker"),
    *("audit", "messages"),
)
"""Those that the docstring of ``rmqctl.admin`` lists."""


def _shape_of(value: Any) -> Any:
    """Parameters of what is called; members of a class; the type of another value."""
    if inspect.isroutine(value):
        return _parameters(value)
    if not isinstance(value, type):
        return type(value).__name__
    if issubclass(value, Enum):
        return sorted(value.__members__)
    ours = [base for base in value.__mro__ if base.__module__.partition(".")[0] in OURS]
    names = {
        name: _member(owner.__dict__[name])
        for owner in reversed(ours)
        for name in owner.__dict__
        if not name.startswith("_") and not inspect.ismodule(owner.__dict__[name])
    }
    for base in ours:
        names |= {name: "field" for name in base.__annotations__ if not name.startswith("_")}
    if not issubclass(value, BaseException) and not getattr(value, "_is_protocol", False):
        names["()"] = _parameters(value)
    return {name: names[name] for name in sorted(names)}


OURS: Final = frozenset({"rmqctl", "storage", "broker", "client", "analytics"})


def _member(value: Any) -> str:
    if isinstance(value, (staticmethod, classmethod)):
        return f"{type(value).__name__} {_parameters(value.__func__)}"
    return _parameters(value) if inspect.isfunction(value) else "value"


def _parameters(value: Any) -> str:
    """Names and kinds of parameters; ``?`` stands after one that has a default."""
    words: list[str] = []
    by_name_only = False
    for parameter in inspect.signature(value).parameters.values():
        if parameter.name in ("self", "cls"):
            continue
        stars = "*" * (parameter.kind == parameter.VAR_POSITIONAL)
        stars += "**" * (parameter.kind == parameter.VAR_KEYWORD)
        if parameter.kind == parameter.KEYWORD_ONLY and not by_name_only:
            words += ["*"]
        by_name_only |= parameter.kind in (parameter.KEYWORD_ONLY, parameter.VAR_POSITIONAL)
        default = "" if parameter.default is parameter.empty else "?"
        words += [f"{stars}{parameter.name}{default}"]
    return f"({', '.join(words)})"


# -- bytes of a store ---------------------------------------------------------------------------


def store_bytes(root: Path) -> dict[str, str]:
    """SHA-256 of each file of a 4.9 store after all kinds of puts."""
    from storage.format.encode import MessageInner, prepare
    from tests.support.samples import HOST, SMALL, START_MS, Ticking, new_store, open_store

    new_store(root, SMALL)
    with open_store(root, SMALL, clock=Ticking(step=0)) as store:
        for number in range(40):
            message = MessageInner(
                f"T{number % 3}", number % 4, b"TAGS\x02", b"body %d" % number, START_MS, HOST, HOST
            )
            keyed = message._replace(
                properties=b"KEYS\x01k%d a\x02TAGS\x01t%d\x02" % (number, number % 5),
                keys=(f"k{number}", "a"),
                tags=f"t{number % 5}",
            )
            store.put_message(keyed)
            store.put(prepare([keyed, message._replace(properties=b"", body=b"x" * number * 9)]))
    found = {
        str(path.relative_to(root)): hashlib.sha256(path.read_bytes()).hexdigest()
        for folder in ("commitlog", "consumequeue", "config")
        for path in sorted((root / folder).rglob("*"))
        if path.is_file()
    }
    for number, path in enumerate(sorted((root / "index").iterdir())):  # named by the local time
        found[f"index/{number}"] = hashlib.sha256(path.read_bytes()).hexdigest()
    return found


# -- files of rmqctl's own ----------------------------------------------------------------------


def own_files(root: Path) -> dict[str, Any]:
    """Members of the files below ``<store>/rmqctl/``, and numbers that processes share."""
    from storage.coordination import shared_state, wakeup, write_lock
    from tests.support.own_files_fuzz import Fuzz

    words = sorted(number for name, number in vars(shared_state.Word).items() if name.isupper())
    numbers = {
        "magic": shared_state.SHARED_STATE_MAGIC,
        "waiters at": [
            shared_state.WAITER_FLAGS,
            shared_state.WAITER_TOPICS,
            shared_state.WAITER_WAKERS,
        ],
        "waiters": shared_state.MAX_WAITERS,
        "slots at, bytes, at first": [
            shared_state.SLOTS,
            shared_state.SLOT_SIZE,
            shared_state.FIRST_SLOTS,
        ],
        "states": [shared_state.STATE_OPEN, shared_state.STATE_CLOSED],
        "stages": [
            *(
                shared_state.STAGE_NONE,
                shared_state.STAGE_RECORDS,
                shared_state.STAGE_DISPATCH,
                shared_state.STAGE_KEYS,
            ),
        ],
        "locked bytes": [write_lock.JAVA_BYTE, write_lock.WRITE_LOCK_BYTE],
        "any topic": wakeup.ANY_TOPIC,
        "ways to wake": [wakeup.BY_SOCKET, wakeup.BY_WORD],
    }
    store = Fuzz(root).root
    files = {
        _without_numbers(str(path.relative_to(store))): _shape(path)
        for path in sorted((store / "rmqctl").rglob("*"))
        if path.is_file() and path.suffix != ".lock" and path.parent.name != wakeup.WAKERS
    }
    return {"words": words, "numbers": numbers, "files": files}


def _without_numbers(name: str) -> str:
    """A name without process ids, times and random digits."""
    folder, slash, last = name.rpartition("/")
    if any(letter.isdigit() for letter in last):
        last = "*" + Path(last).suffix
    return folder + slash + last


def _shape(path: Path) -> Any:
    """Members of JSON, of each line of lines, nothing for other bytes."""
    if path.suffix not in (".json", ".jsonl", ".log"):
        return "bytes"
    kinds = {json.dumps(_kind(json.loads(line)), sort_keys=True) for line in _values(path)}
    return [json.loads(kind) for kind in sorted(kinds)]


def _values(path: Path) -> list[bytes]:
    data = path.read_bytes()
    if path.suffix == ".log":  # its other lines depend on which process wrote last
        return data.splitlines()[:1]
    return data.splitlines() if path.suffix == ".jsonl" else [data]


_TABLES: Final = frozenset({"committed", "ends", "offsets", "queues", "topics", "groups", "before"})


def _kind(value: Any, name: str = "") -> Any:
    if isinstance(value, dict):
        if name in _TABLES or any(not key.isidentifier() for key in value):
            return {"*": _kind(next(iter(value.values()), None))}
        return {key: _kind(member, key) for key, member in sorted(value.items())}
    if isinstance(value, list):
        return [_kind(value[0])] if value else []
    return "null" if value is None else type(value).__name__


# -- comparing ----------------------------------------------------------------------------------


def of_a_folder(made: Callable[[Path], Mapping[str, Any]]) -> Mapping[str, Any]:
    """What a function makes of an empty folder."""
    with tempfile.TemporaryDirectory() as folder:
        return made(Path(folder) / "s")


CONTRACTS: Final[Mapping[str, Callable[[], Mapping[str, Any]]]] = {
    "api.json": api,
    "commands.json": commands,
    "store_bytes.json": lambda: of_a_folder(store_bytes),
    "own_files.json": lambda: of_a_folder(own_files),
}


def as_text(contract: Mapping[str, Any]) -> str:
    """A contract as its file has it."""
    return json.dumps(contract, indent=1, sort_keys=True, ensure_ascii=False) + "\n"


def main() -> int:
    """Print which contracts differ; ``--write`` writes them."""
    code = 0
    for name, contract in CONTRACTS.items():
        text = as_text(contract())
        if "--write" in sys.argv[1:]:
            (HERE / name).write_text(text, "utf-8")
        elif text != (HERE / name).read_text("utf-8"):
            sys.stderr.write(f"{name} differs\n")
            code = 1
    return code


if __name__ == "__main__":
    raise SystemExit(main())
