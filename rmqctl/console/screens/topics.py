"""The screens of topics."""

from typing import Final

from rmqctl.console.looks import topics

from .screen import PaneSpec, ScreenSpec

SCREENS: Final = {
    "topics": ScreenSpec(lambda place: "Topics", [PaneSpec(topics.TOPICS)]),
    "topic": ScreenSpec(
        lambda place: f"Topics > {place.name}", [PaneSpec(topics.QUEUES, "QUEUES")]
    ),
}
