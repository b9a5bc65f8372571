"""Reads each line of a file as JSON: what a script does at least with rows."""

import json
import sys
from pathlib import Path


def main() -> None:
    """The argument is the file."""
    with Path(sys.argv[1]).open("rb") as file:
        for line in file:
            json.loads(line)


main()
