"""Packages of rmqctl that another package or a file of the user shadows.

The project installs plain top-level packages (``storage``, ``broker``, ``client`` ...). A
``client.py`` in the working folder, or another distribution of the same name, would shadow one of
them. The check names it, instead of an obscure failure later.
"""

import sys
from importlib.machinery import PathFinder
from pathlib import Path

SIBLINGS = ("storage", "broker", "client", "analytics")


def foreign_packages() -> dict[str, str]:
    """Map each shadowed package name to the origin that shadows it; empty if there is none.

    Nothing is imported; only the path that an import would use is looked up.
    """
    root = Path(__file__).resolve().parent.parent
    found: dict[str, str] = {}
    for name in SIBLINGS:
        loaded = sys.modules.get(name)
        spec = loaded.__spec__ if loaded else PathFinder.find_spec(name)
        origin = spec.origin if spec else None
        if origin is None:
            found[name] = "nothing" if spec is None else "a folder without __init__.py"
        elif Path(origin).resolve().parent.parent != root:
            found[name] = origin
    return found


def refuse_shadowed_packages() -> None:
    """Raise ImportError, with a sentence that names what shadows what."""
    found = foreign_packages()
    if found:
        names = ", ".join(f"{name} is {origin}" for name, origin in found.items())
        raise ImportError(
            f"another package shadows a package of rmqctl: {names}; rename that file or folder, "
            "run the program from another folder, or install rmqctl in an environment of its own"
        )
