"""Fail when the tables of docs/console.md are not those of the console; `--write` writes them.

The screens are those of rmqctl/console/screens, keys and words those of rmqctl/console/keys.py.
"""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from rmqctl.console.keys import KEYS, WORDS  # noqa: E402
from rmqctl.console.looks.look import Place  # noqa: E402
from rmqctl.console.screens.table import ALIASES, TABLE, spec_of  # noqa: E402

DOCUMENT = ROOT / "docs" / "console.md"
_MARKED = r"(<!-- {0}: .*? -->\n).*?(<!-- end of {0} -->\n)"


def screens() -> str:
    """A row for each screen, and one for each further command of its panes."""
    short = {screen: word for word, screen in ALIASES.items()}
    lines = ["| `:` | shows | rows of |", "|---|---|---|"]
    for name, ref in TABLE.items():
        words = " ".join((name, *ref.names))
        typed = f"`:{words}`" + (f", `:{short[name]}`" if name in short else "")
        place = Place(name, ref.names or ("GROUP",))
        commands = dict.fromkeys(
            look.command(place)
            for pane in spec_of(name).panes
            for look in (pane.look, *pane.also, *pane.wide)
        )
        for number, command in enumerate(commands):
            head = f"| {typed} | {ref.help} |" if not number else "| | |"
            lines.append(f"{head} `{command.removeprefix('rmqctl ')}` |")
    return "\n".join(lines) + "\n"


def keys() -> str:
    """A row for each key."""
    lines = ["| key | does | where |", "|---|---|---|"]
    for key in KEYS:
        label = "`` ` ``" if key.label == "`" else f"`{key.label}`"
        where = ", ".join(key.screens) or "everywhere"
        lines.append(f"| {label} | {key.help.replace('|', chr(92) + '|')} | {where} |")
    return "\n".join(lines) + "\n"


def words() -> str:
    """A row for each word after ``:``."""
    lines = ["| `:` | does |", "|---|---|"]
    for word in WORDS:
        typed = " ".join(filter(None, (f":{word.word}", word.takes)))
        lines.append(f"| `{typed}` | {word.help} |")
    return "\n".join(lines) + "\n"


def written(text: str) -> str:
    """The document with the tables of today."""
    for name, table in (("screens", screens()), ("keys", keys()), ("words", words())):
        text, count = re.subn(
            _MARKED.format(name),
            lambda found, table=table: found[1] + table + found[2],  # type: ignore[misc]
            text,
            flags=re.DOTALL,
        )
        if count != 1:
            raise SystemExit(f"console_document: docs/console.md has no place for {name}")
    return text


def main() -> int:
    text = DOCUMENT.read_text("utf-8")
    if "--write" in sys.argv[1:]:
        DOCUMENT.write_text(written(text), "utf-8")
    elif text != written(text):
        print("console: docs/console.md is stale; run `make console`", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
