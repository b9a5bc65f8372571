"""Many calls of the program in one small process, on whatever streams it has.

``python -m tests.support.many_calls`` reads ``[[argument, ...], ...]`` as JSON from the file named
first. After each call it prints ``<<<number code>>>`` on a line of its own. With ``closed`` after
the file each call runs in a child whose standard output is a pipe that is not read; what it says
on stderr follows the code.
"""

import json
import os
import sys
import tempfile
from importlib import import_module
from pathlib import Path

from rmqctl import app


def _run_closed(words: list[str]) -> tuple[int, bytes]:
    """Run one call in a child; gives its exit code, and what it said on stderr."""
    with tempfile.TemporaryFile() as said:
        pid = os.fork()
        if pid == 0:
            _close_stdout()
            os.dup2(said.fileno(), 2)
            code = 70
            try:
                code = app.main(words)
            finally:
                os._exit(code)
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        said.seek(0)
        return code, said.read()


def _close_stdout() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    os.dup2(writer, 1)


def main() -> None:
    """Run all calls of a file."""
    calls = json.loads(Path(sys.argv[1]).read_text("utf-8"))
    closed = sys.argv[2:] == ["closed"]
    if closed:  # what each child would load again
        for module in (
            "broker.embedded.broker",
            "yaml",
            "rich.table",
            "storage.read.message_columns",
        ):
            import_module(module)
    for number, words in enumerate(calls):
        code, said = _run_closed(words) if closed else (app.main(words), b"")
        sys.stdout.write(f"<<<{number} {code}>>>{said.decode('utf-8', 'replace')}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
