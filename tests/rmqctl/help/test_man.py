import importlib.util
import os
import re
import shutil
import subprocess
import sys

import pytest

from rmqctl.cli import settings
from rmqctl.cli.tree import TREE, CommandGroup
from rmqctl.help.manual import Items, Lines, Page, Text, pages
from rmqctl.help.manual_forms import as_roff, as_text
from tests.support.cli import ROOT, run
from tests.support.parsing import parsed
from tests.support.shell_lines import calls_in
from tests.support.tab_key import shell
from tests.support.terminal import on_a_terminal

FOLDER = ROOT / "docs" / "man"


def check():
    spec = importlib.util.spec_from_file_location("fresh", ROOT / "tests/checks/man_fresh.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.slow
def test_the_pages_in_docs_man_are_what_the_program_makes(capsys):
    assert check().main() == 0, capsys.readouterr().err


@pytest.mark.slow
def test_every_noun_and_every_command_has_a_page():
    expected = {"rmqctl"}
    for name, entry in TREE.items():
        expected.add(f"rmqctl-{name}")
        if isinstance(entry, CommandGroup):
            expected |= {f"rmqctl-{name}-{verb}" for verb in entry.verbs}
    assert {page.name for page in pages()} == expected
    assert {path.stem for path in FOLDER.glob("*.1")} == expected


def test_a_page_is_found_in_whatever_form():
    shown = run("man", "offset", "inspect").out
    assert shown.startswith("NAME\n    rmqctl-offset-inspect - ")
    for form in (["offset inspect"], ["offset-inspect"], ["rmqctl-offset-inspect"]):
        assert run("man", *form).out == shown
    assert run("man").out == run("man", "rmqctl").out
    assert run("man", "offset", "inspct").err.endswith("did you mean 'offset inspect'?\n")
    assert run("man", "xyzzy").code == 3


def test_a_page_has_options_fields_and_examples_of_the_command():
    text = run("man", "topic", "queues").out
    assert "    --topic, -t TOPIC\n        A topic, as an option; repeatable." in text
    assert "    first_timestamp (integer, ms since 1970-01-01 UTC)\n" in text
    assert "rmqctl topic queues greetings -o json" in text
    whole = run("man").out
    assert "    -S, --store DIR\n" in whole
    assert "    4\n        The store is damaged, or store fsck found an error." in whole
    assert "    RMQCTL_STORE\n" in whole


def test_the_page_of_the_program_has_every_variable_and_file_of_settings():
    text = run("man").out
    environment, _, files = text.partition("\nENVIRONMENT\n")[2].partition("\nFILES\n")
    files = files.partition("\nEXAMPLES\n")[0]
    read = [f"RMQCTL_{name.upper()}" for name in (*settings.KEYS, *settings.VARIABLES)]
    assert re.findall(r"^    (\w+)$", environment, re.MULTILINE) == [*read, *settings.COLORS]
    assert {"RMQCTL_CONFIG", "RMQCTL_DEBUG", "RMQCTL_DRY_RUN", "FORCE_COLOR"} <= {
        *environment.split()
    }
    for name in (*settings.PROJECT_FILES, *settings.HOME_FILES):
        assert re.search(rf"(^|[ /]){re.escape(name)}(,|$)", files, re.MULTILINE), name


@pytest.mark.slow
def test_groff_has_no_complaint_about_any_page():
    if shutil.which("groff") is None:
        pytest.skip("needs groff on PATH")
    for path in sorted(FOLDER.glob("*.1")):
        done = subprocess.run(
            ["groff", "-man", "-ww", "-Tascii", "-P-cbou", path], capture_output=True, text=True
        )
        assert (done.returncode, done.stderr) == (0, ""), path.name
        assert "\nNAME\n" in done.stdout, path.name


@pytest.mark.slow
def test_every_call_in_an_example_is_one_that_the_program_takes():
    for page in pages():
        for title, blocks in page.sections:
            if title == "Examples":
                for call in calls_of(blocks[0]):
                    assert parsed(call), call


def calls_of(block):
    text = "\n".join(block.lines).replace("\\\n", " ")
    for line in text.splitlines():
        yield from calls_in("rmqctl " + line.partition("rmqctl ")[2] if "rmqctl " in line else "")


@pytest.mark.slow
def test_on_a_terminal_a_long_page_goes_through_the_pager(tmp_path):
    env = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "PY": sys.executable}
    with shell(["bash", "--norc", "--noprofile", "-i"], tmp_path, env) as terminal:
        terminal.type("PAGER='grep -c .' $PY -m rmqctl man; echo wi''th $?\n")
        counted = terminal.wait_for("with 0")
        assert re.search(r"^[2-9]\d\d$", counted, re.MULTILINE), counted  # lines of the page
        terminal.type("PAGER=no-such-pager $PY -m rmqctl man; echo wi''thout $?\n")
        terminal.wait_for("NAME", "EXAMPLES", "without 0")


@pytest.mark.slow
def test_an_interrupt_from_the_keyboard_is_for_the_pager(tmp_path):
    """In less it ends a search or a wait for more text, and less goes on."""
    pager = tmp_path / "pager"
    pager.write_text("#!/bin/sh\ntrap '' INT; kill -INT 0; cat; echo the end\n")
    pager.chmod(0o755)
    shown = on_a_terminal(["-m", "rmqctl", "man"], columns=80, lines=10, env={"PAGER": str(pager)})
    assert shown.startswith("NAME\n")
    assert shown.endswith("the end\n")


def test_what_roff_would_take_for_its_own_is_escaped():
    page = Page("x", (("A", (Text(".a -b \\ 'c'"), Lines(("'d",)), Items((("-e", ""),)))),))
    assert as_roff(page).splitlines()[3:] == [
        ".SH A",
        r"\&.a \-b \e \(aqc\(aq",
        ".nf",
        r"\&\(aqd",
        ".fi",
        ".TP",
        r".B \-e",
        r"\&",
    ]


def test_text_is_wrapped_between_words_and_lines_are_not():
    page = Page("x", (("A", (Text("one two three"), Lines(("a  long line that stays",)))),))
    assert as_text(page, 12) == "A\n    one two\n    three\n\n    a  long line that stays\n"
