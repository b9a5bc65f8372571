"""Build the site of the documents: `make docs`. A warning, or a link that leads nowhere, ends it.

The documents are laid out as in the repository, so that the same links lead to the same places;
files that they name, such as tests, are copied. Pages of commands come from the tables that make
``--help`` and the manual pages, pages of Python names from their docstrings.
"""

import logging
import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import yaml
from mkdocs.commands.build import build
from mkdocs.config import load_config

ROOT: Final = Path(__file__).resolve().parents[1]
BUILD: Final = ROOT / "build" / "site"
STAGED: Final = BUILD / "pages"
SITE: Final = BUILD / "html"
sys.path.insert(0, str(ROOT))

import rmqctl  # noqa: E402 - the clone's own
from rmqctl.help.manual import pages  # noqa: E402
from rmqctl.help.manual_forms import as_markdown  # noqa: E402

_LINK: Final = re.compile(r"(?<=\]\()(?!\w+:|#)[^)\s]+(?=\))")
_FENCE: Final = re.compile(r"^\s*(```|~~~)")
_ITEM: Final = re.compile(r"^([*-]|\d+\.) ")
_ADMIN: Final = (
    *("topics", "groups", "lag", "offsets", "retries", "dead_letters", "store", "broker"),
    *("audit", "messages"),
)
_TITLES: Final = {
    "client.producer": "Producers",
    "client": "Consumers",
    "broker": "The broker",
    "storage": "Stores and messages",
}
"""The page of a public name, by the package that holds it; the first prefix counts."""


def main() -> int:
    """Lay the pages out, then build."""
    logging.basicConfig(level=logging.WARNING, format="%(levelname)s: %(message)s")
    shutil.rmtree(BUILD, ignore_errors=True)
    STAGED.mkdir(parents=True)
    documents = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    documents += (ROOT / "benchmarks").glob("*.md")
    documents += (ROOT / "tests" / "golden").glob("*.md")
    for document in documents:
        stage(document)
    commands, names = list(stage_commands()), list(stage_names())
    settings: dict[str, Any] = yaml.safe_load((ROOT / "docs" / "mkdocs.yml").read_text("utf-8"))
    settings["docs_dir"], settings["site_dir"] = str(STAGED), str(SITE)
    settings["plugins"][1]["mkdocstrings"]["handlers"]["python"]["paths"] = [str(ROOT)]
    settings["nav"] = navigation(commands, names)
    written = BUILD / "mkdocs.yml"
    written.write_text(yaml.safe_dump(settings, sort_keys=False), "utf-8")
    build(load_config(str(written), strict=True))
    sys.stdout.write(f"{SITE / 'index.html'}\n")
    return 0


def stage(document: Path) -> None:
    """Copy a document, and the files that it names."""
    text = document.read_text("utf-8")
    for link in _LINK.findall(text):
        named = (document.parent / link.partition("#")[0]).resolve()
        if not named.is_relative_to(ROOT) or named.suffix == ".md":
            continue
        target = STAGED / named.relative_to(ROOT)
        if named.is_file():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(named, target)
        elif named.is_dir() and not (named / "README.md").is_file():
            stage_folder(named, target)
    target = STAGED / document.relative_to(ROOT)
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text("\n".join(for_markdown(text.splitlines())) + "\n", "utf-8")


def stage_folder(folder: Path, target: Path) -> None:
    """A page that lists the files of a folder to which a document leads."""
    target.mkdir(parents=True, exist_ok=True)
    files = sorted(path for path in folder.iterdir() if path.is_file())
    for path in files:
        shutil.copy(path, target)
    rows = [f"* [{path.name}]({path.name})" for path in files]
    text = "\n".join([f"# {folder.relative_to(ROOT)}", "", *rows])
    (target / "README.md").write_text(text + "\n", "utf-8")


def for_markdown(lines: list[str]) -> Iterator[str]:
    """Lines as Python's Markdown wants them: a blank line before a list, folders as pages."""
    fenced, before = False, ""
    for line in lines:
        if _FENCE.match(line):
            fenced = not fenced
            line = line if " " not in line.strip() else "```text"
        elif not fenced:
            starts_list = _ITEM.match(line) and before.strip()
            if starts_list and not _ITEM.match(before) and not before.startswith("  "):
                yield ""
            line = _LINK.sub(lambda found: _page_of_folder(found[0]), line)
        yield line
        before = line


def _page_of_folder(link: str) -> str:
    last = link.rstrip("/").rpartition("/")[2]
    return link if "." in last or last == "LICENSE" else f"{link.rstrip('/')}/README.md"


def stage_commands() -> Iterator[tuple[str, str]]:
    """A page for each command; gives titles and files."""
    folder = STAGED / "reference"
    folder.mkdir()
    for page in pages():
        title = page.name.replace("-", " ", 2) if page.name != "rmqctl" else "rmqctl"
        file = f"{page.name}.md" if page.name != "rmqctl" else "README.md"
        (folder / file).write_text(as_markdown(page), "utf-8")
        yield title, f"reference/{file}"


def stage_names() -> Iterator[tuple[str, str]]:
    """Pages of the names that programs import; gives titles and files."""
    folder = STAGED / "python"
    folder.mkdir()
    by_title: dict[str, list[str]] = {}
    for name, module in rmqctl._WHERE.items():
        title = next(title for start, title in _TITLES.items() if module.startswith(start))
        by_title.setdefault(title, []).append(f"{module}.{name}")
    index = ["# From Python", "", "`from rmqctl import NAME` gives each of these names.", ""]
    for title in _TITLES.values():
        file = title.lower().replace(" ", "-") + ".md"
        text = "\n".join(f"::: {dotted}\n" for dotted in sorted(by_title[title]))
        (folder / file).write_text(f"# {title}\n\n{text}", "utf-8")
        index += [f"* [{title}]({file}): {', '.join(_last(name) for name in by_title[title])}"]
        yield title, f"python/{file}"
    text = "\n".join(
        f"::: rmqctl.admin.{name}\n    options: {{members: false}}\n" for name in _ADMIN
    )
    (folder / "admin.md").write_text(f"# Administration\n\n{text}", "utf-8")
    yield "Administration", "python/admin.md"
    text = "::: rmqctl.testing.store\n\n::: rmqctl.testing.plugin\n"
    (folder / "testing.md").write_text(f"# Fixtures of pytest\n\n{text}", "utf-8")
    yield "Fixtures of pytest", "python/testing.md"
    index += ["* [Administration](admin.md), [Fixtures of pytest](testing.md)", ""]
    (folder / "README.md").write_text("\n".join(index), "utf-8")


def _last(dotted: str) -> str:
    return f"`{dotted.rpartition('.')[2]}`"


def navigation(commands: list[tuple[str, str]], names: list[tuple[str, str]]) -> list[Any]:
    """The tabs, with every page once."""
    nouns: dict[str, list[Any]] = {}
    for title, file in commands[1:]:
        words = title.split(" ", 2)
        nouns.setdefault(words[1], []).append({title: file} if len(words) > 2 else file)
    reference = [
        {noun: files if len(files) > 1 else files[0]} for noun, files in sorted(nouns.items())
    ]
    placed = [
        {
            "Quick start": [
                "README.md",
                *_files(
                    "docs", "testing", "limits", "guarantees", "stability", "telemetry", "container"
                ),
                "SECURITY.md",
                "CHANGELOG.md",
            ]
        },
        {"Tasks": ["docs/tasks/README.md", *_all_of("docs/tasks")]},
        {
            "Reference": [
                "reference/README.md",
                *_files("docs", "console", "settings", "exit-codes", "rows", "changes", "retries"),
                *_files("docs", "spark", "spark-clusters", "scale", "consumption"),
                *reference,
            ]
        },
        {"Python": ["python/README.md", "docs/admin.md", *({t: f} for t, f in names)]},
        {
            "Internals": [
                "docs/internals/README.md",
                "ARCHITECTURE.md",
                "FORMAT.md",
                *_all_of("docs/internals"),
                *_files("docs", "quality"),
                "tests/golden/README.md",
                "CONTRIBUTING.md",
            ]
        },
        {"Decisions": ["docs/decisions/README.md", *_all_of("docs/decisions")]},
        {
            "Comparison": [
                *_files("docs", "compared", "conformance", "benchmarks"),
                "benchmarks/README.md",
            ]
        },
    ]
    there = {str(path.relative_to(STAGED)) for path in STAGED.rglob("*.md")}
    others = sorted(there - set(_leaves(placed)))
    return [*placed, {"More": others}] if others else placed


def _files(folder: str, *names: str) -> list[str]:
    return [f"{folder}/{name}.md" for name in names]


def _all_of(folder: str) -> list[str]:
    found = sorted((STAGED / folder).glob("*.md"))
    return [f"{folder}/{path.name}" for path in found if path.name != "README.md"]


def _leaves(part: Any) -> Iterator[str]:
    if isinstance(part, str):
        yield part
    else:
        for inner in part.values() if isinstance(part, dict) else part:
            yield from _leaves(inner)


if __name__ == "__main__":
    raise SystemExit(main())
