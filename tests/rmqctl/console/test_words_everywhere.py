"""Every word after ``:`` and every entry of the palette, on every screen: none ends the console."""

import pytest

from rmqctl.console.keys import KEYS, WORDS
from rmqctl.console.looks.look import Place
from rmqctl.console.plans.desk import CHANGING
from rmqctl.console.program.typed import carry_out
from rmqctl.console.screens.table import TABLE
from storage.clock import now_ms
from tests.rmqctl.console.test_stores import every_place, names_of
from tests.support.console import drive
from tests.support.rich_store import make_rich_store

ARGUMENTS = ("", "x", "'", "-9", "a b c d", "1e999d", "/nowhere/file.json", "9" * 40)
TYPED = (
    *CHANGING,
    *(key.action for key in KEYS if key.action not in CHANGING),
    *(f"{word.word} {more}".strip() for word in WORDS for more in ARGUMENTS if word.word != "q"),
    *(f"{screen} {more}".strip() for screen in TABLE for more in ARGUMENTS[:3]),
)


@pytest.fixture(scope="module")
def rich(tmp_path_factory):
    return make_rich_store(tmp_path_factory.mktemp("words") / "s", now_ms() - 600_000).root


def places_of(store):
    """A place of each screen."""
    places = {place.screen: place for place in every_place(names_of(store))}
    places |= {"follow": Place("follow", ("orders", "*")), "search": Place("search", ("plain",))}
    assert set(places) == set(TABLE)
    return places


@pytest.mark.slow
@pytest.mark.parametrize("screen", TABLE)
def test_no_word_ends_the_console(rich, tmp_path, monkeypatch, screen):
    monkeypatch.chdir(tmp_path)
    place = places_of(rich)[screen]

    async def steps(console):
        app = console.app
        await console.read()
        for writes in (False, True):
            for text in TYPED:
                app.notice, app.desk.writes = "", writes
                carry_out(app, text)
                app.draw()
                assert "internal error" not in console.text(), text
                app.desk._close()
                app.overlay = None
                if app.place != place:
                    app.go(place)

    drive(rich, steps, place.screen, *place.names, size=(120, 40))


NO_LETTER = "the cursor is on no dead letter; ':dlq GROUP' shows those of a group"
NO_RETRY = "the cursor is on no retry; ':retries GROUP' shows those of a group"


@pytest.mark.slow
def test_the_name_of_a_screen_is_a_group_only_where_it_is_one(rich):
    places = places_of(rich)
    groups = {screen for screen, ref in TABLE.items() if ref.names[:1] == ("GROUP",)}
    assert groups == {"group", "history", "dlq", "letter", "retry", "retries"}

    async def steps(console):
        app = console.app
        for screen, place in places.items():
            app.go(place)
            await console.read()
            row = app.pane.row()
            if screen not in groups and getattr(row, "group", None) is None:
                carry_out(app, "reset")
                assert app.notice == "the cursor is on no group", screen
            for word, screens, sentence in (
                ("redrive", ("dlqs", "dlq", "letter"), NO_LETTER),
                ("acknowledge", ("dlqs", "dlq", "letter"), NO_LETTER),
                ("deliver_now", ("agenda", "retries", "retry"), NO_RETRY),
                ("make_dead", ("agenda", "retries", "retry"), NO_RETRY),
            ):
                if screen not in screens:
                    carry_out(app, word)
                    assert app.notice == sentence, screen
            if screen not in ("groups", "group", "topics", "topic"):
                carry_out(app, "delete")
                assert app.desk.command is None

    drive(rich, steps, "groups", size=(120, 40))
