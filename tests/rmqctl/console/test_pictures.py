"""``^s``: the picture of a screen is its cells, it needs nothing from elsewhere, and it is a file
outside of every store."""

import re
import xml.etree.ElementTree as ET

import pytest
from hypothesis import given, settings, strategies as st

from rmqctl.console.cells import safe
from rmqctl.console.drawing import Role, Span, cut_line, text_line
from rmqctl.console.painting import Painter
from rmqctl.console.picture import svg
from rmqctl.console.program import typed
from rmqctl.console.themes import NAMES, Depth, Theme
from tests.support.cli import run
from tests.support.console import drive, terminal
from tests.support.hostile_text import hostile_text
from tests.support.svg_text import lines_of

WIDTH = 24
_SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture
def stocked(store, tmp_path, monkeypatch):
    """A topic, and a folder outside of the store to write into."""
    run("produce", "orders", stdin=b"1\n2\n")
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    return store


spans = st.builds(
    Span, (st.text(max_size=8) | hostile_text()).map(safe), st.sampled_from(list(Role))
)
screens = st.lists(
    st.lists(spans, max_size=5).map(lambda line: cut_line(line, WIDTH)), min_size=1, max_size=4
)


@settings(deadline=None)
@given(screens, st.sampled_from(NAMES), st.sampled_from(Depth))
@pytest.mark.slow
def test_each_cell_stands_at_its_column(lines, name, depth):
    theme = Theme(name, color=bool(depth), depth=depth)
    painter = Painter(theme)
    picture = svg(lines, WIDTH, theme, painter, "a <title> & more")
    assert lines_of(picture) == ["".join(span.text for span in line).rstrip() for line in lines]


@given(screens)
@pytest.mark.slow
def test_nothing_is_fetched_from_elsewhere(lines):
    theme = Theme("dark", color=True)
    picture = svg(lines, WIDTH, theme, Painter(theme), "t")
    root = ET.fromstring(picture)
    assert {found.tag.removeprefix(_SVG) for found in root.iter()} <= {
        *("svg", "title", "style", "rect", "text")
    }
    style = root.findtext(f"{_SVG}style")
    assert style is not None
    assert "url(" not in style
    assert "@" not in style
    for found in root.iter():
        assert not {"href", "src", "onload"} & set(found.attrib)


def test_without_colors_a_picture_is_black_on_white():
    theme = Theme("dark", color=False)
    line = [Span("a", Role.BAD), Span("b", Role.CURSOR), Span("c", Role.HEAD)]
    picture = svg([line], 3, theme, Painter(theme), "t")
    assert set(re.findall(r"#[0-9a-f]{6}", picture)) == {"#000000", "#ffffff"}
    assert ".cursor{fill:#ffffff}" in picture
    assert ".head{fill:#000000;text-decoration:underline}" in picture


def test_shapes_are_ascii_where_the_screen_has_them_in_ascii():
    theme = Theme("dark", color=True)
    painter = Painter(theme, ascii_only=True)
    assert svg([text_line("\u2500" * 3)], 3, theme, painter, "t").isascii()


async def written(console):
    """The notice, once the file is written."""
    await console.until(lambda: console.app.notice != "writing ...")
    return console.app.notice


@pytest.mark.slow
def test_the_picture_is_what_is_shown(stocked, tmp_path):
    async def steps(console):
        await console.read()
        console.app.paused = True
        shown = [line for line in console.lines() if "READ ONLY" not in line]
        await console.press("ctrl+s")
        notice = await written(console)
        (file,) = (tmp_path / "here").iterdir()
        assert notice == f"a picture of the screen is in {file}"
        assert re.fullmatch(r"rmqctl-topics-\d{8}-\d{6}\.svg", file.name)
        found = lines_of(file.read_text())
        assert [line for line in found if "READ ONLY" not in line] == shown
        await console.press("question_mark", "ctrl+s")
        await written(console)
        assert len(list((tmp_path / "here").iterdir())) == 2

    drive(stocked, steps, "topics")


@pytest.mark.slow
def test_a_picture_of_a_plan_and_of_a_list(stocked, tmp_path):
    run("consume", "orders", "-g", "billing", "-e", "-c", "1")

    async def steps(console):
        await console.read()
        app = console.app
        await console.press("ctrl+p")
        typed.carry_out(app, "picture palette.svg")
        await written(console)
        app.desk.writes, app.overlay = True, None
        await console.press("r")
        await console.until("whose: billing")
        await console.press("ctrl+s")
        assert "a picture of the screen" in await written(console)
        assert "a picture of the screen" in console.text()
        (plan,) = (tmp_path / "here").glob("rmqctl-groups-*.svg")
        assert "whose: billing in" in plan.read_text()
        assert "all actions" not in (tmp_path / "here" / "palette.svg").read_text()
        assert "half a page down" in (tmp_path / "here" / "palette.svg").read_text()

    drive(stocked, steps, "groups")


def test_a_file_is_named_and_not_replaced_by_accident(stocked, tmp_path):
    async def steps(console):
        await console.read()
        file = tmp_path / "one.svg"
        typed.carry_out(console.app, f"picture {file}")
        assert await written(console) == f"a picture of the screen is in {file}"
        before = file.stat().st_ino
        typed.carry_out(console.app, f"picture {file}")
        assert console.app.notice == f"{file} exists; ':picture! FILE' replaces it"
        assert file.stat().st_ino == before
        typed.carry_out(console.app, f"picture! {file}")
        assert await written(console) == f"a picture of the screen is in {file}"
        assert file.stat().st_ino != before
        typed.carry_out(console.app, "picture /nowhere/one.svg")
        assert console.app.notice == "there is no folder /nowhere"

    drive(stocked, steps, "topics")


def test_it_is_never_written_into_a_store(stocked, monkeypatch):
    monkeypatch.chdir(stocked)
    before = sorted(stocked.rglob("*"))

    async def steps(console):
        await console.read()
        await console.press("ctrl+s")
        assert "is inside the store" in console.app.notice
        assert "(:picture FILE)" in console.app.notice
        typed.carry_out(console.app, "picture config/one.svg")
        assert "is inside the store" in console.app.notice

    drive(stocked, steps, "topics")
    assert sorted(stocked.rglob("*")) == before


@pytest.mark.slow
def test_the_installed_program_writes_one(stocked, tmp_path):
    with terminal(stocked, "topics") as console:
        console.until("orders")
        console.send("\x13")
        console.until("a picture of the screen is in")
        (file,) = (tmp_path / "here").iterdir()
        shown = lines_of(file.read_text())
        assert shown[0].startswith(" rmqctl  ")
        assert any("orders" in line for line in shown)
        assert str(file)[:30] in console.text()
        console.send("q")
        assert console.ended() == 0
