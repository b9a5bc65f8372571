"""The pages of docs/tasks: their commands are typed on a real terminal, what they show must come.

`python -m tests.support.task_pages PAGE.md ...` runs pages and writes what the commands printed
into them, where that differs. The rules for writers are in docs/tasks/README.md.
"""

import os
import pty
import re
import select
import shlex
import signal
import socket
import subprocess
import sys
import tempfile
import termios
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from tests.support.console_screen import HOME
from tests.support.fixed_clock import fixed_clock, today_at

ROOT = Path(__file__).resolve().parents[2]
TASKS = ROOT / "docs" / "tasks"
COLUMNS = 110
_SECONDS = 240
"""A page that takes longer hangs: it waits for input, or follows a topic."""

_BLOCK = re.compile(
    r"(?P<before>^```console\n|^<!-- screen: (?P<keys>[^\n]*) -->\n+```text\n)"
    r"(?P<text>.*?)(?=^```$)",
    re.DOTALL | re.MULTILINE,
)
_CLOCK = re.compile(r"<!-- clock: (\d\d:\d\d:\d\d) -->")
_SETUP = re.compile(r"\(setup/([\w-]+\.sh)\)")
_PROMPT = re.compile(r"(?:\[y/N\]|to go on:) ")
_END = re.compile(r"\x1e(\d+)\x1e")

_VOLATILE = (
    (re.compile(r"\b\d+\.\d+\.\d+\.\d+(?:@\d+(?:#\d+)?|:\d+)"), "CLIENT"),
    (re.compile(r"\b(?:[0-9A-F]{32}|[0-9A-F]{40}|[0-9A-F]{56})\b"), "ID"),
    (re.compile(r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d([.,]\d+)?)?)?(Z|[+-]\d\d:\d\d)?"), "TIME"),
    (re.compile(r"\b1[5-9]\d{11}\b"), "TIME"),
    (re.compile(r"(?<![\w.-])\d+(?:\.\d+)?(?:ms|s|m|h|d)(?:\d+[smh])?(?![\w-])"), "DURATION"),
    (re.compile(r"(?<![\w.-])\d[\d.,]*[KMG]?(?: \w+)?/s(?!\w)"), "RATE"),
    (re.compile(r"\b(pid|process|processes) \d+"), r"\1 PID"),
    (re.compile(r"look took +\d+ ms"), "LOOK"),
    (re.compile(r"DISK +\d+ % of \d+ %"), "DISK"),
    (re.compile(r"[ \t]+"), " "),
)


class Step(NamedTuple):
    """A command of a page and what the page shows below it."""

    command: str
    shown: str


class Outcome(NamedTuple):
    """What a command printed on the terminal, and its exit code."""

    printed: str
    code: int


def steps_of(page: str) -> list[Step]:
    """All commands of a page's console blocks, in order."""
    found = []
    for block in _BLOCK.finditer(page):
        if block["keys"] is not None:
            found.append(Step(f"screen {block['keys']}", block["text"]))
            continue
        for text in re.split(r"^\$ ", block["text"], flags=re.MULTILINE)[1:]:
            lines = text.splitlines(keepends=True)
            used = 1
            while used < len(lines) and lines[used].startswith("> "):
                used += 1
            command = "".join([lines[0], *(line[2:] for line in lines[1:used])])
            found.append(Step(command.rstrip("\n"), "".join(lines[used:])))
    return found


def clock_of(page: str) -> str | None:
    """The time of today at which the clock stands while the page is run; None: it goes."""
    found = _CLOCK.search(page)
    return found[1] if found else None


def setup_of(page: str) -> str | None:
    """The script that prepares the page's folder."""
    found = _SETUP.search(page)
    return found[1] if found else None


def settled(text: str) -> str:
    """The text without what differs from run to run: ids, times, durations, rates, processes."""
    for pattern, name in _VOLATILE:
        text = pattern.sub(name, text)
    return "".join(line.rstrip() + "\n" for line in text.splitlines())


def is_shown(shown: str, printed: str) -> bool:
    """Whether a page shows what was printed; a line `...` stands for any lines."""
    lines = [
        r"(?:.*\n)*?" if line == "..." else re.escape(line) + r"\n"
        for line in settled(shown).splitlines()
    ]
    return re.fullmatch("".join(lines), settled(printed)) is not None


def run_page(page: str, scratch: Path) -> list[Outcome]:
    """Prepare the folder, type the page's commands one after the other, on one terminal."""
    folder, programs = scratch / "ann", scratch / "bin"
    folder.mkdir()
    programs.mkdir()
    program = programs / "rmqctl"
    program.write_text(f'#!/bin/sh\nPYTHONPATH={ROOT} exec {sys.executable} -P -m rmqctl "$@"\n')
    program.chmod(0o755)
    screen = programs / "screen"
    tool = "tests.support.console_screen"
    screen.write_text(f'#!/bin/sh\nPYTHONPATH={ROOT} exec {sys.executable} -P -m {tool} "$@"\n')
    screen.chmod(0o755)
    environment = {
        "PATH": f"{programs}:{os.environ['PATH']}",
        "HOME": str(folder),
        "LOGNAME": "ann",
        "LANG": "C.UTF-8",
        "TZ": "UTC",
        "TERM": "xterm",
        "NO_COLOR": "1",
        "COLUMNS": str(COLUMNS),
        "RMQCTL_PROGRESS": "none",
    }
    clock = clock_of(page)
    if clock is not None:
        environment |= fixed_clock(scratch, today_at(clock))
    _prepare(setup_of(page), folder, environment)
    steps = steps_of(page)
    script = scratch / "script"
    script.write_text(_script(steps))
    printed = _typed(script, folder, environment, [step.shown for step in steps])
    here = re.compile(re.escape(str(folder)))
    host = re.compile(rf"\b{re.escape(socket.gethostname())}\b")
    texts = _END.split(host.sub("host", here.sub(HOME, printed)))
    return [Outcome(text, int(code)) for text, code in zip(texts[0::2], texts[1::2], strict=False)]


def _prepare(setup: str | None, folder: Path, environment: dict[str, str]) -> None:
    """Run a page's script as a user would who has installed rmqctl and any Python."""
    if setup is None:
        return
    programs = folder.parent / "python"
    programs.mkdir()
    python = programs / "python"
    python.write_text(f'#!/bin/sh\nexec {sys.executable} -S "$@"\n')  # nothing is installed for it
    python.chmod(0o755)
    done = subprocess.run(
        ["bash", str(TASKS / "setup" / setup)],
        cwd=folder,
        env={**environment, "PATH": f"{programs}:{environment['PATH']}"},
        capture_output=True,
        text=True,
        timeout=_SECONDS,
    )
    assert done.returncode == 0, f"{setup}: {done.stdout}{done.stderr}"


def _script(steps: Sequence[Step]) -> str:
    """One shell for all commands, so that `$?`, variables and background jobs are what they are."""
    lines = [
        "__code=0",
        '__type() { (exit $__code); eval "$1"; __code=$?; printf "\\036%d\\036" $__code; }',
        *(f"__type {shlex.quote(step.command)}" for step in steps),
    ]
    return "\n".join(lines) + "\n"


def _typed(script: Path, folder: Path, environment: dict[str, str], shown: Sequence[str]) -> str:
    """Run a script on a terminal of its own and answer its prompts as the page does."""
    master, slave = pty.openpty()
    termios.tcsetwinsize(slave, (50, COLUMNS))
    modes = termios.tcgetattr(slave)
    modes[1] &= ~termios.OPOST  # newlines stay newlines
    termios.tcsetattr(slave, termios.TCSANOW, modes)
    with subprocess.Popen(
        ["bash", str(script)],
        cwd=folder,
        env=environment,
        stdin=slave,
        stdout=slave,
        stderr=slave,
        start_new_session=True,
    ) as process:
        os.close(slave)
        try:
            return _conversation(master, shown)
        finally:
            os.killpg(process.pid, signal.SIGKILL)
            os.close(master)


def _conversation(master: int, shown: Sequence[str]) -> str:
    said, answered = b"", 0
    end = time.monotonic() + _SECONDS
    while time.monotonic() < end:
        if not select.select([master], [], [], 1)[0]:
            continue
        try:
            chunk = os.read(master, 1 << 16)
        except OSError:  # Linux's way to say that the other side is closed
            return said.decode("utf-8", "replace")
        said += chunk
        text = said.decode("utf-8", "replace")
        if len(_END.findall(text)) == len(shown):
            return text
        prompts = len(_PROMPT.findall(text))
        if prompts > answered and _PROMPT.search(text[-30:]):
            step = len(_END.findall(text))
            nth = len(_PROMPT.findall(_END.split(text)[-1]))
            os.write(master, _answer(shown[step], nth).encode() + b"\n")
            answered = prompts
    raise AssertionError(f"a command does not come to its end:\n{said.decode()[-2000:]}")


def _answer(shown: str, nth: int) -> str:
    """What a page shows after the nth prompt of a command; nothing answers nothing."""
    parts = _PROMPT.split(shown)
    return parts[nth].partition("\n")[0].strip() if nth < len(parts) else ""


def written(page: str, outcomes: Sequence[Outcome]) -> str:
    """The page with what the commands printed, where that is not what it shows."""
    left = iter(zip(steps_of(page), outcomes, strict=True))

    def block(found: re.Match[str]) -> str:
        text = found["before"]
        if found["keys"] is not None:
            step, outcome = next(left)
            return text + (step.shown if is_shown(step.shown, outcome.printed) else outcome.printed)
        for _ in steps_of(found[0] + "```\n"):
            step, outcome = next(left)
            same = is_shown(step.shown, outcome.printed)
            printed = re.sub(r"[ \t]+$", "", outcome.printed, flags=re.MULTILINE)
            command = step.command.replace("\n", "\n> ")
            text += f"$ {command}\n" + (step.shown if same else printed)
        return text

    return _BLOCK.sub(block, page)


def main(pages: Sequence[str]) -> None:
    """Write pages again."""
    for name in pages:
        path = Path(name)
        page = path.read_text("utf-8")
        with tempfile.TemporaryDirectory(prefix="task") as scratch:
            outcomes = run_page(page, Path(scratch))
        for step, outcome in zip(steps_of(page), outcomes, strict=True):
            if outcome.code:
                sys.stderr.write(f"{path.name}: exit code {outcome.code}: {step.command}\n")
        path.write_text(written(page, outcomes), "utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
