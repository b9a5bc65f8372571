"""The compiled modules for tests against pure forms, also where RMQCTL_PURE hides them."""

from __future__ import annotations

import shutil
import sys
from functools import lru_cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import pytest

from storage import native as _of_storage

_NAME = "storage.native._compiled"
_OF_CLIENT = "client.native._compiled"
_OWNERS = ("storage.", "analytics.")
"""Packages whose modules take forms of the storage."""
_IS_THERE = find_spec(_NAME) is not None and find_spec(_OF_CLIENT) is not None

compiled: Any = import_module(_NAME) if _IS_THERE else None
"""None where there is no compiler; what uses it is marked with ``needs_compiled``."""
compiled_client: Any = import_module(_OF_CLIENT) if _IS_THERE else None
"""The same of the client's."""
needs_compiled = pytest.mark.skipif(
    not _IS_THERE and shutil.which("cc") is None, reason="needs cc on PATH"
)


class _Native:
    """Which forms modules of the storage use: ``native.compiled`` is the module, or None.

    A module binds a form by its name, or with ``_`` in front of it. Setting ``compiled`` binds the
    others in all of them.
    """

    @property
    def compiled(self) -> Any:
        return _of_storage.compiled

    @compiled.setter
    def compiled(self, module: Any) -> None:
        _of_storage.compiled = module
        references = _of_storage.references
        for owner, bound, name in _bindings(len(sys.modules)):
            owner[bound] = _of_storage.form(name, references[name])


@lru_cache(1)
def _bindings(modules: int) -> list[tuple[dict[str, Any], str, str]]:
    """Where forms are bound, while so many modules are loaded: names of a module, the name there,
    the name of the form."""
    del modules
    found = []
    for module in [name for name in sys.modules if name.startswith(_OWNERS) and name != _NAME]:
        names = vars(sys.modules[module])
        for name, reference in _of_storage.references.items():
            forms = (reference, getattr(compiled, name, None))
            places = {name, f"_{name}"} - {reference.__name__}
            found += [(names, at, name) for at in places if at in names and names[at] in forms]
    return found


native: Any = _Native()
