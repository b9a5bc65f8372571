"""The program's entry: check that our packages are ours, then hand over to the application.

The project installs plain top-level packages (``storage``, ``broker``, ``client`` ...). A
``client.py`` in the working folder, or another distribution of the same name, would shadow
one of them; the guard names the stranger instead of failing somewhere inside.
"""

import gc
import os
import sys
from importlib.machinery import PathFinder
from pathlib import Path

SIBLINGS = ("storage", "broker", "client", "analytics")


def foreign_packages() -> dict[str, str]:
    """Map each of our package names to the stranger that answers to it; empty when all are ours.

    Nothing is imported: only the path that an import would take is looked up.
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


OBJECTS_BETWEEN_COLLECTIONS = 200_000
"""Starting up makes tens of thousands of objects that all stay: looking through them again and
again costs a tenth of a short command's time, and as much of reading many messages."""


def main() -> None:
    """Run the command line; never returns normally, but by :class:`SystemExit`."""
    gc.set_threshold(OBJECTS_BETWEEN_COLLECTIONS)
    # NumPy brings a library for matrices that starts a thread a core when it is loaded. Nothing
    # here multiplies matrices, and without them NumPy loads in half the time.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    strangers = foreign_packages()
    if strangers:
        names = ", ".join(f"{name} is {origin}" for name, origin in strangers.items())
        print(f"rmqctl: another package answers to a name of ours: {names}", file=sys.stderr)
        print(
            "rmqctl: install it in an environment of its own (pipx install rmqctl), or run "
            "`rmqctl` or `python -P -m rmqctl` from another folder",
            file=sys.stderr,
        )
        raise SystemExit(78)
    from rmqctl.cli.app import run
    from rmqctl.cli.closed_streams import open_closed_streams

    open_closed_streams()
    run()


if __name__ == "__main__":
    main()
