"""Fail when a name of the old house, or a person in place of a program, is in code or documents."""

import io
import re
import subprocess
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
NAMES = Path(__file__).with_suffix(".txt").read_text("utf-8").split()
"""What the rename of 2026 put other names in place of; ``/`` stands for ``.`` too."""
RETIRED = re.compile(
    r"(?<![\w/.])(?:" + "|".join(name.replace("/", "[/.]") for name in NAMES) + r")(?!\w)"
)
PERSONS = re.compile(
    r'(?<!["a-z])(?:whoever|(?:no|some|any|every)body|(?:some|any|every)one)s?(?!["a-z])',
    re.IGNORECASE,
)
"""A text or a name says the writer, a reader, the process, no process."""
EXEMPT = ("CHANGELOG.md", "docs/decisions/0013", "tests/golden/", "tests/checks/retired_words.py")


def prose(path: Path) -> Iterator[tuple[int, str]]:
    """Names, comments and strings of Python (of tests: docstrings), all lines of others."""
    source = path.read_text("utf-8")
    if path.suffix not in (".py", ".pyi"):
        yield from enumerate(source.splitlines(), 1)
        return
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        data = path.is_relative_to(ROOT / "tests") and not token.string.startswith(('"""', "#"))
        if token.type == tokenize.NAME:
            yield token.start[0], token.string
        elif token.type in (tokenize.COMMENT, tokenize.STRING) and not data:
            for number, line in enumerate(token.string.splitlines()):
                yield token.start[0] + number, line


def retired(names: list[str]) -> Iterator[str]:
    """Sentences about what is left of the old words."""
    for name in names:
        path = ROOT / name
        if name.startswith(EXEMPT) or path.suffix not in (
            ".py",
            ".pyi",
            ".c",
            ".h",
            ".md",
            ".toml",
        ):
            continue
        for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
            for found in RETIRED.findall(line):
                yield f"{name}:{number}: {found} has another name now"
        for number, line in prose(path):
            for found in PERSONS.findall(line):
                yield f"{name}:{number}: {found}: name the program"


def main() -> int:
    listed = subprocess.run(
        ["git", "ls-files"], capture_output=True, text=True, check=True, cwd=ROOT
    ).stdout.split()
    found = list(retired([name for name in listed if (ROOT / name).is_file()]))
    for sentence in found:
        print(sentence, file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    raise SystemExit(main())
