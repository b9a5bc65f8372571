"""A person's walk at a terminal: from an empty folder through retries and dead letters, and back.

A real shell in a real terminal (pexpect), seen through an emulator (pyte): what stands on the
screen when a command is done is what a person sees.
"""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import pexpect
import pyte
import pytest

pytestmark = pytest.mark.slow
ROOT = Path(__file__).resolve().parents[2]
PROMPT = "walker$ "
COLUMNS, LINES = 300, 50
PATIENCE_S = 60


class Terminal:
    """A shell with typed input."""

    def __init__(self, home: Path) -> None:
        programs = home / "bin"
        programs.mkdir()
        program = programs / "rmqctl"
        program.write_text(
            f'#!/bin/sh\nPYTHONPATH={ROOT} exec {sys.executable} -P -m rmqctl "$@"\n'
        )
        program.chmod(0o755)
        environment = {
            "PATH": f"{programs}:{os.environ['PATH']}",
            "HOME": str(home),
            "TERM": "xterm-256color",
            "PS1": PROMPT,
            "LC_ALL": "C.UTF-8",
            "TZ": "UTC",
        }
        self._shell = pexpect.spawn(
            "/bin/bash",
            ["--norc", "--noprofile", "--noediting", "-i"],
            cwd=str(home),
            env=environment,
            encoding="utf-8",
            dimensions=(LINES, COLUMNS),
            timeout=PATIENCE_S,
            use_poll=True,
        )
        self._shell.expect_exact(PROMPT)
        self.raw = ""
        """What the last command sent to the terminal."""

    def type(self, command: str, *answers: tuple[str, str]) -> list[str]:
        """Run a command, answering its questions; gives the lines on the screen that it left."""
        self.raw = ""
        self._shell.sendline(command)
        for question, answer in answers:
            self._shell.expect_exact(question)
            self.raw += self._shell.before + question
            self._shell.sendline(answer)
        self._shell.expect_exact(PROMPT)
        self.raw += self._shell.before
        screen = pyte.Screen(COLUMNS, LINES)
        pyte.Stream(screen).feed(self.raw)
        lines = [line.rstrip() for line in screen.display]
        return [line for line in lines[1:] if line]

    def interrupt(self, command: str, after: str) -> list[str]:
        """Run a command, press Ctrl-C once a text has come."""
        self._shell.sendline(command)
        self._shell.expect_exact(after)
        self._shell.sendintr()
        self._shell.expect_exact(PROMPT)
        return [line.rstrip() for line in self._shell.before.splitlines()]

    def code(self) -> int:
        """The last exit code."""
        return int(self.type("echo $?")[0])

    def close(self) -> None:
        self._shell.close(force=True)


@pytest.fixture
def terminal(tmp_path: Path):
    home = tmp_path / "home"
    home.mkdir()
    opened = Terminal(home)
    yield opened
    opened.close()


def cells(line: str) -> list[str]:
    return re.split(r"\s{2,}", line.strip())


@pytest.mark.feature(84, 85, 71, 72, 78, 91, 95, 144)
@pytest.mark.parametrize(
    "engine", ["local", pytest.param("spark", marks=[pytest.mark.long, pytest.mark.spark])]
)
def test_a_walk(terminal: Terminal, tmp_path: Path, engine: str) -> None:
    home = tmp_path / "home"
    (home / "handler").write_text(
        '#!/bin/sh\nread body\ncase $body in\n*7*) echo "no stock for $body" >&2; exit 1;;\nesac\n'
    )
    (home / "handler").chmod(0o755)
    (home / "mend").write_text("#!/bin/sh\nsed -i 's/order 7/order seven/' \"$1\"\n")
    (home / "mend").chmod(0o755)
    type_ = terminal.type

    # A store, and messages with a progress bar that is gone when it is done.
    assert type_("rmqctl store init store --small")[0] == f"created the store {home}/store"
    type_("for i in $(seq 1 20); do echo order $i; done > orders.txt")
    shown = type_("rmqctl produce orders orders.txt --tag new --rate 20/s")
    assert re.search(r"\r\x1b\[K\[[#.]{24}\] ", terminal.raw)
    assert len(shown) == 1
    assert shown[0].startswith("sent 20 messages (")

    # A consumer that cannot do all of them.
    shown = type_("rmqctl consume orders -g shop --from-where first --exec ./handler -c 20")
    assert "no stock for order 7" in shown
    header, *rows = type_("rmqctl retry browse shop")
    assert cells(header)[:3] == ["MSG_ID", "KEYS", "ORIGIN_TOPIC"]
    assert "\x1b[" in terminal.raw
    assert len(rows) == 2
    ids = [cells(row)[0] for row in rows]

    # They come again at once, fail again, and are dead.
    for number in ids:
        type_(f"rmqctl retry now shop {number}", ("[y/N] ", "y"))
        assert terminal.code() == 0
    type_(
        "rmqctl consume orders -g shop --exec ./handler --max-reconsume-times 1 -c 2 --timeout 50s"
    )
    header, row = type_("rmqctl dlq list")
    assert cells(row)[:3] == ["shop", "2", "2"]
    header, *rows = type_("rmqctl dlq groups shop --by reason")
    assert sorted(line for row in rows for line in cells(row) if "no stock" in line)

    # A plan, a no, and a yes: mended in an editor, sent again.
    letter = cells(type_("rmqctl dlq browse shop --body 'order 7'")[1])[1]
    shown = type_(f"rmqctl dlq redrive shop {letter} --set-property mended=yes -n")
    assert "dry run: nothing was changed" in shown
    shown = type_(f"EDITOR=./mend rmqctl dlq redrive shop {letter} --edit", ("[y/N] ", "n"))
    assert terminal.code() == 7
    type_(f"EDITOR=./mend rmqctl dlq redrive shop {letter} --edit", ("[y/N] ", "y"))
    assert terminal.code() == 0
    assert type_("rmqctl consume orders -e --last 1 --body text | grep seven") == ["order seven"]
    assert cells(type_("rmqctl dlq list")[1])[:3] == ["shop", "2", "1"]

    # Back in time, with a look before, and undone.
    before = type_(
        "rmqctl offset list -g shop -t orders -o csv --columns queue_id,committed_offset"
    )
    shown = type_("rmqctl offset reset -g shop -t orders --to-earliest -n")
    assert any("read again" in line for line in shown)
    after = type_("rmqctl offset list -g shop -t orders -o csv --columns queue_id,committed_offset")
    assert after == before
    type_("rmqctl resetOffsetByTime -g shop -t orders -s -1h", ("[y/N] ", "n"))
    assert terminal.code() == 7
    type_("rmqctl resetOffsetByTime -g shop -t orders -s -1h", ("[y/N] ", "y"))
    assert terminal.code() == 0
    moved = type_("rmqctl offset list -g shop -t orders -o csv --columns queue_id,committed_offset")
    assert moved[1:] == [f"{number},0" for number in range(4)]
    lag = type_("rmqctl lag show shop")
    assert cells(lag[1])[:4] == ["shop", "orders", "4", "21"]
    type_("rmqctl offset undo --last", ("[y/N] ", "y"))
    undone = type_(
        "rmqctl offset list -g shop -t orders -o csv --columns queue_id,committed_offset"
    )
    assert undone == before

    # How late are we? Spark counts; in a short run this process does.
    options = "" if engine == "spark" else f"--engine {engine} "
    header, row, *_ = type_(f"rmqctl lag report {options}2> errors.txt")
    assert cells(header)[:4] == ["GROUP", "TOPIC", "QUEUES", "LAG"]
    assert cells(row)[:4] == ["shop", "orders", "4", "1"]
    assert f"counted by {engine}" in type_("cat errors.txt")[0]

    # Ctrl-C ends what would go on for ever.
    terminal.interrupt("rmqctl lag watch shop --interval 200ms", "STATUS")
    assert terminal.code() == 130
