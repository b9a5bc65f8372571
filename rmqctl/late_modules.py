"""Modules that a library imports and hardly ever uses: they are loaded when they are used.

Typer imports ten modules for things that no command here does, such as opening a browser, and
pathlib some for addresses and for paths of other systems. They take a tenth of the time of a short
command.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from types import ModuleType
from typing import Any, Final

OF_TYPER: Final = (
    *("difflib", "gettext", "platform", "shellingham", "shutil", "subprocess", "tokenize"),
    *("traceback", "uuid"),
)
"""What Typer names when it is imported, and calls later or never."""

OF_PATHLIB: Final = ("ntpath", "urllib.parse")
"""The same of pathlib, if in one version or another."""


class _LateModule(ModuleType):
    """Stands for a module; while others are imported, an attribute is a :class:`_LateName`."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # what the interpreter asks of a module
            raise AttributeError(name)
        if sys.modules.get(self.__name__) is self:
            return _LateName(self.__name__, name)
        return getattr(import_module(self.__name__), name)


class _LateName:
    """Stands for a function or a class of a module, which is imported with the first use."""

    def __init__(self, module: str, name: str) -> None:
        self._module = module
        self._name = name

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._found()(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._found(), name)

    def _found(self) -> Any:
        if isinstance(sys.modules.get(self._module), _LateModule):
            del sys.modules[self._module]
        return getattr(import_module(self._module), self._name)


@contextmanager
def late(names: tuple[str, ...]) -> Iterator[None]:
    """Let modules that are imported in the block have these modules late, unless they are loaded.

    After the block every ``import`` gives the modules themselves. For one thread.
    """
    made = {name: _LateModule(name) for name in names if name not in sys.modules}
    sys.modules.update(made)
    try:
        yield
    finally:
        for name, stand_in in made.items():
            if sys.modules.get(name) is stand_in:
                del sys.modules[name]
