"""The public names of a package of rmqctl.admin, each imported on first use."""

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any


def lazy_names(
    package: str, names: Mapping[str, Sequence[str]]
) -> tuple[Callable[[str], Any], list[str]]:
    """``__getattr__`` and ``__all__`` of a package; ``names`` has those of each module."""
    where = {name: module for module, of_module in names.items() for name in of_module}

    def get(name: str) -> Any:
        module = where.get(name)
        if module is None:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(f"{package}.{module}"), name)

    return get, sorted(where)
