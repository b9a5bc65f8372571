"""Fail when a page in docs/man/ is not what the program makes; `--write` writes them."""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "docs" / "man"
sys.path.insert(0, str(ROOT))

from rmqctl.help.manual import pages  # noqa: E402 - the clone's own
from rmqctl.help.manual_forms import as_roff  # noqa: E402


def main() -> int:
    made = {f"{page.name}.1": as_roff(page) for page in pages()}
    there = {path.name: path.read_text("utf-8") for path in FOLDER.glob("*.1")}
    stale = sorted(name for name in made | there if made.get(name) != there.get(name))
    if "--write" in sys.argv[1:]:
        FOLDER.mkdir(exist_ok=True)
        for name in stale:
            if name in made:
                (FOLDER / name).write_text(made[name], "utf-8")
            else:
                (FOLDER / name).unlink()
    elif stale:
        print(f"docs/man is stale: {', '.join(stale)}; run `make man`", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
