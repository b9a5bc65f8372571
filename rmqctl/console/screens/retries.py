"""The screens of delayed messages and retries."""

from typing import Final

from rmqctl.console.details import DetailPane
from rmqctl.console.looks import dead_letters, retries
from rmqctl.console.looks.messages import ONE, place_of
from rmqctl.console.specs import PaneSpec, ScreenSpec

SCREENS: Final = {
    "retry": ScreenSpec(
        lambda place: f"Retries > {place.name} > {place.names[1]}",
        [
            PaneSpec(dead_letters.ATTEMPTS, "ATTEMPTS"),
            PaneSpec(
                ONE,
                "MESSAGE",
                share=2,
                beside=True,
                of_row=lambda row: None if row.queue_offset is None else place_of(row),
                pane=DetailPane,
            ),
        ],
        ("form", "life"),
    ),
    "retries": ScreenSpec(lambda place: f"Retries > {place.name}", [PaneSpec(retries.RETRIES)]),
}
