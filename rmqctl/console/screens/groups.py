"""The screens of consumer groups."""

from typing import Final

from rmqctl.console.looks import groups

from .screen import PaneSpec, ScreenSpec

SCREENS: Final = {
    "groups": ScreenSpec(lambda place: "Groups", [PaneSpec(groups.GROUPS)]),
    "group": ScreenSpec(
        lambda place: f"Groups > {place.name}",
        [
            PaneSpec(groups.QUEUES, "QUEUES", share=2),
            PaneSpec(groups.MEMBERS, "MEMBERS"),
        ],
    ),
}
