"""The screens of dead letters."""

from typing import Final

from rmqctl.console.looks import dead_letters

from .screen import PaneSpec, ScreenSpec

SCREENS: Final = {
    "dlqs": ScreenSpec(lambda place: "Dead letters", [PaneSpec(dead_letters.GROUPS)]),
    "dlq": ScreenSpec(
        lambda place: f"Dead letters > {place.name}",
        [
            PaneSpec(dead_letters.REASONS, "REASONS"),
            PaneSpec(dead_letters.LETTERS, "LETTERS", share=2),
        ],
    ),
}
