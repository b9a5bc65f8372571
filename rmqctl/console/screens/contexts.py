"""The contexts: named stores to which the console can go."""

from typing import Final

from rmqctl.console.looks import contexts
from rmqctl.console.specs import PaneSpec, ScreenSpec

SCREENS: Final = {
    "contexts": ScreenSpec(lambda place: "Contexts", [PaneSpec(contexts.CONTEXTS)]),
}
