"""The screens of dead letters."""

from typing import Final

from rmqctl.console.details import DetailPane
from rmqctl.console.letter_panes import LettersPane
from rmqctl.console.looks import dead_letters
from rmqctl.console.looks.look import Place
from rmqctl.console.specs import PaneSpec, ScreenSpec

SCREENS: Final = {
    "dlqs": ScreenSpec(lambda place: "Dead letters", [PaneSpec(dead_letters.GROUPS)]),
    "dlq": ScreenSpec(
        lambda place: f"Dead letters > {place.name}   by {dead_letters.by_of(place)}",
        [
            PaneSpec(dead_letters.REASONS, "COUNTS"),
            PaneSpec(
                dead_letters.LETTERS,
                "LETTERS",
                share=2,
                beside=True,
                of_row_at=dead_letters.letters_of,
                pane=LettersPane,
            ),
            PaneSpec(
                dead_letters.LETTER,
                "LETTER",
                share=2,
                room=30,
                follows=1,
                of_row_at=dead_letters.letter_of,
                pane=DetailPane,
            ),
        ],
        ("by",),
    ),
    "letter": ScreenSpec(
        lambda place: f"Dead letters > {place.name} > {place.names[1]}",
        [
            PaneSpec(dead_letters.LETTER, "LETTER", share=2, pane=DetailPane),
            PaneSpec(
                dead_letters.ATTEMPTS,
                "ATTEMPTS",
                of_row=lambda row: Place("attempts", (row.group, row.msg_id)),
            ),
        ],
        ("form", "life"),
    ),
}
