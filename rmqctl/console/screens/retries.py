"""The screens of delayed messages and retries."""

from typing import Final

from rmqctl.console.looks import retries

from .screen import PaneSpec, ScreenSpec

SCREENS: Final = {
    "agenda": ScreenSpec(lambda place: "Agenda", [PaneSpec(retries.AGENDA)]),
    "retries": ScreenSpec(lambda place: f"Retries > {place.name}", [PaneSpec(retries.RETRIES)]),
}
