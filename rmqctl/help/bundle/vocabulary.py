"""The words of the program's own sentences, read from the source.

A sentence of a check is made of such words, of numbers, and of values of the store. So a word that
the source does not have is a value, and is replaced where names are replaced.
"""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final

from rmqctl.parse.meanings import ROOT

_SPEAKING: Final = (
    *("storage/tools/fsck", "storage/format", "storage/configs", "storage/files"),
    *("storage/errors.py", "storage/readonly.py", "storage/detect.py", "storage/layout.py"),
    *("storage/coordination", "broker/errors.py", "broker/config.py", "broker/validation.py"),
    *("rmqctl/help/doctor.py", "rmqctl/help/doctor_store.py", "rmqctl/cli/settings.py"),
    *("rmqctl/cli/context.py", "rmqctl/console/terminal.py", "rmqctl/cli/tree.py"),
    *("rmqctl/config/commands.py", "rmqctl/admin/broker", "broker/embedded", "broker/tables"),
)
"""Where the sentences come from that a bundle has."""
_USUAL: Final = (
    *("usr", "bin", "lib", "lib64", "local", "opt", "etc", "xdg", "home", "tmp", "venv", "site"),
    *("packages", "python", "python3", "so", "abi3", "cpython", "linux", "gnu", "x86_64", "java"),
    *(
        "jvm",
        "native",
        "_compiled",
        "rmqctl",
        "toml",
        "yaml",
        "yml",
        "config",
        "ext4",
        "xfs",
        "btrfs",
        "overlay",
        "tmpfs",
    ),
    *("oserror", "valueerror", "typeerror", "keyerror", "runtimeerror", "permissionerror"),
)
"""Parts of paths that name no user, and errors of the interpreter."""
_WORD: Final = re.compile(r"\w+")


@cache
def program_words() -> frozenset[str]:
    """All words of the string literals of these modules, in lower case, without docstrings.

    Where the source is not installed, only usual parts of paths: more is replaced then.
    """
    words = set(_USUAL)
    for path in _files():
        try:
            tree = ast.parse(path.read_text("utf-8"), str(path))
        except OSError:
            continue
        for text in _literals(tree):
            words.update(word.lower() for word in _WORD.findall(text))
    words |= {f"rmqctl_{word}" for word in words}  # variables of settings
    return frozenset(words)


def _files() -> Iterator[Path]:
    for name in _SPEAKING:
        place = ROOT / name
        yield from [place] if name.endswith(".py") else sorted(place.rglob("*.py"))


def _literals(tree: ast.Module) -> Iterator[str]:
    docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Constant) and id(node) not in docstrings:
            yield node.value if isinstance(node.value, str) else ""
