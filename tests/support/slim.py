"""Running a function in a fresh, small interpreter: cheap to fork, no threads, no pytest.

``python -m tests.support.slim module:function`` reads keyword arguments as JSON from stdin and
writes the result as JSON to stdout. Paths are passed as strings.
"""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]


class Slim:
    """A call that is under way; several run at once."""

    def __init__(self, function: str, *, inside: tuple[str, ...] = (), **arguments: Any) -> None:
        """``inside`` is a command that runs another, such as ``unshare -rm``."""
        self._process = subprocess.Popen(
            [*inside, sys.executable, "-m", "tests.support.slim", function],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(arguments))
        self._process.stdin.close()
        self._process.stdin = None  # communicate() must not flush it again

    @staticmethod
    def results(running: list[Slim]) -> list[Any]:
        """What all of them returned; none is left running if one fails."""
        try:
            return [one.result() for one in running]
        finally:
            for one in running:
                one.end()

    def end(self) -> None:
        """Kill it if it still runs."""
        if self._process.poll() is None:
            self._process.kill()
        self._process.communicate()

    def result(self) -> Any:
        """What the function returned; AssertionError with its traceback if it failed.

        The time limit is that of the test.
        """
        try:
            out, error = self._process.communicate()
        except BaseException:
            self.end()
            raise
        assert self._process.returncode == 0, error
        return json.loads(out)


def main() -> None:
    module, _, name = sys.argv[1].partition(":")
    arguments = json.load(sys.stdin)
    function = getattr(importlib.import_module(module), name)
    json.dump(function(**arguments), sys.stdout)


if __name__ == "__main__":
    main()
