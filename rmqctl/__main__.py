"""The program's entry: check that our packages are ours, then hand over to the application."""

import gc
import os
import sys

from rmqctl.shadowed import foreign_packages

OBJECTS_BETWEEN_COLLECTIONS = 200_000
"""Starting up makes tens of thousands of objects that all stay: looking through them again and
again costs a tenth of a short command's time, and as much of reading many messages."""


def main() -> None:
    """Run the command line; never returns normally, but by :class:`SystemExit`."""
    gc.set_threshold(OBJECTS_BETWEEN_COLLECTIONS)
    # NumPy brings a library for matrices that starts a thread a core when it is loaded. Nothing
    # here multiplies matrices, and without them NumPy loads in half the time.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    foreign = foreign_packages()
    if foreign:
        names = ", ".join(f"{name} is {origin}" for name, origin in foreign.items())
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
