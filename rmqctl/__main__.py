"""Entry point: check that no other package shadows ours, then run the application."""

import gc
import os
import signal
import sys

from rmqctl.late_modules import OF_PATHLIB, OF_TYPER, late

with late(OF_PATHLIB):
    from rmqctl.shadowed import foreign_packages

OBJECTS_BETWEEN_COLLECTIONS = 200_000
"""Start-up creates tens of thousands of objects that all stay. Searching them for cycles again and
again takes a tenth of a short command's time, and of reading many messages."""


def main() -> None:
    """Run the command line; always raises :class:`SystemExit`."""
    if signal.getsignal(signal.SIGINT) == signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # no traceback; nothing is open yet
    _start_in_utf8()
    gc.set_threshold(OBJECTS_BETWEEN_COLLECTIONS)
    # NumPy's matrix library starts one thread per core when it is loaded. Nothing here
    # multiplies matrices, and without the threads NumPy loads in half the time.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    foreign = foreign_packages()
    if foreign:
        names = ", ".join(f"{name} is {origin}" for name, origin in foreign.items())
        _tell_shadowed(names)
        raise SystemExit(78)
    from rmqctl.cli.closed_streams import open_closed_streams
    from rmqctl.first_answers import answer_at_once

    open_closed_streams()
    answer_at_once(sys.argv[1:])
    with late(OF_TYPER):
        import typer  # noqa: F401
    from .app import run

    run()


def _start_in_utf8() -> None:
    """Start again in UTF-8 mode where the locale has another encoding.

    Else Python would encode the path of an argument, which is UTF-8, in that of the locale: this is
    another file. Programs that are started from here see the locale as it is.
    """
    if sys.flags.utf8_mode or sys.getfilesystemencoding() == "utf-8" or not sys.executable:
        return
    import ctypes  # lazy: few calls come here

    # As the C library decoded them: Python's codec of an encoding may lack some of its characters.
    encode = ctypes.pythonapi.PyUnicode_EncodeLocale
    encode.argtypes, encode.restype = (ctypes.py_object, ctypes.c_char_p), ctypes.py_object
    try:
        words = [encode(word, b"surrogateescape") for word in sys.orig_argv[1:]]
        os.execv(sys.executable, [sys.executable, "-X", "utf8", *words])
    except (OSError, ValueError):  # the interpreter is gone: only paths that are not ASCII suffer
        return


def _tell_shadowed(names: str) -> None:
    from rmqctl.cli.log_format import JSON, first_log_format
    from rmqctl.output.last_line import LAST_LINE

    is_json = first_log_format(sys.argv[1:], os.environ) == JSON
    LAST_LINE.writes_json = lambda: is_json
    for sentence in (
        f"another package shadows a package of rmqctl: {names}",
        "install it in an environment of its own (pipx install CLONE-OR-WHEEL), or run `rmqctl` or "
        "`python -P -m rmqctl` from another folder",
    ):
        LAST_LINE.print(sentence, prefix="rmqctl: ", level="error", fields={"exit_code": 78})


if __name__ == "__main__":
    main()
